/* SPDX-License-Identifier: MIT */
/*
 * A heap that no hold is long enough for is copied while threads run, if it is seen not to change. Where Lua
 * stands is of the moment of the copy, or not known.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "src/heap/heap_holding.h"
#include "src/linux/proc/maps.h"
#include "src/linux/proc/resident.h"
#include "tests/unit/instead_of.h"

enum {
	BASE = 1 << 20,
	PAGES = 4,
	LOOKS = 3,
	READS_OF_A_LOOK = 2,
	SHORT_NS = 1000,
	LONG_NS = 1000000,
	TRIES = 1000
};

static unsigned int reads,
	changes; /* of all pages; so many of these find another content than the one before */
static bool counts_reads, may_go_on;
static int refresh_error;
static bool is_held;                /* a hold succeeds, with a thread stopped */
static bool wakes;                  /* but not while anything is copied: another thread wakes */
static uint64_t now_ns, copying_ns; /* what a hold takes until all is copied */
static unsigned int captures;
static unsigned int tries;       /* until a hold is given up */
static unsigned int vain_copies; /* in holds in which a thread woke */
static uint64_t changed_pages;   /* that are seen beside all others */
static unsigned int held_count,
	late_holds;            /* so many of the first holds last too long before they copy anything */
static bool marks_clear;       /* if the kernel has marks; */
static unsigned int clears;    /* so often they were cleared */
static uint64_t fewer_changed; /* with each comparison */
static struct mapping mapped[4];
static size_t mapped_count;
static struct heap_range regions[4];
static size_t region_count;

static void read_pages(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	for (size_t i = 0; i < count; i++) {
		reads += counts_reads;
		memset(ranges[i].copy, (int)(reads < changes ? reads : changes), ranges[i].length);
		ranges[i].status = MEMORY_OK;
	}
}

static struct memory source = { .read_ranges = read_pages };

INSTEAD_OF(lua_process_refresh_maps);
int __wrap_lua_process_refresh_maps(struct lua_process *process, bool *ret_changed)
{
	(void)process;
	*ret_changed = refresh_error != 0;
	return 0;
}

/* Setting regions needs them. */
INSTEAD_OF(lua_process_maps);
const struct maps *__wrap_lua_process_maps(const struct lua_process *process)
{
	(void)process;
	return NULL;
}

INSTEAD_OF(maps_count);
size_t __wrap_maps_count(const struct maps *maps)
{
	(void)maps;
	return mapped_count;
}

INSTEAD_OF(maps_at);
const struct mapping *__wrap_maps_at(const struct maps *maps, size_t index)
{
	(void)maps;
	return &mapped[index];
}

INSTEAD_OF(maps_find);
const struct mapping *__wrap_maps_find(const struct maps *maps, uint64_t address)
{
	(void)maps, (void)address;
	return NULL;
}

/* All that is asked for was written. */
INSTEAD_OF(resident_next_written);
bool __wrap_resident_next_written(int pagemap, uint64_t *at, uint64_t end, uint64_t *ret_begin,
				  uint64_t *ret_end)
{
	(void)pagemap;
	if (*at >= end)
		return false;
	*ret_begin = *at;
	*ret_end = *at = end;
	return true;
}

INSTEAD_OF(resident_clear_marks);
bool __wrap_resident_clear_marks(pid_t pid)
{
	(void)pid;
	clears++;
	return marks_clear;
}

INSTEAD_OF(heap_copy_set_regions);
int __wrap_heap_copy_set_regions(struct heap_copy *copy, const struct heap_range *ranges, size_t count)
{
	region_count = count;
	for (size_t i = 0; i < count && i < 4; i++)
		regions[i] = ranges[i];
	return refresh_error ? refresh_error : __real_heap_copy_set_regions(copy, ranges, count);
}

/* What is read from then on counts. */
INSTEAD_OF(hold_while);
bool __wrap_hold_while(struct hold *hold, void (*read)(void *context), void (*undo)(void *context),
		       void *context)
{
	(void)hold;
	(void)undo;
	counts_reads = true;
	held_count++;
	for (unsigned int i = 0; is_held && i < tries; i++) {
		const unsigned int before = reads;

		read(context);
		if (!wakes || reads == before)
			return true;
		vain_copies++;
	}
	return false;
}

INSTEAD_OF(hold_has_stopped);
bool __wrap_hold_has_stopped(const struct hold *hold)
{
	(void)hold;
	return is_held;
}

INSTEAD_OF(hold_began_ns);
uint64_t __wrap_hold_began_ns(const struct hold *hold)
{
	(void)hold;
	return held_count <= late_holds ? now_ns - 2 * LONG_NS : 0;
}

INSTEAD_OF(clock_gettime);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	*time = (struct timespec){ .tv_nsec = (long)now_ns };
	return 0;
}

INSTEAD_OF(heap_copy_end_hold);
bool __wrap_heap_copy_end_hold(struct heap_copy *of)
{
	const bool has_all = __real_heap_copy_end_hold(of);

	now_ns += copying_ns;
	return has_all;
}

static struct heap_copy *copy;

INSTEAD_OF(heap_copy_check);
uint64_t __wrap_heap_copy_check(struct heap_copy *of)
{
	const uint64_t changed = __real_heap_copy_check(of) + changed_pages;

	changed_pages -= fewer_changed;
	return changed;
}

INSTEAD_OF(running_stack_capture);
void __wrap_running_stack_capture(struct running_stack *stack, struct lua_process *process,
				  struct memory *memory, const struct global_state *global,
				  const struct hold *hold)
{
	(void)process;
	(void)global;
	(void)hold;
	assert_ptr_equal(memory, heap_copy_memory(copy));
	captures++;
	stack->is_captured = true;
}

INSTEAD_OF(running_stack_prepare);
void __wrap_running_stack_prepare(struct running_stack *stack, struct lua_process *process,
				  const struct global_state *global)
{
	(void)stack;
	(void)process;
	(void)global;
}

INSTEAD_OF(hold_count);
uint64_t __wrap_hold_count(const struct hold *hold)
{
	(void)hold;
	return 0;
}

INSTEAD_OF(hold_may_go_on);
bool __wrap_hold_may_go_on(const struct hold *hold)
{
	(void)hold;
	return may_go_on;
}

static int begin(void **state)
{
	const struct heap_range range = { BASE, BASE + PAGES * HEAP_PAGE, false };

	(void)state;
	reads = changes = 0;
	counts_reads = false;
	may_go_on = true;
	refresh_error = 0;
	is_held = wakes = false;
	vain_copies = 0;
	tries = TRIES;
	now_ns = copying_ns = 0;
	captures = 0;
	changed_pages = fewer_changed = 0;
	held_count = late_holds = clears = 0;
	marks_clear = false;
	mapped_count = region_count = 0;
	copy = heap_copy_new(&source);
	return copy && heap_copy_set_regions(copy, &range, 1) == 0 &&
			       heap_copy_view(copy, BASE, PAGES * HEAP_PAGE)
		       ? 0
		       : -1;
}

static int end(void **state)
{
	(void)state;
	heap_copy_free(copy);
	return 0;
}

static int copy_heap_within(uint64_t limit_ns, enum heap_method *ret_method)
{
	struct heap_holding holding = {
		.copy = copy, .pagemap = -1, .limit_ns = limit_ns, .has_helpers = true, .bytes_per_ns = 1
	};
	uint64_t changed = 1;
	int error = heap_holding_copy(&holding, ret_method, &changed);

	assert_int_equal(changed, 0);
	return error;
}

static int copy_heap(enum heap_method *ret_method)
{
	return copy_heap_within(SHORT_NS, ret_method);
}

static void what_does_not_change_is_read_without_a_hold(void **state)
{
	enum heap_method method;

	(void)state;
	assert_int_equal(copy_heap(&method), 0);
	assert_int_equal(method, HEAP_UNCHANGED);
	assert_int_equal(reads, READS_OF_A_LOOK);
}

/* The copy has what the later look has seen. */
static void what_changes_at_one_look_is_looked_at_again(void **state)
{
	enum heap_method method;

	(void)state;
	changes = READS_OF_A_LOOK;
	assert_int_equal(copy_heap(&method), 0);
	assert_int_equal(method, HEAP_UNCHANGED);
	assert_int_equal(reads, 2 * READS_OF_A_LOOK);
	assert_int_equal(*heap_copy_view(copy, BASE, 1), changes);
}

static void what_changes_at_each_look_is_no_copy(void **state)
{
	enum heap_method method;

	(void)state;
	changes = UINT8_MAX;
	assert_int_equal(copy_heap(&method), -EBUSY);
	assert_int_equal(reads, LOOKS * READS_OF_A_LOOK);
}

static void short_memory_is_told_as_that(void **state)
{
	enum heap_method method;

	(void)state;
	refresh_error = -ENOMEM;
	assert_int_equal(copy_heap(&method), -ENOMEM);
}

static void whoever_has_to_end_does_not_look(void **state)
{
	enum heap_method method;

	(void)state;
	may_go_on = false;
	assert_int_equal(copy_heap(&method), -EBUSY);
	assert_int_equal(reads, 0);
}

static bool captures_stack(uint64_t limit_ns, enum heap_method expected, uint64_t *ret_changed)
{
	struct heap_holding holding = { .copy = copy,
					.pagemap = -1,
					.limit_ns = limit_ns,
					.may_leave_out = true,
					.has_helpers = true,
					.bytes_per_ns = 1,
					.stack.is_captured = true };
	enum heap_method method;

	assert_int_equal(heap_holding_copy(&holding, &method, ret_changed), 0);
	assert_int_equal(method, expected);
	return holding.stack.is_captured;
}

static void the_stack_is_captured_in_the_hold_if_there_is_time(void **state)
{
	uint64_t changed;

	(void)state;
	is_held = true;
	copying_ns = LONG_NS - 1;
	assert_true(captures_stack(LONG_NS, HEAP_WHILE_ASLEEP, &changed));
	assert_int_equal(captures, 1);
	now_ns = 0;
	copying_ns = LONG_NS;
	assert_false(captures_stack(LONG_NS, HEAP_WHILE_ASLEEP, &changed));
	assert_int_equal(captures, 1);
}

static void a_copy_without_a_hold_has_no_stack(void **state)
{
	uint64_t changed;

	(void)state;
	assert_false(captures_stack(LONG_NS, HEAP_UNCHANGED, &changed));
	assert_int_equal(captures, 0);
}

/* Then frames and slots may be of two times. */
static void a_copy_with_pages_that_changed_has_no_stack(void **state)
{
	uint64_t changed;

	(void)state;
	is_held = true;
	assert_true(captures_stack(SHORT_NS, HEAP_COMPARED, &changed));
	assert_int_equal(changed, 0);
	changed_pages = 3;
	captures = 0;
	assert_false(captures_stack(SHORT_NS, HEAP_COMPARED, &changed));
	assert_int_equal(changed, 3);
	assert_int_not_equal(captures, 0);
}

/*---- Ways ----*/

/* How many holds it takes, and by which way. */
static unsigned int holds_by(bool has_marks, enum heap_method expected)
{
	struct heap_holding holding = { .copy = copy,
					.pagemap = -1,
					.limit_ns = LONG_NS,
					.may_leave_out = true,
					.has_marks = has_marks,
					.has_helpers = true,
					.bytes_per_ns = 1 };
	enum heap_method method;
	uint64_t changed;

	held_count = 0;
	assert_int_equal(heap_holding_copy(&holding, &method, &changed), 0);
	assert_int_equal(method, expected);
	return held_count;
}

static void a_hold_that_is_late_is_tried_again(void **state)
{
	(void)state;
	is_held = true;
	assert_int_equal(holds_by(false, HEAP_WHILE_ASLEEP), 1);
	late_holds = 1;
	assert_int_equal(holds_by(false, HEAP_ONE_HOLD), 2);
	late_holds = 3;
	assert_int_equal(holds_by(false, HEAP_ONE_HOLD), 4);
	/* Three times; then what is seen to change is copied. */
	late_holds = 4;
	assert_int_equal(holds_by(false, HEAP_COMPARED), 5);
	assert_int_equal(clears, 0);
}

static void marks_are_used_where_the_kernel_has_them(void **state)
{
	(void)state;
	is_held = true;
	late_holds = 1;
	marks_clear = true;
	assert_int_equal(holds_by(false, HEAP_ONE_HOLD), 2);
	assert_int_equal(clears, 0);
	assert_int_equal(holds_by(true, HEAP_WRITTEN_PAGES), 2);
	assert_int_equal(clears, 1);
	/* They cannot be cleared. */
	marks_clear = false;
	assert_int_equal(holds_by(true, HEAP_ONE_HOLD), 2);
	assert_int_equal(clears, 2);
}

static void the_copy_is_of_the_hold(void **state)
{
	(void)state;
	is_held = true;
	changes = 1;
	assert_int_equal(holds_by(false, HEAP_WHILE_ASLEEP), 1);
	assert_int_equal(reads, 1);
	assert_int_equal(*heap_copy_view(copy, BASE, 1), 1);
	end(state);
	begin(state);
	is_held = true;
	changes = 1;
	marks_clear = true;
	late_holds = 1;
	assert_int_equal(holds_by(true, HEAP_WRITTEN_PAGES), 2);
	assert_int_equal(*heap_copy_view(copy, BASE, 1), 1);
}

static void comparisons_end_when_nothing_gets_better(void **state)
{
	(void)state;
	is_held = true;
	late_holds = 4;
	changed_pages = 30;
	assert_int_equal(holds_by(false, HEAP_COMPARED), 4 + 2);
	changed_pages = 30;
	fewer_changed = 1;
	assert_int_equal(holds_by(false, HEAP_COMPARED), 4 + 8);
	changed_pages = 3;
	fewer_changed = 1;
	assert_int_equal(holds_by(false, HEAP_COMPARED), 4 + 4);
	fewer_changed = 0;
}

/*---- Mappings ----*/

/* Threads that are stopped wait for a few copies in vain, not for a thousand. */
static void where_a_thread_wakes_in_each_copy_of_all_less_is_copied(void **state)
{
	enum heap_method method;

	(void)state;
	is_held = wakes = true;
	assert_int_equal(copy_heap_within(LONG_NS, &method), 0);
	assert_int_equal(method, HEAP_COMPARED);
	assert_in_range(vain_copies, 1, 2 * 8);
	assert_int_equal(captures, vain_copies + 1);
}

/* So it is where a few long holds take all the time that is granted to holds in vain. */
static void less_is_copied_where_holds_in_vain_are_long(void **state)
{
	enum heap_method method;

	(void)state;
	is_held = wakes = true;
	tries = 3;
	assert_int_equal(copy_heap_within(LONG_NS, &method), 0);
	assert_int_equal(method, HEAP_COMPARED);
	assert_int_equal(vain_copies, 2 * 3);
	assert_int_equal(captures, vain_copies + 1);
}

/* Nobody has asked for a heap of two times. */
static void pages_that_were_not_copied_in_the_hold_may_not_have_changed(void **state)
{
	enum heap_method method;

	(void)state;
	is_held = wakes = true;
	changed_pages = 3;
	assert_int_equal(copy_heap_within(LONG_NS, &method), -EBUSY);
}

static void a_program_may_have_its_heap_where_it_can_write(void **state)
{
	struct heap_holding holding = { .copy = copy };

	(void)state;
	mapped_count = 4;
	for (size_t i = 0; i < mapped_count; i++)
		mapped[i] = (struct mapping){ .begin = BASE + i * HEAP_PAGE,
					      .end = BASE + (i + 1) * HEAP_PAGE };
	mapped[0].access = MAPPING_READ;
	mapped[1].access = MAPPING_WRITE;
	mapped[2].access = MAPPING_READ | MAPPING_WRITE;
	mapped[3].access = MAPPING_READ | MAPPING_WRITE | MAPPING_SHARED;
	assert_int_equal(heap_holding_set_regions(&holding), 0);
	assert_int_equal(region_count, 2);
	assert_int_equal(regions[0].begin, BASE + 2 * HEAP_PAGE);
	assert_int_equal(regions[0].end, BASE + 3 * HEAP_PAGE);
	assert_int_equal(regions[1].begin, BASE + 3 * HEAP_PAGE);
}

/* Where the pagemap can be read. */
static unsigned int searches;

INSTEAD_OF(heap_copy_fill);
void __wrap_heap_copy_fill(struct heap_copy *of, enum heap_fill fill, heap_copy_next *next, void *context)
{
	(void)of, (void)next, (void)context;
	assert_int_equal(fill, HEAP_FILL_ALL);
	searches++;
}

static void what_lies_beside_is_copied_where_it_is_known_what_is_there(void **state)
{
	struct heap_holding holding = { .copy = copy, .fill = HEAP_FILL_ALL };

	(void)state;
	searches = 0;
	for (holding.pagemap = -2; holding.pagemap < 2; holding.pagemap++) {
		assert_int_equal(heap_holding_fill(&holding), 0);
		assert_int_equal(searches, holding.pagemap < 0 ? 0 : holding.pagemap + 1);
	}
	refresh_error = -ENOMEM;
	assert_int_equal(heap_holding_fill(&holding), -ENOMEM);
	assert_int_equal(searches, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_does_not_change_is_read_without_a_hold, begin, end),
		cmocka_unit_test_setup_teardown(what_changes_at_one_look_is_looked_at_again, begin, end),
		cmocka_unit_test_setup_teardown(what_changes_at_each_look_is_no_copy, begin, end),
		cmocka_unit_test_setup_teardown(short_memory_is_told_as_that, begin, end),
		cmocka_unit_test_setup_teardown(whoever_has_to_end_does_not_look, begin, end),
		cmocka_unit_test_setup_teardown(the_stack_is_captured_in_the_hold_if_there_is_time, begin,
						end),
		cmocka_unit_test_setup_teardown(a_copy_without_a_hold_has_no_stack, begin, end),
		cmocka_unit_test_setup_teardown(a_copy_with_pages_that_changed_has_no_stack, begin, end),
		cmocka_unit_test_setup_teardown(a_hold_that_is_late_is_tried_again, begin, end),
		cmocka_unit_test_setup_teardown(marks_are_used_where_the_kernel_has_them, begin, end),
		cmocka_unit_test_setup_teardown(the_copy_is_of_the_hold, begin, end),
		cmocka_unit_test_setup_teardown(comparisons_end_when_nothing_gets_better, begin, end),
		cmocka_unit_test_setup_teardown(where_a_thread_wakes_in_each_copy_of_all_less_is_copied,
						begin, end),
		cmocka_unit_test_setup_teardown(less_is_copied_where_holds_in_vain_are_long, begin, end),
		cmocka_unit_test_setup_teardown(pages_that_were_not_copied_in_the_hold_may_not_have_changed,
						begin, end),
		cmocka_unit_test_setup_teardown(a_program_may_have_its_heap_where_it_can_write, begin, end),
		cmocka_unit_test_setup_teardown(what_lies_beside_is_copied_where_it_is_known_what_is_there,
						begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

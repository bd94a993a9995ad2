/* SPDX-License-Identifier: MIT */
/* The states of a VM as they come and go, and where a core file says they may be. */
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <cmocka.h>

#include "memory/core_file.h"
#include "src/inspect/core_maps.h"
#include "src/inspect/loop_clock.h"
#include "src/inspect/stack_states.h"
#include "src/inspect/vm_states.h"
#include "src/linux/clocks/clock.h"
#include "src/linux/proc/resident.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_memory.h"
#include "tests/unit/open_files.h"

enum { PAGE = 0x1000, PID = 77, SEARCHES = 8, FIRST_G = 0x40000000 };

/* Each range that is searched has so many states; each g below gone_from is still one. */
static struct {
	struct {
		uint64_t begin, end;
	} ranges[SEARCHES];
	size_t count, in_each, asked_max;
	uint64_t gone_from;
	pid_t opened;
	int pages;          /* the descriptor of its pagemap, or a negative errno */
	uint64_t run_bytes; /* after so many, there is another page that was never touched; 0: after none */
} searched;

static uint64_t now_ns, day_ns;

INSTEAD_OF(recognise_states);
size_t __wrap_recognise_states(struct memory *memory, const struct vm_code *vm, uint64_t range_begin,
			       uint64_t range_end, uint64_t *ret_g, size_t max)
{
	const size_t count = searched.in_each < max ? searched.in_each : max;

	(void)memory;
	(void)vm;
	assert_in_range(searched.count, 0, SEARCHES - 1);
	searched.asked_max = max;
	searched.ranges[searched.count].begin = range_begin;
	searched.ranges[searched.count++].end = range_end;
	for (size_t i = 0; i < count; i++)
		ret_g[i] = range_begin + 8 * i;
	return searched.in_each;
}

INSTEAD_OF(recognise_finds_state);
bool __wrap_recognise_finds_state(struct memory *memory, const struct vm_code *vm, uint64_t g)
{
	(void)memory;
	(void)vm;
	return g < searched.gone_from;
}

INSTEAD_OF(resident_open);
int __wrap_resident_open(pid_t pid)
{
	searched.opened = pid;
	return searched.pages;
}

/* The first page of each mapping was never touched, unless all pages of a core file are meant. */
INSTEAD_OF(resident_next);
bool __wrap_resident_next(int fd, uint64_t *at, uint64_t end, uint64_t *ret_begin, uint64_t *ret_end)
{
	(void)fd;
	if (*at >= end)
		return false;
	*ret_begin = searched.opened ? *at + PAGE : *at;
	*at = searched.run_bytes && end - *at > searched.run_bytes ? *at + searched.run_bytes : end;
	*ret_end = *at;
	return *ret_begin < end;
}

INSTEAD_OF(clock_gettime);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	const uint64_t now = clock == CLOCK_REALTIME ? day_ns : now_ns;

	*ret_time = (struct timespec){ .tv_sec = (time_t)(now / NS_PER_SECOND),
				       .tv_nsec = (long)(now % NS_PER_SECOND) };
	return 0;
}

/*---- A core file ----*/

static struct core_mapping mapped[6];
static size_t mapped_count;
static uint64_t vdso;

INSTEAD_OF(core_file_mapping_count);
size_t __wrap_core_file_mapping_count(const struct core_file *core)
{
	(void)core;
	return mapped_count;
}

INSTEAD_OF(core_file_mapping);
const struct core_mapping *__wrap_core_file_mapping(const struct core_file *core, size_t index)
{
	(void)core;
	return &mapped[index];
}

INSTEAD_OF(core_file_vdso);
uint64_t __wrap_core_file_vdso(const struct core_file *core)
{
	(void)core;
	return vdso;
}

static int begin(void **state)
{
	(void)state;
	memset(&searched, 0, sizeof(searched));
	searched.gone_from = UINT64_MAX;
	searched.pages = -ENOENT;
	mapped_count = 0;
	vdso = 0;
	return 0;
}

static void map(uint64_t at, uint32_t flags, uint64_t offset, const char *path)
{
	mapped[mapped_count++] = (struct core_mapping){
		.begin = at, .end = at + 2 * PAGE, .flags = flags, .offset = offset, .path = path
	};
}

static struct maps *load(void)
{
	struct maps *maps = maps_new(PID);

	assert_non_null(maps);
	assert_int_equal(core_maps_load(NULL, maps), 0);
	return maps;
}

static void mappings_of_a_core_are_as_the_process_had_them(void **state)
{
	struct maps *maps;

	(void)state;
	map(0x10000, PF_R | PF_X, 0x3000, "/opt/a b\nc.so");
	map(0x20000, PF_R | PF_W, 0, NULL);
	map(0x30000, PF_R | PF_X, 0, NULL);
	map(0x40000, 0, 0x1000, "/opt/other.so");
	map(0x50000, PF_R, 0, "/opt/a b\nc.so");
	vdso = 0x30000;
	maps = load();
	assert_int_equal(maps_count(maps), 5);
	assert_int_equal(maps_at(maps, 0)->begin, 0x10000);
	assert_int_equal(maps_at(maps, 0)->end, 0x12000);
	assert_int_equal(maps_at(maps, 0)->offset, 0x3000);
	assert_string_equal(maps_at(maps, 0)->path, "/opt/a b\nc.so");
	assert_int_equal(maps_at(maps, 0)->access, MAPPING_READ | MAPPING_EXECUTE);
	assert_int_equal(maps_at(maps, 1)->access, MAPPING_READ | MAPPING_WRITE);
	assert_string_equal(maps_at(maps, 1)->path, "");
	assert_string_equal(maps_at(maps, 2)->path, "[vdso]");
	assert_int_equal(maps_at(maps, 3)->access, 0);
	/* A file has one number, and no other file has that; memory has none. */
	assert_int_not_equal(maps_at(maps, 0)->inode, 0);
	assert_int_not_equal(maps_at(maps, 0)->inode, maps_at(maps, 3)->inode);
	assert_int_equal(maps_at(maps, 0)->inode, maps_at(maps, 4)->inode);
	assert_int_equal(maps_at(maps, 1)->inode, 0);
	assert_int_equal(maps_at(maps, 2)->inode, 0);
	assert_int_equal(maps_at(maps, 0)->device, 0);
	maps_free(maps);
}

/*---- States ----*/

static void states_are_in_memory_of_ones_own_that_may_be_written(void **state)
{
	const unsigned int files = open_files_count();
	struct vm_states states = { 0 };
	struct maps *maps;

	(void)state;
	map(0x10000, PF_R | PF_X, 0, "/opt/a.so");
	map(0x20000, PF_R | PF_W, 0, NULL);
	map(0x30000, PF_R | PF_W, 0, "/opt/a.so"); /* a file's data */
	map(0x40000, PF_R, 0, NULL);
	map(0x50000, PF_R | PF_W, 0, NULL);
	map(0x60000, PF_R | PF_W, 0, "/anon_hugepage (deleted)");
	maps = load();
	searched.in_each = 2;
	searched.pages = memfd_create("pagemap", MFD_CLOEXEC);
	assert_true(searched.pages >= 0);
	assert_true(vm_states_add(&states, 5));
	vm_states_search(&states, NULL, NULL, maps, PID);
	assert_int_equal(open_files_count(), files);
	assert_int_equal(searched.opened, PID);
	assert_int_equal(searched.count, 3);
	/* Of a process, only what it has touched. */
	assert_int_equal(searched.ranges[0].begin, 0x21000);
	assert_int_equal(searched.ranges[0].end, 0x22000);
	assert_int_equal(searched.ranges[1].begin, 0x51000);
	assert_int_equal(searched.ranges[2].begin, 0x61000);
	assert_int_equal(searched.asked_max, VM_STATES_MAX - 4);
	/* What was known before is not. */
	assert_int_equal(states.count, 6);
	assert_int_equal(states.g[0], 0x21000);
	assert_int_equal(states.g[1], 0x21008);
	assert_int_equal(states.g[3], 0x51008);
	assert_int_equal(states.g[5], 0x61008);
	begin(state);
	searched.in_each = 1;
	vm_states_search(&states, NULL, NULL, maps, 0);
	assert_int_equal(searched.opened, 0);
	assert_int_equal(searched.ranges[0].begin, 0x20000);
	assert_int_equal(states.count, 3);
	/* More than there may be. */
	begin(state);
	searched.in_each = VM_STATES_MAX - 1;
	vm_states_search(&states, NULL, NULL, maps, 0);
	assert_int_equal(states.count, VM_STATES_MAX);
	assert_int_equal(searched.asked_max, 0);
	vm_states_clear(&states);
	assert_int_equal(states.count, 0);
	assert_null(states.g);
	maps_free(maps);
}

static void a_state_is_kept_once_while_there_is_room(void **state)
{
	struct vm_states states = { 0 };

	(void)state;
	for (uint64_t i = 0; i < VM_STATES_MAX; i++)
		assert_true(vm_states_add(&states, FIRST_G + i));
	assert_int_equal(states.count, VM_STATES_MAX);
	assert_true(vm_states_add(&states, FIRST_G));
	assert_true(vm_states_add(&states, FIRST_G + VM_STATES_MAX - 1));
	assert_false(vm_states_add(&states, FIRST_G + VM_STATES_MAX));
	vm_states_drop(&states, FIRST_G + 1);
	vm_states_drop(&states, FIRST_G + VM_STATES_MAX);
	assert_int_equal(states.count, VM_STATES_MAX - 1);
	assert_int_equal(states.g[0], FIRST_G);
	assert_int_equal(states.g[1], FIRST_G + 2);
	assert_true(vm_states_add(&states, FIRST_G + VM_STATES_MAX));
	vm_states_clear(&states);
}

static void each_state_has_its_turn_until_it_is_gone(void **state)
{
	struct vm_states states = { 0 };

	(void)state;
	assert_int_equal(vm_states_next(&states, NULL, NULL), 0);
	for (uint64_t i = 1; i <= 3; i++)
		assert_true(vm_states_add(&states, i));
	for (uint64_t i = 0; i < 6; i++)
		assert_int_equal(vm_states_next(&states, NULL, NULL), 1 + i % 3);
	searched.gone_from = 2;
	for (int i = 0; i < 4; i++)
		assert_int_equal(vm_states_next(&states, NULL, NULL), 1);
	assert_int_equal(states.count, 1);
	searched.gone_from = 0;
	assert_int_equal(vm_states_next(&states, NULL, NULL), 0);
	assert_int_equal(states.count, 0);
	vm_states_clear(&states);
}

static void more_and_more_searches_are_skipped(void **state)
{
	static const unsigned int skipped[] = { 0, 1, 3, 7, 15, 16, 16 };
	struct vm_states states = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(skipped) / sizeof(skipped[0]); i++) {
		for (unsigned int j = 0; j < skipped[i]; j++)
			assert_false(vm_states_search_is_due(&states));
		assert_true(vm_states_search_is_due(&states));
	}
}

/*---- The stack of a thread ----*/

enum { STACK_END = 0x200000, STACK_SEARCHED = 256 << 10 };

/* Bytes of the stack tell where they are; below readable_from there are none. */
static uint64_t readable_from;

static void read_stack(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	for (size_t i = 0; i < count; i++) {
		assert_true(ranges[i].address + ranges[i].length <= STACK_END);
		ranges[i].status = ranges[i].address < readable_from ? MEMORY_UNMAPPED : MEMORY_OK;
		memset(ranges[i].copy, (int)(ranges[i].address >> 16), ranges[i].length);
	}
}

static struct memory stack_memory = { .read_ranges = read_stack };
static const struct lua_image *const lua = (const struct lua_image *)&stack_memory;

/* Each part of a stack has one state; only that part is in the snapshot. */
INSTEAD_OF(unknown_states_linked);
size_t __wrap_unknown_states_linked(struct snapshot *snapshot, const struct lua_image *of,
				    struct memory *live, const struct memory_range *stack,
				    struct state_clue clues[static STATE_CLUES_MAX], size_t count)
{
	const unsigned char *copy = snapshot_view(snapshot, stack->address, stack->length);

	assert_ptr_equal(of, lua);
	assert_ptr_equal(live, &stack_memory);
	assert_non_null(copy);
	assert_int_equal(copy[0], stack->address >> 16);
	assert_in_range(searched.count, 0, SEARCHES - 1);
	if (searched.count)
		assert_null(snapshot_view(snapshot, searched.ranges[searched.count - 1].begin, 1));
	searched.ranges[searched.count].begin = stack->address;
	searched.ranges[searched.count++].end = stack->address + stack->length;
	clues[count].g = stack->address;
	return count + 1;
}

/* How many clues a stack of so many bytes has. */
static size_t search_stack(uint64_t bytes, struct state_clue ret_clues[static STATE_CLUES_MAX])
{
	const struct memory_range stack = { .address = STACK_END - bytes, .length = bytes };
	const unsigned int files = open_files_count();
	struct snapshot *snapshot = snapshot_new(&stack_memory);
	size_t count;

	assert_non_null(snapshot);
	searched.count = 0;
	searched.pages = memfd_create("pagemap", MFD_CLOEXEC);
	assert_true(searched.pages >= 0);
	count = stack_states_find(snapshot, lua, &stack_memory, PID, &stack, ret_clues);
	assert_int_equal(searched.opened, PID);
	assert_int_equal(open_files_count(), files);
	snapshot_free(snapshot);
	return count;
}

static void states_on_a_stack_are_sought_near_where_its_thread_began(void **state)
{
	const uint64_t searched_from = STACK_END - STACK_SEARCHED;
	struct state_clue clues[STATE_CLUES_MAX];

	(void)state;
	readable_from = 0;
	assert_int_equal(search_stack(8 * PAGE, clues), 1);
	assert_int_equal(searched.ranges[0].begin, STACK_END - 7 * PAGE);
	assert_int_equal(searched.ranges[0].end, STACK_END);
	assert_int_equal(search_stack(STACK_SEARCHED, clues), 1);
	assert_int_equal(searched.ranges[0].begin, searched_from + PAGE);
	assert_int_equal(search_stack(STACK_SEARCHED + 4 * PAGE, clues), 1);
	assert_int_equal(searched.ranges[0].begin, searched_from + PAGE);
	/* Pages that were never touched are left out. */
	searched.run_bytes = STACK_SEARCHED / 2;
	assert_int_equal(search_stack(4 * STACK_SEARCHED, clues), 2);
	assert_int_equal(searched.ranges[0].end, STACK_END - STACK_SEARCHED / 2);
	assert_int_equal(searched.ranges[1].begin, STACK_END - STACK_SEARCHED / 2 + PAGE);
	assert_int_equal(clues[0].g, searched.ranges[0].begin);
	assert_int_equal(clues[1].g, searched.ranges[1].begin);
	/* So are those that cannot be read. */
	readable_from = STACK_END - STACK_SEARCHED / 2;
	assert_int_equal(search_stack(STACK_SEARCHED, clues), 1);
	assert_int_equal(clues[0].g, STACK_END - STACK_SEARCHED / 2 + PAGE);
}

enum { MAPPED_FROM = 0x100000, MAPPED_TO = 0x200000 };

static struct native_stack bound(bool expected, struct stack_place place)
{
	const struct mapping mapping = { .begin = MAPPED_FROM, .end = MAPPED_TO };
	struct native_stack stack = { .range = { .length = 1 } };

	assert_int_equal(stack_states_bound(&mapping, &place, &stack), expected);
	return stack;
}

static void assert_bounds(struct native_stack stack, uint64_t begin, uint64_t end, bool is_sure)
{
	assert_int_equal(stack.range.address, begin);
	assert_int_equal(stack.range.length, end - begin);
	assert_int_equal(stack.sure.length, is_sure ? end - begin : 0);
	assert_int_equal(stack.sure.address, is_sure ? begin : 0);
}

static void a_stack_ends_where_those_of_others_do(void **state)
{
	const uint64_t at = MAPPED_FROM + 0x5000, below = MAPPED_FROM + 0x2000, above = MAPPED_FROM + 0x9000;

	(void)state;
	/* The mapping is this thread's, known by its end or not. */
	assert_bounds(bound(true, (struct stack_place){ at, true, 0x1000, false, above, false }), MAPPED_FROM,
		      at, true);
	assert_bounds(bound(true, (struct stack_place){ at, false, 0x1000, false, MAPPED_TO, false }),
		      MAPPED_FROM, MAPPED_TO, true);
	/* Others are in it, too. */
	assert_bounds(bound(true, (struct stack_place){ at, true, below, true, above, false }), below, at,
		      true);
	bound(false, (struct stack_place){ at, true, below, false, UINT64_MAX, false });
	bound(false, (struct stack_place){ at, false, 0, false, above, false });
	/* Or may be. */
	assert_bounds(bound(true, (struct stack_place){ at, true, below, true, above, true }), below, at,
		      false);
}

/* Without its pagemap, reading might make the kernel map pages. */
static void a_stack_whose_pages_are_unknown_is_not_searched(void **state)
{
	const struct memory_range stack = { .address = STACK_END - 8 * PAGE, .length = 8 * PAGE };
	struct snapshot *snapshot = snapshot_new(&stack_memory);
	struct state_clue clues[STATE_CLUES_MAX];

	(void)state;
	readable_from = 0;
	assert_int_equal(stack_states_find(snapshot, lua, &stack_memory, PID, &stack, clues), 0);
	assert_int_equal(searched.count, 0);
	snapshot_free(snapshot);
}

/*---- The clock of an event loop ----*/

static void a_loop_has_the_clock_of_the_machine_or_of_the_day(void **state)
{
	const uint64_t ms = 1000000, hour = UINT64_C(3600) * NS_PER_SECOND, second = NS_PER_SECOND;
	struct memory *memory = made_up_memory_begin();

	(void)state;
	now_ns = 5 * hour;
	day_ns = UINT64_C(1700000000) * NS_PER_SECOND;
	put(MADE_UP_AT, (now_ns - 70 * ms) / ms, 8);
	assert_int_equal(loop_clock_read(memory, MADE_UP_AT, 0), now_ns - 70 * ms);
	put(MADE_UP_AT, (now_ns - hour + ms) / ms, 8);
	assert_int_equal(loop_clock_read(memory, MADE_UP_AT, 0), now_ns - hour + ms);
	put(MADE_UP_AT, (now_ns - hour) / ms, 8);
	assert_int_equal(loop_clock_read(memory, MADE_UP_AT, 0), 0);
	/* It has not been read yet, or is in the future. */
	put(MADE_UP_AT, 0, 8);
	assert_int_equal(loop_clock_read(memory, MADE_UP_AT, 0), 0);
	put(MADE_UP_AT, (now_ns + second) / ms, 8);
	assert_int_equal(loop_clock_read(memory, MADE_UP_AT, 0), 0);
	put(MADE_UP_AT, (day_ns - 2 * second) / ms, 8);
	assert_int_equal(loop_clock_read(memory, MADE_UP_AT, 0), now_ns - 2 * second);
	put(MADE_UP_AT, (day_ns - hour) / ms, 8);
	assert_int_equal(loop_clock_read(memory, MADE_UP_AT, 0), 0);
	/* Where its clock is ahead or behind, a time of the machine's is wrong. */
	put(MADE_UP_AT, (now_ns + 2 * hour - second) / ms, 8);
	assert_int_equal(loop_clock_read(memory, MADE_UP_AT, (int64_t)(2 * hour)), now_ns - second);
	put(MADE_UP_AT, (now_ns - 2 * hour - second) / ms, 8);
	assert_int_equal(loop_clock_read(memory, MADE_UP_AT, -(int64_t)(2 * hour)), now_ns - second);
	put(MADE_UP_AT, (now_ns - second) / ms, 8);
	assert_int_equal(loop_clock_read(memory, MADE_UP_AT, -(int64_t)(2 * second)), 0);
	assert_int_equal(loop_clock_read(memory, MADE_UP_AT, (int64_t)(hour / 2)),
			 now_ns - hour / 2 - second);
	/* Before the machine was there. */
	now_ns = second;
	put(MADE_UP_AT, (day_ns - 2 * second) / ms, 8);
	assert_int_equal(loop_clock_read(memory, MADE_UP_AT, 0), 0);
	put(MADE_UP_AT, (day_ns - second) / ms, 8);
	assert_int_equal(loop_clock_read(memory, MADE_UP_AT, 0), 0);
	/* No time at all. */
	put(MADE_UP_AT, UINT64_MAX / ms + 1, 8);
	assert_int_equal(loop_clock_read(memory, MADE_UP_AT, 0), 0);
	assert_int_equal(loop_clock_read(memory, MADE_UP_AT + MADE_UP_BYTES, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(mappings_of_a_core_are_as_the_process_had_them, begin),
		cmocka_unit_test_setup(states_are_in_memory_of_ones_own_that_may_be_written, begin),
		cmocka_unit_test_setup(a_state_is_kept_once_while_there_is_room, begin),
		cmocka_unit_test_setup(each_state_has_its_turn_until_it_is_gone, begin),
		cmocka_unit_test_setup(more_and_more_searches_are_skipped, begin),
		cmocka_unit_test_setup(states_on_a_stack_are_sought_near_where_its_thread_began, begin),
		cmocka_unit_test_setup(a_stack_ends_where_those_of_others_do, begin),
		cmocka_unit_test_setup(a_stack_whose_pages_are_unknown_is_not_searched, begin),
		cmocka_unit_test_setup(a_loop_has_the_clock_of_the_machine_or_of_the_day, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* How often the heap of a process that runs is copied, until the copy is of one time. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "output/heap/heap_builder.h"
#include "src/heap/heap_capture.h"
#include "src/heap/heap_holding.h"
#include "src/inspect/lua_process.h"
#include "src/linux/proc/resident.h"
#include "tests/unit/instead_of.h"
#include "unwind/allocation/allocated.h"
#include "unwind/heap/heap_copy.h"
#include "unwind/heap/heap_read.h"

static struct memory memory;

#include "tests/unit/one_global.h"

enum { TRIES = 20, COMPARED_TRIES = 3, NEAR = 4, FILLS = 6, MS = 1000 * 1000, UNSET = 77 };

static struct hold *const some_hold = (struct hold *)&memory;

static struct {
	/* What the readings find, the last one for ever. */
	struct heap_account finds;
	size_t sound_after; /* readings; then all is well */
	int read_error, copy_error, measure_error;
	enum heap_method method;
	uint64_t changed;
	bool has_missed;
	uint64_t grows_by; /* what is kept, of 1000 bytes, with each filling */
	uint64_t held_ns;  /* by each try */
	size_t closed_after;
	size_t globals;
	/* What was done. */
	size_t readings, copies, fills, fills_of_last, graphs, near;
	uint64_t total_ns, kept;
	uint64_t limit_ns;
	bool may_leave_out;
} world;

INSTEAD_OF(resident_open);
int __wrap_resident_open(pid_t pid)
{
	(void)pid;
	return -EACCES;
}

INSTEAD_OF(lua_process_maps);
const struct maps *__wrap_lua_process_maps(const struct lua_process *process)
{
	(void)process;
	return NULL;
}

INSTEAD_OF(lua_process_global_count);
size_t __wrap_lua_process_global_count(const struct lua_process *process)
{
	(void)process;
	return world.globals;
}

INSTEAD_OF(heap_holding_set_regions);
int __wrap_heap_holding_set_regions(struct heap_holding *holding)
{
	world.limit_ns = holding->limit_ns;
	world.may_leave_out = holding->may_leave_out;
	return 0;
}

INSTEAD_OF(heap_holding_refresh);
int __wrap_heap_holding_refresh(struct heap_holding *holding)
{
	(void)holding;
	world.fills_of_last = 0;
	return 0;
}

INSTEAD_OF(heap_measure);
int __wrap_heap_measure(struct heap_copy *copy, const struct vm_code *of, uint64_t g,
			struct heap_account *account)
{
	(void)copy, (void)of, (void)g;
	account->gc_total = UNSET; /* of no account */
	return world.measure_error;
}

INSTEAD_OF(heap_copy_kept);
uint64_t __wrap_heap_copy_kept(const struct heap_copy *copy)
{
	(void)copy;
	return world.kept;
}

INSTEAD_OF(heap_copy_missed);
uint64_t __wrap_heap_copy_missed(const struct heap_copy *copy)
{
	(void)copy;
	return world.has_missed && world.readings <= world.sound_after;
}

INSTEAD_OF(heap_holding_fill);
int __wrap_heap_holding_fill(struct heap_holding *holding)
{
	world.fills++;
	world.fills_of_last++;
	world.near += holding->fill == HEAP_FILL_NEAR && world.fills_of_last == 1;
	world.kept += world.grows_by;
	return 0;
}

INSTEAD_OF(heap_holding_copy);
int __wrap_heap_holding_copy(struct heap_holding *holding, enum heap_method *ret_method,
			     uint64_t *ret_changed)
{
	world.copies++;
	world.total_ns += world.held_ns;
	holding->held_bytes += 10;
	holding->too_long_ns = 400 * MS;
	*ret_method = world.method;
	*ret_changed = world.readings < world.sound_after ? world.changed : 0;
	return world.copy_error;
}

INSTEAD_OF(running_stack_unwind);
void __wrap_running_stack_unwind(struct running_stack *stack, struct lua_process *process,
				 const struct global_state *of)
{
	(void)stack, (void)process, (void)of;
}

INSTEAD_OF(heap_read);
int __wrap_heap_read(struct heap_copy *copy, const struct vm_code *of, uint64_t g,
		     const struct heap_read_options *options, struct heap_graph *ret_graph,
		     struct heap_account *account)
{
	static const struct heap_account sound = { .gc_total = 100, .sum = 100 };
	const struct heap_account *found = world.readings++ < world.sound_after ? &world.finds : &sound;

	(void)copy, (void)of, (void)g, (void)options, (void)ret_graph;
	account->gc_total = found->gc_total;
	account->sum = found->sum;
	account->uncertain = found->uncertain;
	if (world.readings <= world.sound_after && world.read_error)
		return world.read_error;
	world.graphs++;
	return 0;
}

INSTEAD_OF(heap_graph_free);
void __wrap_heap_graph_free(struct heap_graph *graph)
{
	(void)graph;
	world.graphs--;
}

INSTEAD_OF(allocation_counters_read);
bool __wrap_allocation_counters_read(struct memory *of, const struct global_state *state,
				     struct allocation_counters *ret_counters)
{
	(void)of, (void)state, (void)ret_counters;
	return world.readings < world.closed_after;
}

INSTEAD_OF(hold_count_anew);
void __wrap_hold_count_anew(struct hold *hold)
{
	(void)hold;
	world.total_ns = 0;
}

INSTEAD_OF(hold_count);
uint64_t __wrap_hold_count(const struct hold *hold)
{
	(void)hold;
	return world.copies;
}

INSTEAD_OF(hold_total_ns);
uint64_t __wrap_hold_total_ns(const struct hold *hold)
{
	(void)hold;
	return world.total_ns;
}

INSTEAD_OF(hold_longest_ns);
uint64_t __wrap_hold_longest_ns(const struct hold *hold)
{
	(void)hold;
	return world.held_ns;
}

static int begin(void **state)
{
	(void)state;
	memset(&world, 0, sizeof(world));
	world.finds = (struct heap_account){ .gc_total = 100, .sum = 99 };
	world.globals = 1;
	world.method = HEAP_ONE_HOLD;
	world.closed_after = SIZE_MAX;
	world.kept = 1000;
	return 0;
}

static struct heap_account capture(uint64_t max_pause_ns, int expected)
{
	const struct heap_capture_options options = { .max_pause_ns = max_pause_ns };
	struct heap_account account = { .pid = 71 };
	struct heap_graph graph = { 0 };

	assert_int_equal(heap_capture(NULL, some_hold, 0, &options, &graph, &account), expected);
	assert_int_equal(world.graphs, expected ? 0 : 1); /* of the last try */
	return account;
}

static void a_sound_copy_is_the_last(void **state)
{
	struct heap_account account = capture(0, 0);

	(void)state;
	assert_int_equal(account.attempts, 1);
	assert_null(account.retry_reason);
	assert_int_equal(account.holds, 1);
	assert_int_equal(account.copied_held_bytes, 10);
	assert_int_equal(world.limit_ns, HEAP_CAPTURE_PAUSE_NS);
	assert_false(world.may_leave_out);
	world.copies = world.readings = world.graphs = 0;
	world.sound_after = 3;
	world.held_ns = 2 * MS;
	account = capture(5 * MS, 0);
	assert_int_equal(account.attempts, 4);
	assert_string_equal(account.retry_reason, "sizes did not add up");
	assert_int_equal(account.held_ns, 8 * MS);
	assert_int_equal(account.longest_hold_ns, 2 * MS);
	assert_int_equal(account.copied_held_bytes, 40);
	assert_int_equal(world.limit_ns, 5 * MS);
	assert_true(world.may_leave_out);
}

static void why_a_copy_is_none_of_one_time(void **state)
{
	static const struct {
		struct heap_uncertain uncertain;
		bool has_missed;
		uint64_t changed;
		const char *reason;
	} cases[] = {
		{ .has_missed = true, .reason = "memory was new" },
		{ .uncertain.unread_objects = 1, .reason = "memory was new" },
		{ .uncertain.unread_bytes = 1, .reason = "memory was new" },
		{ .uncertain.broken_chains = 1, .reason = "a chain of objects was broken" },
		{ .uncertain.unknown_objects = 1, .reason = "a chain of objects was broken" },
		{ .uncertain.left_out = 1, .reason = "a chain of objects was broken" },
		{ .changed = 1, .reason = "pages had changed" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct heap_account account;

		begin(state);
		world.finds = (struct heap_account){ .gc_total = 9,
						     .sum = 9,
						     .uncertain = cases[i].uncertain };
		world.has_missed = cases[i].has_missed;
		world.changed = cases[i].changed;
		world.sound_after = 1;
		account = capture(0, 0);
		assert_int_equal(account.attempts, 2);
		assert_string_equal(account.retry_reason, cases[i].reason);
		assert_int_equal(account.uncertain.changed_pages, 0);
	}
	begin(state);
	world.sound_after = 1;
	world.read_error = -EIO;
	assert_string_equal(capture(0, 0).retry_reason, "global_State could not be read");
}

/* The last one is shown all the same, with what is uncertain of it. */
static void tries_have_an_end(void **state)
{
	(void)state;
	world.sound_after = SIZE_MAX;
	assert_int_equal(capture(0, 0).attempts, TRIES);
	begin(state);
	world.sound_after = SIZE_MAX;
	world.method = HEAP_COMPARED;
	world.changed = 3;
	world.finds.sum = 100;
	assert_int_equal(capture(0, 0).attempts, COMPARED_TRIES);
	/* Holds together: more than ten times the limit of one. */
	begin(state);
	world.sound_after = SIZE_MAX;
	world.held_ns = 2 * MS;
	assert_int_equal(capture(MS, 0).attempts, 6);
	begin(state);
	world.sound_after = SIZE_MAX;
	world.read_error = -EIO;
	assert_int_equal(capture(0, -EIO).attempts, TRIES);
}

static void what_no_other_try_cures_ends_them(void **state)
{
	struct heap_account account;

	(void)state;
	world.copy_error = -EBUSY;
	assert_int_equal(capture(0, -EBUSY).attempts, 1);
	world.copy_error = -EFBIG;
	world.held_ns = 3 * MS;
	account = capture(0, -EFBIG);
	assert_int_equal(account.attempts, 1);
	assert_int_equal(account.longest_hold_ns, 400 * MS); /* how long it would have been */
	world.copy_error = 0;
	world.measure_error = -ENOMEM;
	assert_int_equal(capture(0, -ENOMEM).attempts, 1);
	begin(state);
	world.sound_after = SIZE_MAX;
	world.read_error = -ENOMEM;
	assert_int_equal(capture(0, -ENOMEM).attempts, 1);
}

static void a_state_that_is_closed_has_no_heap(void **state)
{
	(void)state;
	world.sound_after = SIZE_MAX;
	world.closed_after = 3;
	assert_int_equal(capture(0, -EIO).attempts, 3);
}

/* The memory of other VMs is left out at first. */
static void memory_of_other_vms_is_not_copied_at_first(void **state)
{
	(void)state;
	world.sound_after = SIZE_MAX;
	capture(0, 0);
	assert_int_equal(world.near, 0);
	begin(state);
	world.sound_after = SIZE_MAX;
	world.globals = 2;
	capture(0, 0);
	assert_int_equal(world.near, NEAR);
}

static void new_memory_is_copied_until_there_is_little(void **state)
{
	(void)state;
	world.grows_by = 19; /* less than a fiftieth of what is there */
	capture(0, 0);
	assert_int_equal(world.fills, 1);
	begin(state);
	world.grows_by = 20; /* that is less from 1050 bytes on */
	capture(0, 0);
	assert_int_equal(world.fills, 4);
	begin(state);
	world.grows_by = 1000;
	capture(0, 0);
	assert_int_equal(world.fills, FILLS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_sound_copy_is_the_last, begin),
		cmocka_unit_test_setup(why_a_copy_is_none_of_one_time, begin),
		cmocka_unit_test_setup(tries_have_an_end, begin),
		cmocka_unit_test_setup(what_no_other_try_cures_ends_them, begin),
		cmocka_unit_test_setup(a_state_that_is_closed_has_no_heap, begin),
		cmocka_unit_test_setup(memory_of_other_vms_is_not_copied_at_first, begin),
		cmocka_unit_test_setup(new_memory_is_copied_until_there_is_little, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

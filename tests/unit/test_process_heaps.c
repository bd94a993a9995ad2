/* SPDX-License-Identifier: MIT */
/* Of the heaps of several VMs, those that can be read are there, and the others are told. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "output/heap/heap_builder.h"
#include "src/heap/process_heaps.h"
#include "src/linux/clocks/clock.h"
#include "tests/unit/instead_of.h"
#include "unwind/allocation/allocated.h"

enum { VMS = 4, HELD_NS = 5000, TOO_LONG_NS = 900000, STRING_TABLE = 100 };

/* gc.total of each VM; 0: its memory cannot be read, or is of no VM any more. */
static uint64_t totals[VMS];
static int errors[VMS];
static size_t captured, unheld, order[VMS];
static uint64_t now_ns, busy_takes_ns;

static struct global_state globals[VMS];

INSTEAD_OF(lua_process_global_count);
size_t __wrap_lua_process_global_count(const struct lua_process *process)
{
	(void)process;
	return VMS;
}

INSTEAD_OF(lua_process_global);
const struct global_state *__wrap_lua_process_global(const struct lua_process *process, size_t index)
{
	(void)process;
	globals[index] = (struct global_state){ .g = 0x1000 * (index + 1) };
	return &globals[index];
}

INSTEAD_OF(lua_process_global_path);
const char *__wrap_lua_process_global_path(const struct lua_process *process, size_t index)
{
	(void)process;
	(void)index;
	return "luajit";
}

INSTEAD_OF(lua_process_memory);
struct memory *__wrap_lua_process_memory(struct lua_process *process)
{
	(void)process;
	return NULL;
}

INSTEAD_OF(allocation_counters_read);
bool __wrap_allocation_counters_read(struct memory *memory, const struct global_state *global,
				     struct allocation_counters *ret_counters)
{
	const uint64_t total = totals[global - globals];

	(void)memory;
	if (total)
		*ret_counters = (struct allocation_counters){ .total = total - STRING_TABLE,
							      .string_table = STRING_TABLE };
	return total != 0;
}

INSTEAD_OF(clock_gettime);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_now)
{
	(void)clock;
	*ret_now = (struct timespec){ .tv_sec = (time_t)(now_ns / NS_PER_SECOND),
				      .tv_nsec = (long)(now_ns % NS_PER_SECOND) };
	return 0;
}

INSTEAD_OF(hold_longest_ns);
uint64_t __wrap_hold_longest_ns(const struct hold *hold)
{
	(void)hold;
	return HELD_NS;
}

INSTEAD_OF(heap_capture);
int __wrap_heap_capture(struct lua_process *process, struct hold *hold, size_t global,
			const struct heap_capture_options *options, struct heap_graph *ret_graph,
			struct heap_account *account)
{
	struct heap_builder *builder;

	(void)process;
	(void)hold;
	order[captured++] = global;
	unheld += options->is_unheld;
	now_ns += errors[global] == -EBUSY ? busy_takes_ns : 1;
	account->holds = 2;
	account->longest_hold_ns = errors[global] == -EFBIG ? TOO_LONG_NS + totals[global] : HELD_NS;
	account->gc_total = account->sum = totals[global];
	if (errors[global])
		return errors[global];
	builder = heap_builder_new();
	assert_non_null(builder);
	assert_int_equal(heap_builder_finish(builder, ret_graph), 0);
	heap_builder_free(builder);
	return 0;
}

static struct process_heaps heaps;

static int begin(void **state)
{
	(void)state;
	captured = unheld = 0;
	now_ns = 0;
	busy_takes_ns = 1000;
	for (size_t i = 0; i < VMS; i++) {
		totals[i] = 1000 * (i + 1);
		errors[i] = 0;
	}
	return 0;
}

static int end(void **state)
{
	(void)state;
	process_heaps_clear(&heaps);
	return 0;
}

static int read_heaps(void)
{
	const struct heap_capture_options options = { 0 };

	return process_heaps_read(NULL, NULL, 77, "worker", &options, &heaps);
}

static void assert_missing(size_t at, int error, int64_t bytes)
{
	const struct vm_heap *heap = &heaps.at[at];

	assert_int_equal(heap->error, error);
	assert_int_equal(heap->graph.node_count, 1);
	assert_int_equal(heap->account.vm, at + 1);
	assert_string_equal(heap->account.process, "worker");
	assert_true(heap_account_is_missing(&heap->account));
	assert_int_equal(heap->account.g, 0x1000 * (at + 1));
	assert_int_equal(heap_account_difference(&heap->account), bytes);
	assert_false(heap_account_is_whole(&heap->account));
	/* None of its objects was looked at. */
	assert_int_equal(heap->account.uncertain.unread_objects, 0);
}

static void all_heaps_are_there(void **state)
{
	(void)state;
	assert_int_equal(read_heaps(), 0);
	assert_int_equal(heaps.count, VMS);
	assert_int_equal(process_heaps_missing(&heaps), 0);
	for (size_t i = 0; i < VMS; i++)
		assert_true(heap_account_is_whole(&heaps.at[i].account));
}

static void a_heap_that_is_too_large_leaves_the_others(void **state)
{
	(void)state;
	errors[1] = -EFBIG;
	assert_int_equal(read_heaps(), 0);
	assert_int_equal(heaps.count, VMS);
	assert_int_equal(captured, VMS);
	assert_missing(1, -EFBIG, 2000);
	assert_int_equal(process_heaps_missing(&heaps), 1);
	assert_ptr_equal(process_heaps_missing_by(&heaps, -EFBIG), &heaps.at[1]);
	assert_null(process_heaps_missing_by(&heaps, -EBUSY));
	assert_int_equal(heaps.at[1].too_long_ns, TOO_LONG_NS + totals[1]);
	assert_int_equal(heaps.at[1].account.longest_hold_ns, HELD_NS);
	assert_true(heap_account_is_whole(&heaps.at[0].account));
	assert_true(heap_account_is_whole(&heaps.at[3].account));
}

/* Of one that has been closed not even the size is known. */
static void a_vm_that_is_gone_leaves_the_others(void **state)
{
	(void)state;
	errors[0] = -EIO;
	totals[0] = 0;
	assert_int_equal(read_heaps(), 0);
	assert_missing(0, -EIO, 0);
	assert_true(heap_account_is_whole(&heaps.at[1].account));
}

static void one_that_cannot_be_held_leaves_the_others(void **state)
{
	(void)state;
	errors[1] = -EBUSY;
	assert_int_equal(read_heaps(), 0);
	assert_int_equal(captured, VMS);
	assert_missing(1, -EBUSY, (int64_t)totals[1]);
	for (size_t i = 0; i < VMS; i++)
		assert_true(i == 1 || heap_account_is_whole(&heaps.at[i].account));
}

static void small_heaps_are_read_first(void **state)
{
	static const uint64_t sizes[VMS] = { 5000, 300, 7000, 300 };
	static const size_t expected[VMS] = { 1, 3, 0, 2 };

	(void)state;
	memcpy(totals, sizes, sizeof(sizes));
	assert_int_equal(read_heaps(), 0);
	assert_memory_equal(order, expected, sizeof(expected));
	for (size_t i = 0; i < VMS; i++) {
		assert_int_equal(heaps.at[i].account.vm, i + 1);
		assert_int_equal(heaps.at[i].account.sum, sizes[i]);
	}
}

/* The others are there if they do not change. */
static void what_takes_long_in_vain_is_not_held_for_ever(void **state)
{
	(void)state;
	errors[1] = errors[3] = -EBUSY;
	busy_takes_ns = UINT64_C(60000000000);
	assert_int_equal(read_heaps(), 0);
	assert_int_equal(captured, VMS);
	assert_int_equal(unheld, 2);
	assert_true(heap_account_is_whole(&heaps.at[0].account));
	assert_true(heap_account_is_whole(&heaps.at[2].account));
	assert_missing(1, -EBUSY, (int64_t)totals[1]);
	assert_missing(3, -EBUSY, (int64_t)totals[3]);
}

static void of_heaps_that_are_too_large_the_largest_is_told(void **state)
{
	(void)state;
	errors[1] = errors[2] = errors[3] = -EFBIG;
	totals[2] = 9000;
	assert_int_equal(read_heaps(), 0);
	assert_ptr_equal(process_heaps_missing_by(&heaps, -EFBIG), &heaps.at[2]);
	assert_int_equal(heaps.at[2].too_long_ns, TOO_LONG_NS + 9000);
}

/* It was closed after it could not be held. */
static void a_vm_that_is_no_more_has_no_size(void **state)
{
	(void)state;
	errors[2] = -EBUSY;
	totals[2] = 0;
	assert_int_equal(read_heaps(), 0);
	assert_missing(2, -EBUSY, 0);
}

static void where_none_can_be_read_the_first_error_tells_why(void **state)
{
	(void)state;
	errors[0] = -EFBIG;
	errors[1] = -EIO;
	errors[2] = errors[3] = -EBUSY;
	assert_int_equal(read_heaps(), -EFBIG);
	assert_int_equal(captured, VMS);
	assert_int_equal(heaps.count, VMS);
	assert_int_equal(process_heaps_missing(&heaps), VMS);
	assert_int_equal(process_heaps_missing_by(&heaps, -EFBIG)->too_long_ns, TOO_LONG_NS + totals[0]);
}

static void without_memory_nothing_is_told(void **state)
{
	(void)state;
	errors[2] = -ENOMEM;
	assert_int_equal(read_heaps(), -ENOMEM);
	assert_int_equal(captured, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_heaps_are_there, begin, end),
		cmocka_unit_test_setup_teardown(a_heap_that_is_too_large_leaves_the_others, begin, end),
		cmocka_unit_test_setup_teardown(a_vm_that_is_gone_leaves_the_others, begin, end),
		cmocka_unit_test_setup_teardown(one_that_cannot_be_held_leaves_the_others, begin, end),
		cmocka_unit_test_setup_teardown(small_heaps_are_read_first, begin, end),
		cmocka_unit_test_setup_teardown(what_takes_long_in_vain_is_not_held_for_ever, begin, end),
		cmocka_unit_test_setup_teardown(of_heaps_that_are_too_large_the_largest_is_told, begin, end),
		cmocka_unit_test_setup_teardown(a_vm_that_is_no_more_has_no_size, begin, end),
		cmocka_unit_test_setup_teardown(where_none_can_be_read_the_first_error_tells_why, begin, end),
		cmocka_unit_test_setup_teardown(without_memory_nothing_is_told, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

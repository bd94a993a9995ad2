/* SPDX-License-Identifier: MIT */
/* Nothing is listed from the memory of a Lua state that has been closed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "luajit-layouts/recognise/recognise.h"
#include "luajit-layouts/vm.h"
#include "src/survey/listing_survey.h"
#include "tests/unit/instead_of.h"
#include "unwind/listing/trace_listing.h"
#include "unwind/lua/object_walk.h"

static void read_nothing(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	for (size_t i = 0; i < count; i++)
		ranges[i].status = MEMORY_UNMAPPED;
}

static struct memory memory = { .read_ranges = read_nothing };
#include "tests/unit/one_global.h"
#include "tests/unit/one_state.h"

static unsigned open_holds; /* in so many holds the state is there, then closed */
static unsigned holds, reads;

INSTEAD_OF(lua_process_global_count);
size_t __wrap_lua_process_global_count(const struct lua_process *process)
{
	(void)process;
	return 1;
}

INSTEAD_OF(hold_while);
bool __wrap_hold_while(struct hold *hold, void (*read)(void *context), void (*undo)(void *context),
		       void *context)
{
	(void)hold, (void)undo;
	holds++;
	read(context);
	registry += registry_change;
	return true;
}

INSTEAD_OF(recognise_is_state);
bool __wrap_recognise_is_state(struct memory *of, const struct vm_code *code, uint64_t g)
{
	(void)of, (void)code, (void)g;
	return holds <= open_holds;
}

INSTEAD_OF(trace_listing_read);
void __wrap_trace_listing_read(struct trace_listing *listing)
{
	(void)listing;
	reads++;
}

/* There are always more functions, and none in this slice. */
INSTEAD_OF(object_walk_next);
enum object_walk_step __wrap_object_walk_next(struct object_walk *walk, uint64_t *ret_object)
{
	(void)walk, (void)ret_object;
	reads++;
	return OBJECT_WALK_PAUSE;
}

static struct listing_process *list(const struct listing_wanted *wanted, bool is_live)
{
	struct listing_process *report = listing_process_new(10, "luajit");

	holds = reads = 0;
	assert_non_null(report);
	assert_int_equal(listing_survey(NULL, is_live ? (struct hold *)&holds : NULL, wanted, NULL, report),
			 0);
	assert_int_equal(report->count, 0);
	return report;
}

static void a_trace_is_read_only_while_its_state_is_open(void **state)
{
	const struct listing_wanted wanted = { .trace = 1 };

	(void)state;
	for (open_holds = 0; open_holds < 2; open_holds++) {
		struct listing_process *report = list(&wanted, true);

		assert_int_equal(reads, open_holds);
		assert_int_equal(report->complete, open_holds == 1);
		listing_process_free(report);
	}
}

static void functions_are_searched_only_while_their_state_is_open(void **state)
{
	const struct listing_wanted wanted = { .function = "handle" };
	struct listing_process *report;

	(void)state;
	open_holds = 3;
	report = list(&wanted, true);
	assert_int_equal(reads, 3);
	assert_false(report->complete);
	listing_process_free(report);
	registry_change = 1;
	report = list(&wanted, true);
	assert_int_equal(reads, 1);
	assert_false(report->complete);
	listing_process_free(report);
	registry_change = 0;
}

static void a_core_file_never_changes(void **state)
{
	const struct listing_wanted wanted = { .trace = 1 };
	struct listing_process *report;

	(void)state;
	open_holds = 0;
	report = list(&wanted, false);
	assert_int_equal(reads, 1);
	assert_true(report->complete);
	listing_process_free(report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_trace_is_read_only_while_its_state_is_open),
		cmocka_unit_test(functions_are_searched_only_while_their_state_is_open),
		cmocka_unit_test(a_core_file_never_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

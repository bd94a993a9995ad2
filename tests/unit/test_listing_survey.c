/* SPDX-License-Identifier: MIT */
/* Nothing is listed of a Lua state that has been closed, nor of a function that is no more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "luajit-layouts/recognise/recognise.h"
#include "luajit-layouts/vm.h"
#include "src/survey/listing_survey.h"
#include "tests/unit/instead_of.h"
#include "unwind/listing/bytecode_text.h"
#include "unwind/listing/proto_listing.h"
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

/* A function in a file, found in the first hold and read again in the second one. */
enum { FUNCTION = 0x40000 };
static bool has_function;
static struct proto function, function_later;
static unsigned listed;

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

INSTEAD_OF(lua_process_global_path);
const char *__wrap_lua_process_global_path(const struct lua_process *process, size_t index)
{
	(void)process, (void)index;
	return "/usr/bin/luajit";
}

/* There are always more functions, and none in this slice; or there is the one. */
INSTEAD_OF(object_walk_next);
enum object_walk_step __wrap_object_walk_next(struct object_walk *walk, uint64_t *ret_object)
{
	(void)walk;
	reads++;
	if (!has_function)
		return OBJECT_WALK_PAUSE;
	*ret_object = FUNCTION;
	return reads == 1 ? OBJECT_WALK_FOUND : OBJECT_WALK_END;
}

INSTEAD_OF(lua_objects_capture_protos);
void __wrap_lua_objects_capture_protos(struct lua_objects *objects, struct snapshot *snapshot,
				       const struct layout *layout, const uint64_t *addresses, size_t count)
{
	(void)objects, (void)snapshot, (void)layout, (void)addresses, (void)count;
}

INSTEAD_OF(lua_objects_proto);
const struct proto *__wrap_lua_objects_proto(const struct lua_objects *objects, uint64_t address)
{
	const struct proto *now = holds < 2 ? &function : &function_later;

	(void)objects;
	return address == FUNCTION && now->address ? now : NULL;
}

INSTEAD_OF(bytecode_text_constants);
size_t __wrap_bytecode_text_constants(const struct layout *layout, const struct proto *proto,
				      enum bytecode_constant kind, uint64_t *ret_addresses, size_t max)
{
	(void)layout, (void)proto, (void)kind, (void)ret_addresses, (void)max;
	return 0;
}

INSTEAD_OF(proto_listing_add);
int __wrap_proto_listing_add(const struct listing_source *source, const struct proto *proto,
			     const struct listing_samples *samples, struct listing *listing)
{
	assert_non_null(source);
	assert_non_null(listing);
	assert_null(samples);
	assert_ptr_equal(proto, &function_later);
	listed++;
	return 0;
}

static struct listing_process *list(const struct listing_wanted *wanted, bool is_live)
{
	struct listing_process *report = listing_process_new(10, "luajit");

	holds = reads = listed = 0;
	assert_non_null(report);
	assert_int_equal(listing_survey(NULL, is_live ? (struct hold *)&holds : NULL, wanted, NULL, report),
			 0);
	assert_int_equal(report->count, listed);
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

/* Another function may lie there by the time that its listing is read. */
static void a_function_that_is_no_more_is_not_listed(void **state)
{
	static const struct proto later[] = {
		{ .address = FUNCTION, .firstline = 12, .numline = 3, .sizebc = 9 },
		{ .address = FUNCTION, .firstline = 13, .numline = 3, .sizebc = 9 },
		{ .address = FUNCTION, .firstline = 12, .numline = 4, .sizebc = 9 },
		{ .address = FUNCTION, .firstline = 12, .numline = 3, .sizebc = 8 },
		{ .address = 0 },
	};
	const struct listing_wanted wanted = { .function = "app.lua:12" };
	char chunkname[] = "@/srv/app.lua";

	(void)state;
	open_holds = 2;
	has_function = true;
	function = later[0];
	function.chunkname = chunkname;
	for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
		struct listing_process *report;

		function_later = later[i];
		report = list(&wanted, true);
		assert_int_equal(holds, 2);
		assert_int_equal(listed, i == 0);
		assert_int_equal(report->complete, i == 0);
		listing_process_free(report);
	}
	has_function = false;
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
		cmocka_unit_test(a_function_that_is_no_more_is_not_listed),
		cmocka_unit_test(a_core_file_never_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

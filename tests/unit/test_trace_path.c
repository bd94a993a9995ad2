/* SPDX-License-Identifier: MIT */
/* How long a path may be: of traces without bytecode, of which only the snapshots' points are known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/instead_of.h"
#include "unwind/jit/path_search.h"
#include "unwind/jit/trace_calls.h"
#include "unwind/jit/trace_path.h"
#include "unwind/trace/trace_block.h"

enum { PC = 0x3000, INSTRUCTIONS = 4 };

static const struct trace trace;
static const struct layout layout;
static const struct trace_numbers numbers;
static struct proto proto;
static uint32_t snapshots;

INSTEAD_OF(trace_nins);
uint32_t __wrap_trace_nins(const struct trace *of, const struct layout *as)
{
	(void)of;
	(void)as;
	return TRACE_REF_BASE + INSTRUCTIONS;
}

INSTEAD_OF(trace_instruction);
bool __wrap_trace_instruction(const struct trace *of, const struct layout *as, uint32_t ref,
			      struct trace_instruction *ret_instruction)
{
	(void)of;
	(void)as;
	(void)ref;
	(void)ret_instruction;
	return false;
}

INSTEAD_OF(trace_snapshot_count);
uint32_t __wrap_trace_snapshot_count(const struct trace *of, const struct layout *as)
{
	(void)of;
	(void)as;
	return snapshots;
}

INSTEAD_OF(trace_snapshot);
bool __wrap_trace_snapshot(const struct trace *of, const struct layout *as, uint32_t number,
			   struct trace_snapshot *ret_snapshot)
{
	(void)of;
	(void)as;
	(void)number;
	*ret_snapshot = (struct trace_snapshot){ .ref = TRACE_REF_BASE };
	return true;
}

/* Each snapshot is in the same frame. */
INSTEAD_OF(trace_exit_frames);
size_t __wrap_trace_exit_frames(const struct trace *of, const struct layout *as, uint32_t number,
				struct trace_frame *ret_frames, size_t max)
{
	(void)of;
	(void)as;
	(void)number;
	assert_true(max > 0);
	ret_frames[0] = (struct trace_frame){ .pc = PC };
	return 1;
}

INSTEAD_OF(lua_objects_proto_of_pc);
const struct proto *__wrap_lua_objects_proto_of_pc(struct lua_objects *objects, uint64_t pc)
{
	(void)objects;
	(void)pc;
	return &proto;
}

INSTEAD_OF(trace_calls_find);
void __wrap_trace_calls_find(struct trace_calls *calls, const struct trace_numbers *by_number,
			     const struct trace *of, const struct layout *as, struct lua_objects *objects)
{
	(void)calls;
	(void)by_number;
	(void)of;
	(void)as;
	(void)objects;
}

INSTEAD_OF(path_search);
size_t __wrap_path_search(const struct path_context *context, const struct path_gap *gap,
			  const struct path_start *start, struct path_candidate *ret_candidates)
{
	assert_true(*context->visits_left > 0);
	(void)gap;
	(void)start;
	(void)ret_candidates;
	return 0;
}

INSTEAD_OF(path_returns);
bool __wrap_path_returns(const struct path_context *context, const struct path_point *point)
{
	(void)context;
	(void)point;
	return false;
}

static void a_path_of_too_many_points_is_none(void **state)
{
	struct trace_path path;

	(void)state;
	for (uint32_t more = 0; more < 2; more++) {
		snapshots = PATH_POINTS_MAX + more;
		assert_int_equal(trace_path_replay(&path, &numbers, &trace, &layout, NULL), !more);
		assert_int_equal(path.point_count, more ? 0 : PATH_POINTS_MAX);
		assert_int_equal(path.points == NULL, more);
		trace_path_clear(&path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_of_too_many_points_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

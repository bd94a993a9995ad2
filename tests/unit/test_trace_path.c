/* SPDX-License-Identifier: MIT */
/*
 * How long a path may be: of traces without bytecode, of which only the snapshots' points are known. And
 * where the search from a branch begins.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/instead_of.h"
#include "unwind/jit/path_search.h"
#include "unwind/jit/trace_align.h"
#include "unwind/jit/trace_calls.h"
#include "unwind/jit/trace_path.h"
#include "unwind/trace/trace_block.h"

enum { PC = 0x3000, BRANCH_PC = 0x2000, INSTRUCTIONS = 4, SEARCHES_MAX = 8 };

static const struct trace trace;
static const struct layout layout;
static const struct trace_numbers numbers;
static struct proto proto;
static uint32_t snapshots;
static bool has_guards;                        /* each instruction is one */
static bool may_guard;                         /* so may be the branch's */
static bool is_branch_found;                   /* by the first search, but nothing by those after it */
static struct path_start starts[SEARCHES_MAX]; /* of these searches */
static size_t searches;

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
	*ret_instruction = (struct trace_instruction){ .op = IR_UREFC, .guard = true };
	return has_guards;
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
	*ret_snapshot = (struct trace_snapshot){ .ref = TRACE_REF_BASE +
							(number < INSTRUCTIONS ? number : INSTRUCTIONS) };
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
	if (!is_branch_found)
		return 0;
	assert_in_range(searches, 0, SEARCHES_MAX - 1);
	starts[searches++] = *start;
	if (searches > 1)
		return 0;
	memset(ret_candidates, 0, sizeof(*ret_candidates));
	ret_candidates->at_branch = true;
	ret_candidates->way.points[0].pc = BRANCH_PC;
	ret_candidates->way.count = 1;
	return 1;
}

INSTEAD_OF(trace_align);
int32_t __wrap_trace_align(const struct path_alignment *alignment, const struct path_point *points,
			   size_t count, uint32_t *ret_assigned)
{
	(void)points;
	(void)count;
	memset(ret_assigned, 0, (alignment->end_ref - alignment->ref) * sizeof(*ret_assigned));
	return 0;
}

INSTEAD_OF(path_branch_may_guard);
bool __wrap_path_branch_may_guard(const struct path_context *context, const struct path_point *point,
				  enum ir_op op)
{
	(void)context;
	assert_int_equal(point->pc, BRANCH_PC);
	assert_int_equal(op, IR_UREFC);
	return may_guard;
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

/* The snapshot there is of the target not taken only if it was taken for the branch's guard. */
static void a_branch_without_a_guard_took_its_snapshots_target(void **state)
{
	static const struct {
		bool has_guards, may_guard;
	} cases[] = { { false, true }, { true, false }, { true, true } };
	struct trace_path path;

	(void)state;
	is_branch_found = true;
	snapshots = 3;
	for (unsigned i = 0; i < 3; i++) {
		has_guards = cases[i].has_guards;
		may_guard = cases[i].may_guard;
		searches = 0;
		assert_true(trace_path_replay(&path, &numbers, &trace, &layout, NULL));
		/* From the start, and from the branch or its target. */
		assert_in_range(searches, i == 2 ? 3 : 2, SEARCHES_MAX);
		if (i == 2) {
			assert_true(starts[1].at_branch);
			assert_int_equal(starts[1].point.pc, BRANCH_PC);
			assert_int_equal(starts[1].not_taken, PC);
		}
		assert_false(starts[i == 2 ? 2 : 1].at_branch);
		assert_int_equal(starts[i == 2 ? 2 : 1].point.pc, PC);
		/* Without a way, it begins at the target. */
		assert_false(path.segments[1].found);
		assert_int_equal(path.points[path.segments[1].first].pc, PC);
		trace_path_clear(&path);
	}
	is_branch_found = has_guards = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_of_too_many_points_is_none),
		cmocka_unit_test(a_branch_without_a_guard_took_its_snapshots_target),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Which frames a trace's machine code stands for, with paths and pieces of code that are made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/instead_of.h"
#include "unwind/jit/trace_path.h"
#include "unwind/jit/trace_table.h"
#include "unwind/lua/lua_names.h"
#include "unwind/trace/trace_block.h"

enum { FUNCTION = 0x1000, PROTO = 0x2000, PC = 0x3000, INSTRUCTIONS_OF_A_LINE = 16, MAX = 8 };

static const struct trace trace;
static const struct layout layout;
static const struct trace_numbers numbers;

/* What the trace has: its path, a point for each IR instruction, of which some are returns, and its code. */
static struct {
	struct path_frame frames[MAX];
	struct path_point points[MAX];
	struct path_segment segments[MAX];
	struct code_piece pieces[MAX];
	bool is_return[MAX];
	size_t frame_count, point_count, segment_count, piece_count;
	bool has_no_path;
} made_up;

INSTEAD_OF(trace_code_align);
bool __wrap_trace_code_align(struct trace_code *code, const struct trace *of, const struct layout *as,
			     const uint8_t *bytes, const struct trace_exits *exits)
{
	(void)of;
	(void)as;
	(void)bytes;
	(void)exits;
	code->count = made_up.piece_count;
	code->pieces = calloc(MAX, sizeof(*code->pieces));
	assert_non_null(code->pieces);
	memcpy(code->pieces, made_up.pieces, sizeof(made_up.pieces));
	return true;
}

INSTEAD_OF(trace_path_replay);
bool __wrap_trace_path_replay(struct trace_path *path, const struct trace_numbers *by_number,
			      const struct trace *of, const struct layout *as, struct lua_objects *objects)
{
	(void)by_number;
	(void)of;
	(void)as;
	(void)objects;
	if (made_up.has_no_path)
		return false;
	*path = (struct trace_path){ .frames = { .frame = made_up.frames, .count = made_up.frame_count },
				     .points = made_up.points,
				     .point_count = made_up.point_count,
				     .segments = made_up.segments,
				     .segment_count = made_up.segment_count,
				     .instruction_count = made_up.point_count };
	path->point_of = calloc(MAX, sizeof(*path->point_of));
	assert_non_null(path->point_of);
	for (uint32_t i = 0; i < MAX; i++)
		path->point_of[i] = i;
	return true;
}

INSTEAD_OF(trace_path_clear);
void __wrap_trace_path_clear(struct trace_path *path)
{
	free(path->point_of);
}

INSTEAD_OF(trace_nins);
uint32_t __wrap_trace_nins(const struct trace *of, const struct layout *as)
{
	(void)of;
	(void)as;
	return (uint32_t)(TRACE_REF_BASE + made_up.point_count);
}

INSTEAD_OF(trace_instruction);
bool __wrap_trace_instruction(const struct trace *of, const struct layout *as, uint32_t ref,
			      struct trace_instruction *ret_instruction)
{
	(void)of;
	(void)as;
	*ret_instruction = (struct trace_instruction){ 0 };
	ret_instruction->op = made_up.is_return[ref - TRACE_REF_BASE] ? IR_RETF : IR_LOOP;
	return true;
}

INSTEAD_OF(trace_snapshot_count);
uint32_t __wrap_trace_snapshot_count(const struct trace *of, const struct layout *as)
{
	(void)of;
	(void)as;
	return (uint32_t)made_up.segment_count;
}

INSTEAD_OF(trace_snapshot);
bool __wrap_trace_snapshot(const struct trace *of, const struct layout *as, uint32_t number,
			   struct trace_snapshot *ret_snapshot)
{
	(void)of;
	(void)as;
	*ret_snapshot = (struct trace_snapshot){ .ref = made_up.segments[number].ref };
	return true;
}

INSTEAD_OF(lua_line);
uint32_t __wrap_lua_line(const struct layout *as, const struct proto *proto, uint64_t pc)
{
	(void)as;
	(void)proto;
	return (uint32_t)(pc / INSTRUCTIONS_OF_A_LINE);
}

static struct trace_table *table;
static struct trace_frame frames[MAX];

static void add_frame(int32_t up, uint64_t call_pc)
{
	static struct proto protos[MAX];
	const size_t i = made_up.frame_count++;

	protos[i] = (struct proto){ .address = PROTO + i };
	made_up.frames[i] = (struct path_frame){ .proto = &protos[i],
						 .function = FUNCTION + i,
						 .up = up,
						 .call_pc = call_pc,
						 .base_slot = (uint8_t)(i + 1) };
}

/* The next instruction is of this frame. */
static void add_point(int32_t frame, uint32_t lowered)
{
	const size_t i = made_up.point_count++;

	made_up.points[i] = (struct path_point){ .frame = frame, .lowered = lowered, .pc = PC + i };
}

/* All points from this one on, up to the next snapshot's. */
static void add_snapshot(uint32_t point)
{
	const size_t i = made_up.segment_count++;

	made_up.segments[i] = (struct path_segment){ .ref = TRACE_REF_BASE + point,
						     .first = point,
						     .last = (uint32_t)made_up.point_count - 1,
						     .found = true };
	if (i)
		made_up.segments[i - 1].last = point - 1;
}

/* The next four bytes of code are of this instruction. */
static void add_piece(uint32_t point, uint32_t lowered)
{
	const size_t i = made_up.piece_count++;

	made_up.pieces[i] = (struct code_piece){ .offset = (uint32_t)(4 * i),
						 .ref = TRACE_REF_BASE + point,
						 .lowered = lowered };
}

static void make_table(void)
{
	trace_table_free(table);
	table = trace_table_new(&numbers, &trace, &layout, NULL, NULL, NULL);
	assert_non_null(table);
}

/* The innermost frame at an offset. */
static void check_frame(uint32_t offset, uint64_t function, uint64_t pc, uint8_t base_slot)
{
	assert_int_not_equal(trace_table_frames(table, offset, frames, MAX), 0);
	assert_int_equal(frames[0].function, function);
	assert_int_equal(frames[0].pc, pc);
	assert_int_equal(frames[0].base_slot, base_slot);
}

static int begin(void **state)
{
	(void)state;
	memset(&made_up, 0, sizeof(made_up));
	return 0;
}

static int end(void **state)
{
	(void)state;
	trace_table_free(table);
	table = NULL;
	return 0;
}

static void code_stands_for_its_instructions_frames(void **state)
{
	(void)state;
	add_frame(-1, 0);
	add_frame(0, PC + 100);
	add_point(0, 0);
	add_point(1, 0);
	add_snapshot(0);
	add_piece(0, 0);
	add_piece(1, 0);
	make_table();
	check_frame(0, FUNCTION, PC, 1);
	assert_int_equal(trace_table_frames(table, 3, frames, MAX), 1);
	check_frame(3, FUNCTION, PC, 1);
	assert_int_equal(trace_table_frames(table, 4, frames, MAX), 2);
	check_frame(4, FUNCTION + 1, PC + 1, 2);
	assert_int_equal(frames[1].function, FUNCTION);
	assert_int_equal(frames[1].pc, PC + 100);
	/* They do not have room. */
	assert_int_equal(trace_table_frames(table, 4, frames, 1), 0);
}

static void all_prototypes_of_the_path_are_listed_once(void **state)
{
	const uint64_t *protos;
	size_t count;

	(void)state;
	add_frame(-1, 0);
	add_frame(0, PC + 100);
	add_frame(1, PC + 101);
	made_up.frames[1].proto = NULL; /* a builtin */
	for (int32_t i = 0; i < 2; i++) {
		add_point(0, 0);
		add_point(2, 0);
	}
	add_snapshot(0);
	add_piece(0, 0);
	make_table();
	protos = trace_table_protos(table, &count);
	assert_int_equal(count, 2);
	assert_int_equal(protos[0], PROTO);
	assert_int_equal(protos[1], PROTO + 2);
}

/* The assembler may move an instruction over a return: the base says of which frame the code is. */
static void code_is_of_the_nearest_point_after_as_many_returns(void **state)
{
	(void)state;
	add_frame(-1, 0);
	add_frame(-1, 0);
	add_frame(-1, 0);
	add_point(0, 0);
	add_point(1, 1);
	add_point(1, 1);
	add_point(2, 2);
	made_up.is_return[1] = made_up.is_return[3] = true;
	add_snapshot(0);
	add_piece(2, 0);
	add_piece(3, 1);
	add_piece(0, 1);
	add_piece(0, 2);
	add_piece(3, 3); /* after more than there are */
	add_piece(3, 2);
	make_table();
	check_frame(0, FUNCTION, PC, 1);
	/* Below the start frame, the trace's slots count from another base. */
	check_frame(4, FUNCTION + 1, PC + 2, 0);
	check_frame(8, FUNCTION + 1, PC + 1, 0);
	check_frame(12, FUNCTION + 2, PC + 3, 0);
	assert_int_equal(trace_table_frames(table, 16, frames, MAX), 0);
	check_frame(20, FUNCTION + 2, PC + 3, 0);
	/* Without a point of no return, nothing is of the beginning. */
	made_up.points[0].lowered = 1;
	make_table();
	assert_int_equal(trace_table_frames(table, 0, frames, MAX), 0);
}

static void if_the_code_does_not_show_all_returns_nothing_is_known(void **state)
{
	(void)state;
	add_frame(-1, 0);
	add_point(0, 0);
	add_point(0, 1);
	made_up.is_return[1] = true;
	add_snapshot(0);
	add_piece(0, 0);
	add_piece(1, 0);
	make_table();
	assert_int_equal(trace_table_frames(table, 0, frames, MAX), 0);
	made_up.pieces[1].lowered = 1;
	make_table();
	check_frame(0, FUNCTION, PC, 1);
}

/* A snapshot is taken right after a return. */
static void code_after_a_return_is_of_the_snapshot_behind_it(void **state)
{
	uint32_t snapshot = 77;

	(void)state;
	add_frame(-1, 0);
	add_point(0, 0);
	add_point(0, 1);
	add_point(0, 1);
	made_up.is_return[1] = true;
	add_snapshot(0);
	add_snapshot(2);
	add_piece(0, 0);
	add_piece(0, 1);
	made_up.pieces[1].high_snapshot = 1;
	make_table();
	assert_true(trace_table_snapshot(table, 0, &snapshot));
	assert_int_equal(snapshot, 0);
	assert_true(trace_table_snapshot(table, 4, &snapshot));
	assert_int_equal(snapshot, 1);
	/* It is known without the path, too; but there may be none after so many returns. */
	made_up.has_no_path = true;
	make_table();
	assert_true(trace_table_snapshot(table, 4, &snapshot));
	assert_int_equal(snapshot, 1);
	assert_int_equal(trace_table_frames(table, 4, frames, MAX), 0);
	made_up.is_return[0] = true;
	made_up.pieces[0].lowered = 1;
	made_up.pieces[1].lowered = 2;
	make_table();
	assert_false(trace_table_snapshot(table, 0, &snapshot));
	assert_true(trace_table_snapshot(table, 4, &snapshot));
	assert_int_equal(snapshot, 1);
}

static void a_path_that_does_not_fit_the_code_has_no_frames(void **state)
{
	uint32_t snapshot;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		begin(state);
		add_frame(-1, 0);
		add_point(0, 0);
		add_snapshot(0);
		add_piece(0, 0);
		made_up.pieces[0].high_snapshot = i == 1;
		made_up.pieces[0].ref += i == 2;
		make_table();
		assert_int_equal(trace_table_frames(table, 0, frames, MAX), i == 0);
		assert_true(trace_table_snapshot(table, 0, &snapshot));
	}
}

/*---- Certainty ----*/

/* So many frames at an offset, from the start frame on, are certain. */
static size_t certain_at(uint32_t offset)
{
	const size_t count = trace_table_frames(table, offset, frames, MAX);
	size_t certain = 0;

	while (certain < count && !frames[count - 1 - certain].is_near)
		certain++;
	for (size_t i = certain; i < count; i++)
		assert_true(frames[count - 1 - i].is_near);
	return certain;
}

/* The start frame calls another one, which has two instructions on a line and one on the next. */
static void put_two_lines(void)
{
	add_frame(-1, 0);
	add_frame(0, PC + 100);
	for (size_t i = 0; i < 3; i++) {
		add_point(1, 0);
		add_piece((uint32_t)i, 0);
	}
	made_up.points[2].pc = PC + INSTRUCTIONS_OF_A_LINE;
}

static void what_all_points_of_the_code_agree_on_is_certain(void **state)
{
	(void)state;
	put_two_lines();
	add_snapshot(0);
	make_table();
	assert_int_equal(certain_at(0), 1);
	assert_int_equal(certain_at(8), 1);
	/* The code is of one of two lines, by its snapshot. */
	add_snapshot(2);
	made_up.pieces[2].low_snapshot = made_up.pieces[2].high_snapshot = 1;
	make_table();
	assert_int_equal(certain_at(0), 2);
	assert_int_equal(certain_at(8), 2);
	/* Where the path is unknown up to the next snapshot, that one's point counts as well. */
	made_up.segments[0].found = false;
	made_up.segments[0].last = 1;
	make_table();
	assert_int_equal(certain_at(0), 1);
	assert_int_equal(certain_at(8), 2);
	/* Where it is unknown to the trace's end, nothing is certain. */
	made_up.segments[1].found = false;
	make_table();
	assert_int_equal(certain_at(8), 0);
	assert_int_equal(trace_table_frames(table, 8, frames, MAX), 2);
}

/* What LuaJIT adds for a loop is of neither side of it. */
static void of_code_that_may_be_the_loops_both_sides_count(void **state)
{
	(void)state;
	put_two_lines();
	add_snapshot(0);
	add_snapshot(2);
	made_up.pieces[2].low_snapshot = made_up.pieces[2].high_snapshot = 1;
	made_up.pieces[2].joins_loop = true;
	make_table();
	assert_int_equal(certain_at(0), 2);
	assert_int_equal(certain_at(8), 1);
	made_up.points[2].pc = PC;
	make_table();
	assert_int_equal(certain_at(8), 2);
	made_up.segments[0].found = false;
	make_table();
	assert_int_equal(certain_at(8), 0);
	/* Before the first snapshot there is nothing. */
	made_up.segments[0].found = true;
	made_up.pieces[0].joins_loop = true;
	make_table();
	assert_int_equal(certain_at(0), 0);
}

/* The time of an instruction that takes none is that of the one before, for which the CPU has waited. */
static void an_instruction_that_takes_no_time_is_of_the_one_before(void **state)
{
	(void)state;
	put_two_lines();
	add_snapshot(0);
	make_table();
	check_frame(4, FUNCTION + 1, PC + 1, 2); /* takes time of its own */
	made_up.pieces[1].is_quick = made_up.pieces[2].is_after_slow = true;
	make_table();
	check_frame(4, FUNCTION + 1, PC, 2);
	check_frame(5, FUNCTION + 1, PC + 1, 2); /* a return address */
	check_frame(8, FUNCTION + 1, PC + 1, 2);
	/* All of a line: but the two are not the same place in it. */
	made_up.points[2].pc = PC + 2;
	made_up.pieces[2].is_after_slow = false;
	make_table();
	assert_int_equal(certain_at(0), 2);
	assert_int_equal(certain_at(4), 1);
	assert_int_equal(certain_at(8), 2);
	/* Something else differs: the frame. */
	made_up.points[0].frame = 0;
	make_table();
	check_frame(4, FUNCTION + 1, PC + 1, 2);
	/* After a slow one it may. */
	made_up.pieces[1].is_after_slow = true;
	make_table();
	check_frame(4, FUNCTION, PC, 1);
}

/* The piece at 4 takes no time, and is of the one before or of its own instruction. */
static void check_quick(bool is_of_the_one_before)
{
	made_up.pieces[1].is_quick = true;
	make_table();
	check_frame(4, FUNCTION + 1, PC + !is_of_the_one_before, 2);
}

static void an_instruction_that_takes_no_time_is_its_own_if_the_one_before_is_of_elsewhere(void **state)
{
	(void)state;
	put_two_lines();
	add_snapshot(0);
	check_quick(true);
	/* Nobody knows of which frame the one before is, or of which other one. */
	made_up.pieces[0].lowered = 1;
	check_quick(false);
	made_up.pieces[0].lowered = 0;
	made_up.pieces[0].base_is_moved = true;
	check_quick(false);
	made_up.pieces[0].base_is_moved = false;
	/* It is of another snapshot, or may be of more lines. */
	add_snapshot(2);
	check_quick(true);
	made_up.pieces[1].high_snapshot = 1;
	check_quick(false);
	made_up.points[2].pc = PC;
	check_quick(true);
	made_up.pieces[1].low_snapshot = 1;
	check_quick(false);
}

/* Of an instruction and the slow one before it, whichever is less certain tells. */
static void after_a_slow_instruction_both_are_certain(void **state)
{
	(void)state;
	put_two_lines();
	add_snapshot(0);
	add_snapshot(2);
	/* Two pieces of one point, of which one may be the next line's. */
	made_up.pieces[2].ref = TRACE_REF_BASE + 1;
	for (size_t unsure = 1; unsure <= 2; unsure++) {
		made_up.pieces[1].high_snapshot = unsure == 1;
		made_up.pieces[2].high_snapshot = unsure == 2;
		made_up.pieces[2].is_after_slow = false;
		make_table();
		assert_int_equal(certain_at(4), unsure == 1 ? 1 : 2);
		assert_int_equal(certain_at(8), unsure == 2 ? 1 : 2);
		made_up.pieces[2].is_after_slow = true;
		make_table();
		assert_int_equal(certain_at(8), 1);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(code_stands_for_its_instructions_frames),
		TEST(all_prototypes_of_the_path_are_listed_once),
		TEST(code_is_of_the_nearest_point_after_as_many_returns),
		TEST(if_the_code_does_not_show_all_returns_nothing_is_known),
		TEST(code_after_a_return_is_of_the_snapshot_behind_it),
		TEST(a_path_that_does_not_fit_the_code_has_no_frames),
		TEST(what_all_points_of_the_code_agree_on_is_certain),
		TEST(of_code_that_may_be_the_loops_both_sides_count),
		TEST(an_instruction_that_takes_no_time_is_of_the_one_before),
		TEST(an_instruction_that_takes_no_time_is_its_own_if_the_one_before_is_of_elsewhere),
		TEST(after_a_slow_instruction_both_are_certain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

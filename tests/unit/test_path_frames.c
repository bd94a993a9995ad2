/* SPDX-License-Identifier: MIT */
/* The tree of calls on a trace's path. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unwind/jit/path_frames.h"

enum { MANY = 1000 };

static const struct proto protos[3];
static struct path_frames frames;

static int begin(void **state)
{
	(void)state;
	frames = (struct path_frames){ 0 };
	return 0;
}

static int end(void **state)
{
	(void)state;
	path_frames_clear(&frames);
	assert_null(frames.frame);
	assert_int_equal(frames.count, 0);
	return 0;
}

/* A frame of a function, called from that one at a bytecode. */
static int32_t add(unsigned proto, int32_t up, uint64_t call_pc)
{
	return path_frames_add(&frames,
			       &(struct path_frame){ .proto = &protos[proto], .up = up, .call_pc = call_pc });
}

static bool are_same(int32_t left, int32_t right)
{
	const bool same = path_frames_are_same(&frames, left, right);

	assert_int_equal(path_frames_are_same(&frames, right, left), same);
	return same;
}

static void a_frame_keeps_its_index(void **state)
{
	(void)state;
	for (int32_t i = 0; i < MANY; i++)
		assert_int_equal(add(0, i - 1, (uint64_t)i), i);
	for (int32_t i = 0; i < MANY; i++) {
		assert_int_equal(frames.frame[i].up, i - 1);
		assert_int_equal(frames.frame[i].call_pc, i);
	}
}

static void frames_are_the_same_by_all_their_callers(void **state)
{
	const int32_t start = add(0, -1, 0), other = add(0, -1, 0);
	const int32_t callee = add(1, start, 16), same = add(1, other, 16);

	(void)state;
	assert_true(are_same(start, start));
	assert_true(are_same(start, other));
	assert_true(are_same(callee, same));
	/* A start frame has no call site. */
	frames.frame[other].call_pc = 32;
	assert_true(are_same(callee, same));
	assert_false(are_same(callee, add(1, start, 20)));
	assert_false(are_same(callee, add(2, start, 16)));
	frames.frame[other].proto = &protos[2];
	assert_false(are_same(start, other));
	assert_false(are_same(callee, same));
}

/* However alike they are as far as the shorter one goes. */
static void one_that_has_more_callers_is_another(void **state)
{
	const int32_t start = add(0, -1, 0), first = add(0, start, 16), second = add(0, first, 16);

	(void)state;
	assert_false(are_same(start, first));
	assert_false(are_same(first, second));
	assert_false(are_same(start, second));
	assert_false(are_same(start, -1));
	assert_true(are_same(-1, -1));
}

static void a_function_runs_in_a_frame_and_its_callers(void **state)
{
	const int32_t start = add(0, -1, 0), callee = add(1, start, 16);

	(void)state;
	add(2, callee, 16);
	assert_true(path_frames_is_running(&frames, callee, &protos[0]));
	assert_true(path_frames_is_running(&frames, callee, &protos[1]));
	assert_false(path_frames_is_running(&frames, callee, &protos[2]));
	assert_false(path_frames_is_running(&frames, start, &protos[1]));
	assert_false(path_frames_is_running(&frames, -1, &protos[0]));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_frame_keeps_its_index),
		TEST(frames_are_the_same_by_all_their_callers),
		TEST(one_that_has_more_callers_is_another),
		TEST(a_function_runs_in_a_frame_and_its_callers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

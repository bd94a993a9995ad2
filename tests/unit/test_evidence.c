/* SPDX-License-Identifier: MIT */
/* Which work and which calls samples add to. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "output/findings/evidence.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
#include "tests/unit/failing_allocation.h"

enum { MS = 1000 * 1000 };

static const struct function handle = { .kind = FRAME_LUA, .name = "handle", .file = "@app.lua" };
static const struct function gsub = { .kind = FRAME_BUILTIN, .name = "string.gsub" };
static const struct function pcall = { .kind = FRAME_BUILTIN, .name = "pcall" };
static const struct function poll = { .kind = FRAME_NATIVE, .name = "poll", .module = "libc.so.6" };
static const struct function lock = { .kind = FRAME_NATIVE, .name = "lock: dogs" };

static struct evidence *evidence;

static int begin(void **state)
{
	(void)state;
	evidence = evidence_new(42, "made up");
	assert_non_null(evidence);
	return 0;
}

static int end(void **state)
{
	(void)state;
	evidence_free(evidence);
	return 0;
}

/*---- Work ----*/

/* The only work of one sample. */
static struct work_key work_of(struct sample sample)
{
	struct work_key key;

	end(NULL);
	begin(NULL);
	assert_int_equal(evidence_add(evidence, &sample), 0);
	assert_int_equal(HASH_COUNT(evidence->works), 1);
	key = evidence->works->key;
	return key;
}

static void a_thread_is_at_its_innermost_frame(void **state)
{
	const struct frame frames[] = { { .function = &poll },
					{ .function = &gsub },
					{ .function = &handle, .line = 7 } };
	struct work_key key = work_of((struct sample){ .frames = frames, .frame_count = 3 });

	(void)state;
	assert_ptr_equal(key.leaf, &poll);
	assert_ptr_equal(key.callee, &gsub);
	assert_ptr_equal(key.function, &handle);
	assert_int_equal(key.line, 7);
	/* Without Lua, and without anything. */
	key = work_of((struct sample){ .frames = frames, .frame_count = 1 });
	assert_ptr_equal(key.leaf, &poll);
	assert_null(key.callee);
	assert_null(key.function);
	key = work_of((struct sample){ .cpu_ns = MS });
	assert_null(key.leaf);
	assert_null(key.function);
}

static void one_that_sleeps_is_at_what_it_waits_for(void **state)
{
	const struct frame frames[] = { { .function = &poll }, { .function = &handle, .line = 7 } };
	struct sample sample = { .frames = frames, .frame_count = 2, .wait = &lock };
	struct work_key key;

	(void)state;
	sample.thread_state = THREAD_BLOCKED;
	key = work_of(sample);
	assert_true(key.asleep);
	assert_ptr_equal(key.leaf, &lock);
	assert_ptr_equal(key.callee, &poll);
	/* It is not known what it waits for. */
	sample.wait = NULL;
	assert_ptr_equal(work_of(sample).leaf, &poll);
	/* It runs. */
	sample.wait = &lock;
	sample.thread_state = THREAD_RUNNING;
	key = work_of(sample);
	assert_false(key.asleep);
	assert_ptr_equal(key.leaf, &poll);
}

/*---- Calls ----*/

static const struct call *find_call(const struct function *called, uint32_t line)
{
	for (const struct call *call = evidence->calls; call; call = call->hh.next)
		if (call->key.called == called && call->key.line == line)
			return call;
	return NULL;
}

static void a_builtin_counts_once_at_its_innermost_call(void **state)
{
	const struct frame frames[] = {
		{ .function = &gsub },  { .function = &handle, .line = 1 },
		{ .function = &pcall }, { .function = &handle, .line = 2 },
		{ .function = &gsub },  { .function = &handle, .line = 3 },
		{ .function = &pcall }, { .function = &handle, .line = 4 },
	};
	const struct sample sample = { .cpu_ns = 10 * MS, .frames = frames, .frame_count = 8 };

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(evidence_add(evidence, &sample), 0);
	assert_int_equal(HASH_COUNT(evidence->calls), 2);
	assert_int_equal(find_call(&gsub, 1)->cpu_ns, 20 * MS);
	assert_int_equal(find_call(&pcall, 2)->cpu_ns, 20 * MS);
	assert_ptr_equal(find_call(&pcall, 2)->key.caller, &handle);
}

/* What lies deeper says little of the top of the stack, and each builtin is compared with all above it. */
static void calls_are_looked_for_to_a_depth(void **state)
{
	static struct frame frames[EVIDENCE_DEEP + 2];
	const struct sample sample = { .cpu_ns = 10 * MS,
				       .frames = frames,
				       .frame_count = EVIDENCE_DEEP + 2 };

	(void)state;
	for (uint32_t i = 0; i < EVIDENCE_DEEP + 2; i++)
		frames[i] = (struct frame){ .function = &handle, .line = i };
	frames[EVIDENCE_DEEP - 1].function = &gsub;
	frames[EVIDENCE_DEEP].function = &pcall;
	assert_int_equal(evidence_add(evidence, &sample), 0);
	assert_int_equal(HASH_COUNT(evidence->calls), 1);
	assert_non_null(find_call(&gsub, EVIDENCE_DEEP + 1));
}

static void a_builtin_that_no_lua_calls_has_no_caller(void **state)
{
	/* What lies behind the stack is not of it. */
	const struct frame frames[] = { { .function = &gsub }, { .function = &handle, .line = 7 } };
	const struct sample sample = { .cpu_ns = 10 * MS, .frames = frames, .frame_count = 1 };

	(void)state;
	assert_int_equal(evidence_add(evidence, &sample), 0);
	assert_non_null(find_call(&gsub, 0));
	assert_null(find_call(&gsub, 0)->key.caller);
}

/*---- Bounds ----*/

/* A builtin that a line calls. */
static int add_line(uint32_t line)
{
	const struct frame frames[] = { { .function = &gsub }, { .function = &handle, .line = line } };
	const struct sample sample = { .cpu_ns = MS, .frames = frames, .frame_count = 2 };

	return evidence_add(evidence, &sample);
}

static void what_comes_after_so_many_lines_counts_in_the_sums(void **state)
{
	(void)state;
	for (uint32_t line = 1; line <= EVIDENCE_ROWS_MAX + 1; line++)
		assert_int_equal(add_line(line), 0);
	assert_int_equal(add_line(1), 0);
	assert_int_equal(HASH_COUNT(evidence->works), EVIDENCE_ROWS_MAX);
	assert_int_equal(HASH_COUNT(evidence->calls), EVIDENCE_ROWS_MAX);
	assert_int_equal(evidence->works->cpu_ns, 2 * MS);
	assert_int_equal(evidence->calls->cpu_ns, 2 * MS);
	assert_int_equal(evidence->cpu_ns, (EVIDENCE_ROWS_MAX + 2) * (uint64_t)MS);
}

static void a_sample_for_which_memory_is_short_is_an_error(void **state)
{
	size_t after = 0;
	bool failed = true;

	for (; failed; after++) {
		int error;

		end(state);
		begin(state);
		allocation_fails_after(after);
		error = add_line(1);
		failed = allocation_failed();
		assert_int_equal(error, failed ? -ENOMEM : 0);
		assert_int_equal(evidence->cpu_ns, MS);
	}
	assert_in_range(after, 3, 100);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(a_thread_is_at_its_innermost_frame),
		TEST(one_that_sleeps_is_at_what_it_waits_for),
		TEST(a_builtin_counts_once_at_its_innermost_call),
		TEST(calls_are_looked_for_to_a_depth),
		TEST(a_builtin_that_no_lua_calls_has_no_caller),
		TEST(what_comes_after_so_many_lines_counts_in_the_sums),
		TEST(a_sample_for_which_memory_is_short_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

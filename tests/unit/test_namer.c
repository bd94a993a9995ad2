/* SPDX-License-Identifier: MIT */
/* Names of frames that need no process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "output/sample/lost.h"
#include "unwind/lua/luajit.h"
#include "unwind/names/namer.h"

struct made {
	struct lua_image *lua;
	struct functions *functions;
	struct namer *namer;
};

static struct made make(bool traces)
{
	const struct namer_options options = { .native = NATIVE_ALL, .traces = traces };
	struct made made = { .lua = lua_image_new(NULL), .functions = functions_new() };

	assert_non_null(made.lua);
	assert_non_null(made.functions);
	made.namer = namer_new(made.lua, NULL, NULL, made.functions, &options);
	assert_non_null(made.namer);
	return made;
}

static void end(struct made *made)
{
	namer_free(made->namer);
	functions_free(made->functions);
	lua_image_free(made->lua);
}

/* The function of a stack of one frame; NULL if it is not shown. */
static const struct function *function_of(const struct made *made, struct merged_frame frame)
{
	const struct merged_stack stack = { .frames = &frame, .count = 1, .size = 1 };
	const struct frame *frames;
	size_t count;

	assert_int_equal(namer_name(made->namer, &stack, &frames, &count), 0);
	if (count == 0)
		return NULL;
	assert_int_equal(count, 1);
	return frames[0].function;
}

static const char *name_of(const struct made *made, const struct trace *trace)
{
	const struct merged_frame frame = { .kind = MERGED_TRACE, .trace = trace };
	const struct function *function = function_of(made, frame);

	assert_true(!function || function->kind == FRAME_TRACE);
	return function ? function->name : NULL;
}

/* Two side traces may begin at the same instruction, at exits with different values. */
static void each_trace_has_its_own_name(void **state)
{
	static const struct trace traces[] = {
		{ .number = 2, .startpc = 0x1000 },
		{ .number = 3, .startpc = 0x1000 },
		{ .number = 4, .startpc = 0x1000, .root = 2 },
		{ .number = 5, .startpc = 0x1000, .root = 2 },
		{ .number = 5, .startpc = 0x1000, .root = 3 },
	};
	static const char *const names[] = {
		"trace#2", "trace#3", "trace#4 side of #2", "trace#5 side of #2", "trace#5 side of #3",
	};
	struct made made = make(true);

	(void)state;
	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < sizeof(traces) / sizeof(traces[0]); i++)
			assert_string_equal(name_of(&made, &traces[i]), names[i]);
	end(&made);
}

/* LuaJIT gives numbers again after it has flushed traces. */
static void a_number_given_again_is_another_trace(void **state)
{
	enum { AT = 0x1000, BC = AT + 0x40, INSTRUCTIONS = 3 };
	/* GCproto.lineinfo, and the lines of all instructions but the first. */
	static const uint8_t bytes[BC - AT + INSTRUCTIONS * BYTECODE_SIZE] = { 8, 0x10, [8] = 4, 6 };
	static const struct vm_code vm = { .layout = { .gc64 = true, .GCproto_lineinfo = 0 } };
	static char chunkname[] = "=made";
	static struct global_state global = { .vm = &vm };
	static const struct proto proto = { .address = AT,
					    .bytes = bytes,
					    .size = sizeof(bytes),
					    .sizebc = INSTRUCTIONS,
					    .firstline = 10,
					    .numline = 7,
					    .bc = BC,
					    .chunkname = chunkname };
	static const uint32_t lines[INSTRUCTIONS] = { 10, 14, 16 };
	struct made made = make(true);

	(void)state;
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < INSTRUCTIONS; i++) {
			const struct trace trace = { .number = 2, .startpc = BC + i * BYTECODE_SIZE };
			const struct function *function = function_of(
				&made, (struct merged_frame){ .kind = MERGED_TRACE,
							      .trace = &trace,
							      .proto = &proto,
							      .global = &global });

			assert_non_null(function);
			assert_int_equal(function->kind, FRAME_TRACE);
			assert_string_equal(function->name, "trace#2");
			assert_string_equal(function->file, "=made");
			assert_int_equal(function->firstline, lines[i]);
		}
	}
	end(&made);
}

static void traces_are_shown_on_demand_only(void **state)
{
	static const struct trace trace = { .number = 2, .startpc = 0x1000 };
	struct made made = make(false);

	(void)state;
	assert_null(name_of(&made, &trace));
	end(&made);
}

/* All that tells these two apart is of which kind they are. */
static void a_child_coroutine_is_no_lost_frame(void **state)
{
	struct made made = make(false);

	(void)state;
	for (int round = 0; round < 2; round++) {
		const struct function *child = function_of(
			&made, (struct merged_frame){ .kind = MERGED_CHILD, .lost = LOST_TOO_DEEP });
		const struct function *lost = function_of(
			&made, (struct merged_frame){ .kind = MERGED_LOST, .lost = LOST_TOO_DEEP });

		assert_non_null(child);
		assert_non_null(lost);
		assert_string_equal(child->name, "child coroutine");
		assert_int_equal(child->kind, FRAME_NATIVE);
		assert_ptr_equal(lost, lost_function(LOST_TOO_DEEP));
	}
	end(&made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_trace_has_its_own_name),
		cmocka_unit_test(a_number_given_again_is_another_trace),
		cmocka_unit_test(traces_are_shown_on_demand_only),
		cmocka_unit_test(a_child_coroutine_is_no_lost_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

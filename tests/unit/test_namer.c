/* SPDX-License-Identifier: MIT */
/* Names of frames that need no process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

/* The name of a stack of one frame, that of a trace; NULL if it is not shown. */
static const char *name_of(const struct made *made, const struct trace *trace)
{
	struct merged_frame frame = { .kind = MERGED_TRACE, .trace = trace };
	const struct merged_stack stack = { .frames = &frame, .count = 1, .size = 1 };
	const struct frame *frames;
	size_t count;

	assert_int_equal(namer_name(made->namer, &stack, &frames, &count), 0);
	if (count == 0)
		return NULL;
	assert_int_equal(count, 1);
	assert_int_equal(frames[0].function->kind, FRAME_TRACE);
	return frames[0].function->name;
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

static void traces_are_shown_on_demand_only(void **state)
{
	static const struct trace trace = { .number = 2, .startpc = 0x1000 };
	struct made made = make(false);

	(void)state;
	assert_null(name_of(&made, &trace));
	end(&made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_trace_has_its_own_name),
		cmocka_unit_test(traces_are_shown_on_demand_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* live_process: a LuaJIT process that waits for input, held and read as ljspy does. */
#ifndef LJSPY_TEST_LIVE_PROCESS_H
#define LJSPY_TEST_LIVE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "src/inspect/lua_process.h"
#include "tests/exactness/target.h"
#include "tests/unit/target_process.h"

/* From the tree. */
#define LIVE_LUAJIT "build/packages/luajit/usr/bin/luajit"

enum { LIVE_LOOKS_MAX = 500, LIVE_LOOK_US = 10000 };

struct live {
	struct target target;
	struct functions *functions;
	struct lua_process *process;
	struct capture_hints hints;
	const struct global_state *global;
};

/* Has it read all that it was given, and waits for more? */
static inline bool live_waits_for_input(const struct live *live)
{
	int left = -1;

	for (int i = 0; i < LIVE_LOOKS_MAX; i++) {
		if (ioctl(live->target.input, FIONREAD, &left) == 0 && left == 0 &&
		    target_process_state(live->target.pid, live->target.pid) == 'S')
			return true;
		usleep(LIVE_LOOK_US);
	}
	return false;
}

/*
 * Run a program that has so many states with this luajit, give it so many bytes of input, and hold it
 * where it waits for more. Skips if there is no such luajit.
 */
static inline void live_begin_with(struct live *live, const char *luajit, const char *program,
				   int input_bytes, size_t states)
{
	char option[] = "-e";
	char *argv[] = { (char *)(uintptr_t)luajit, option, (char *)(uintptr_t)program, NULL };
	const struct namer_options options = { .native = NATIVE_NONE };

	if (access(luajit, X_OK) != 0)
		skip();
	*live = (struct live){ .functions = functions_new() };
	assert_int_equal(target_start(&live->target, argv), 0);
	assert_int_equal(getc(live->target.output), 'r'); /* "ready" */
	for (int i = 0; i < input_bytes; i++)
		assert_int_equal(write(live->target.input, "x", 1), 1);
	assert_true(live_waits_for_input(live));
	assert_int_equal(target_hold(&live->target), 0);
	assert_int_equal(lua_process_open(live->target.pid, live->functions, NULL, &options, &live->process),
			 0);
	assert_int_equal(lua_process_refresh(live->process, true), 0);
	lua_process_confirm(live->process);
	assert_int_equal(lua_process_global_count(live->process), states);
	live->global = lua_process_global(live->process, 0);
}

static inline void live_begin(struct live *live, const char *program, int input_bytes, size_t states)
{
	live_begin_with(live, LIVE_LUAJIT, program, input_bytes, states);
}

static inline void live_end(struct live *live)
{
	lua_process_close(live->process);
	target_end(&live->target);
	functions_free(live->functions);
}

/* The frames of the thread, the leaf first; valid until the next call. */
static inline size_t live_unwind(struct live *live, const struct frame **ret_frames)
{
	struct registers registers;
	enum vm_state state;
	size_t count;

	assert_int_equal(target_registers(&live->target, &registers), 0);
	lua_process_capture(live->process, &registers, &live->hints);
	assert_int_equal(lua_process_unwind(live->process, ret_frames, &count, &state), 0);
	return count;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * arm64_thread: find LuaJIT in a thread of an arm64 process.
 *
 * An ljspy that runs on x86-64 reads such processes from core files only. It shows
 * their Lua frames as everywhere; of native code it knows only what runs, as it does
 * not unwind arm64 code.
 */
#ifndef LJSPY_ARM64_THREAD_H
#define LJSPY_ARM64_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "memory/memory.h"
#include "unwind/capture/capture.h"
#include "unwind/capture/lua_image.h"
#include "unwind/stack/merge_lua.h"

struct arm64_registers {
	uint64_t x[31];
	uint64_t sp, pc;
};

/* Interpret an NT_PRSTATUS note of an arm64 core. False if it is too short for one. */
bool arm64_registers_read(const uint8_t *note, size_t size, pid_t *ret_tid,
			  struct arm64_registers *ret_registers);

struct arm64_thread {
	struct global_state *global;           /* NULL if its stack has no VM */
	uint64_t threads[CAPTURE_THREADS_MAX]; /* of Lua: innermost first, each resumed by the next */
	size_t thread_count;
	struct merge_top top;
};

/* Fill in ret_thread. stack_end: the end of the mapping that holds the thread's stack. */
void arm64_thread_find(struct memory *memory, const struct lua_image *lua,
		       const struct arm64_registers *registers, uint64_t stack_end,
		       struct arm64_thread *ret_thread);

#endif

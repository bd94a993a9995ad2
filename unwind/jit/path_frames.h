/* SPDX-License-Identifier: MIT */
/*
 * path_frames: the functions on a trace's path, one frame for each call site.
 *
 * The frames are a tree of calls, which only grows. An index identifies a frame,
 * because the array moves when it grows.
 */
#ifndef LJSPY_PATH_FRAMES_H
#define LJSPY_PATH_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/lua/lua_objects.h"

struct path_frame {
	const struct proto *proto; /* NULL for a builtin that calls back, such as pcall */
	uint64_t function;         /* GCfunc; 0 if unknown */
	int32_t up;                /* frame of its caller; -1 for a start frame */
	uint64_t call_pc;          /* the caller's current bytecode */
	bool by_continuation;      /* called as a metamethod */
	uint8_t base_slot;         /* the trace's slot of its base; 0 if unknown */
};

/* A bytecode on the path. */
struct path_point {
	int32_t frame;
	uint32_t lowered; /* returns below the start frame so far */
	uint64_t pc;
};

struct path_frames {
	struct path_frame *frame;
	size_t count, size;
};

/* Add a copy of a frame. Return its index, or -1 if there is no room. */
int32_t path_frames_add(struct path_frames *frames, const struct path_frame *frame);
void path_frames_clear(struct path_frames *frames);

/* Do two frames and all their callers have the same functions and call sites? */
bool path_frames_are_same(const struct path_frames *frames, int32_t left, int32_t right);

/* Does this frame, or one of its callers, run the function? */
bool path_frames_is_running(const struct path_frames *frames, int32_t frame, const struct proto *proto);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * path_frames: the functions on a trace's path, each as called from one place.
 *
 * They are a tree by who called whom, which only grows. Frames are known by
 * their index, since the array moves as it does.
 */
#ifndef LJSPY_PATH_FRAMES_H
#define LJSPY_PATH_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/lua/lua_objects.h"

struct path_frame {
	const struct proto *proto;	/* NULL for a builtin that calls back, such as pcall */
	uint64_t function;		/* GCfunc; 0 if unknown */
	int32_t up;			/* frame of its caller; -1 for a start frame */
	uint64_t call_pc;		/* what the caller executes */
	bool by_continuation;		/* called as a metamethod */
	uint8_t base_slot;		/* of its base among the trace's slots; 0 if unknown */
};

/* A bytecode on the path. */
struct path_point {
	int32_t frame;
	uint32_t lowered;		/* so often has the trace returned below its start frame by then */
	uint64_t pc;
};

struct path_frames {
	struct path_frame *frame;
	size_t count, size;
};

/* The new frame's index; -1 if there is no room for it. */
int32_t path_frames_add(struct path_frames *frames, const struct path_frame *frame);
void path_frames_clear(struct path_frames *frames);

/* Are these the same functions, called from the same places? */
bool path_frames_are_same(const struct path_frames *frames, int32_t left, int32_t right);

/* Is the function that of this frame, or of one that it was called from? */
bool path_frames_is_running(const struct path_frames *frames, int32_t frame, const struct proto *proto);

#endif

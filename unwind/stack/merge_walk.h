/* SPDX-License-Identifier: MIT */
/*
 * merge_walk: what the parts of merge_stacks() share.
 *
 * Each part passes one kind of native frame: it adds to the stack what the frame
 * stands for, and says where the walk goes on.
 */
#ifndef LJSPY_MERGE_WALK_H
#define LJSPY_MERGE_WALK_H

#include <stdbool.h>

#include "unwind/capture/capture.h"
#include "unwind/elf/image.h"
#include "unwind/native/native.h"
#include "unwind/native/vm_decoder.h"
#include "unwind/stack/lua_sections.h"
#include "unwind/stack/lua_top.h"

struct merge {
	struct capture *capture;
	struct image *image;
	struct native_unwinder *native;
	struct vm_decoder *decoder;
	struct memory *memory; /* the snapshot */
	struct lua_sections lua;
	bool is_half_done; /* the current VM frame is half done and cannot be finished */
};

/* The walk goes on at the native unwinder's frame, ends here, or is lost. */
enum passed { PASSED_ON, PASSED_END, PASSED_LOST };

/* How to find the innermost Lua frame of a thread whose C frame is cframe. */
struct lua_running merge_running_at(const struct merge *merge, const struct lua_thread *thread,
				    uint64_t cframe);

/* Go on at the caller of a VM frame; on_trace as in vm_frame_caller(). */
enum passed merge_leave_vm_frame(struct merge *merge, const struct layout *layout, uint64_t cframe,
				 bool on_trace);

#endif

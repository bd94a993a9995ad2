/* SPDX-License-Identifier: MIT */
/*
 * merge_trace: pass native frames of compiled code, and of its exits.
 *
 * A trace stands for the Lua frames that it has inlined and its start frame
 * at jit_base. On its exit, lj_trace_exit() puts the same frames into the Lua
 * stack. Source: lj_trace.c, lj_snap.c (lj_snap_restore).
 */
#ifndef LJSPY_MERGE_TRACE_H
#define LJSPY_MERGE_TRACE_H

#include <stdint.h>

#include "unwind/capture/capture.h"
#include "unwind/jit/traces.h"
#include "unwind/stack/merge_walk.h"

/* The verified trace that a pc belongs to; its global_State in ret_view. NULL if there is none. */
const struct trace *merge_find_trace(const struct capture *capture, uint64_t pc,
				     const struct global_view **ret_view);

/*
 * The thread that runs compiled code; ret_cframe: its C frame, just above the
 * trace's part of the stack. NULL if there is none. What the trace calls may
 * have linked C frames further in.
 */
const struct lua_thread *merge_thread_on_trace(const struct merge *merge, const struct global_view *view,
					       uint64_t sp, uint64_t *ret_cframe);

/* Pass a trace: add its inlined frames and what lies below them. */
enum passed merge_pass_trace(struct merge *merge, const struct trace *trace, const struct global_view *view);

/* The same if the position in the trace is unknown: add what lies below its start frame. */
enum passed merge_pass_lost_trace(struct merge *merge, const struct lua_thread *thread,
				  const struct global_view *view, uint64_t cframe);

/*
 * Native unwinding has failed, and the next C frame outwards is cframe. If it is the
 * thread's innermost and compiled code runs in it, go on where that called native code,
 * or if that is unknown, with what lies below the trace. Else return false.
 */
bool merge_resynchronise_in_trace(struct merge *merge, const struct lua_thread *thread, uint64_t cframe);

/* Pass the caller of lj_trace_exit(): the Lua stack is that of the exit's snapshot, or soon will be. */
enum passed merge_pass_trace_exit(struct merge *merge, const struct vm_code *vm);

#endif

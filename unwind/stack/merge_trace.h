/* SPDX-License-Identifier: MIT */
/*
 * merge_trace: native frames of compiled code, and of what leaves it.
 *
 * A trace stands for the Lua frames that it has inlined and its start frame
 * at jit_base. While it is left, lj_trace_exit() puts the same frames into the
 * Lua stack. Facts: lj_trace.c, lj_snap.c (lj_snap_restore).
 */
#ifndef LJSPY_MERGE_TRACE_H
#define LJSPY_MERGE_TRACE_H

#include <stdint.h>

#include "unwind/capture/capture.h"
#include "unwind/jit/traces.h"
#include "unwind/stack/merge_walk.h"

/* The verified trace that a pc belongs to, and its global_State; NULL if there is none. */
const struct trace *merge_find_trace(const struct capture *capture, uint64_t pc,
				     const struct global_view **ret_view);

/*
 * The thread that runs compiled code, and its C frame, which lies just above
 * the trace's. What the trace calls may have linked C frames further in.
 */
const struct lua_thread *merge_thread_on_trace(const struct merge *merge,
					       const struct global_view *view, uint64_t sp,
					       uint64_t *ret_cframe);

enum passed merge_pass_trace(struct merge *merge, const struct trace *trace,
			     const struct global_view *view);

/* The same where its position is not known: what lies below its start frame. */
enum passed merge_pass_lost_trace(struct merge *merge, const struct lua_thread *thread,
				  const struct global_view *view, uint64_t cframe);

/*
 * Native unwinding has failed, and the next C frame outwards is this one, the thread's
 * innermost. If compiled code runs in it, go on where that has called native code, or
 * with what lies below the trace if that is not known. False if none runs.
 */
bool merge_resynchronise_in_trace(struct merge *merge, const struct lua_thread *thread, uint64_t cframe);

/* Called from lj_trace_exit(): the stack is that of the exit's snapshot, or is about to be. */
enum passed merge_pass_trace_exit(struct merge *merge, const struct vm_code *vm);

#endif

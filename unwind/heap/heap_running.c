/* SPDX-License-Identifier: MIT */
#include "unwind/heap/heap_running.h"

#include <errno.h>
#include <stdlib.h>

#include "memory/array.h"
#include "unwind/lua/global_state.h"
#include "unwind/lua/lua_thread.h"
#include "unwind/values/trace_values.h"

static bool has_slots(const struct merged_frame *frame, uint64_t g)
{
	return frame->kind == MERGED_LUA && frame->thread && frame->base && frame->global &&
	       frame->global->g == g && !trace_has_inlined(frame) && (!frame->compiled || frame->trace);
}

int heap_running_set(struct heap_running *running, const struct merged_stack *stack, uint64_t g)
{
	running->count = 0;
	for (size_t i = 0; i < stack->count; i++) {
		const struct merged_frame *frame = &stack->frames[i];
		struct heap_running_frame *larger;

		if (!has_slots(frame, g))
			continue;
		larger = array_grow(running->frames, &running->size, running->count + 1, sizeof(*larger));
		if (!larger) {
			running->count = 0;
			return -ENOMEM;
		}
		running->frames = larger;
		running->frames[running->count++] = (struct heap_running_frame){
			.thread = frame->thread->address,
			.base = frame->base,
			.pc = frame->pc_is_near ? 0 : frame->pc,
			.trace = frame->compiled ? frame->trace->address : 0,
		};
	}
	return 0;
}

void heap_running_clear(struct heap_running *running)
{
	free(running->frames);
	*running = (struct heap_running){ 0 };
}

const struct heap_running_frame *heap_running_top(const struct heap_running *running, uint64_t thread)
{
	for (size_t i = 0; running && i < running->count; i++)
		if (running->frames[i].thread == thread)
			return &running->frames[i];
	return NULL;
}

/* SPDX-License-Identifier: MIT */
#include "src/heap/process_heaps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "luajit-layouts/field.h"
#include "output/heap/heap_builder.h"

void process_heaps_clear(struct process_heaps *heaps)
{
	for (size_t i = 0; i < heaps->count; i++) {
		heap_graph_free(&heaps->at[i].graph);
		free(heaps->at[i].account.process);
		free(heaps->at[i].account.module);
	}
	free(heaps->at);
	*heaps = (struct process_heaps){ 0 };
}

/* What is known of a VM whose heap could not be read. 0 or -ENOMEM. */
static int leave_out(struct lua_process *process, struct hold *hold, size_t global, struct vm_heap *heap)
{
	const struct global_state *state = lua_process_global(process, global);
	struct heap_builder *builder = heap_builder_new();
	const struct heap_account tried = heap->account;
	int error = builder ? heap_builder_finish(builder, &heap->graph) : -ENOMEM;

	heap_builder_free(builder);
	heap->too_long_ns = heap->error == -EFBIG ? tried.longest_hold_ns : 0;
	heap->account = (struct heap_account){
		.pid = tried.pid,
		.process = tried.process,
		.vm = tried.vm,
		.g = state->g,
		.module = tried.module,
		.time = tried.time,
		.gc_state = "?",
		.method = HEAP_WHILE_RUNNING,
		.attempts = tried.attempts,
		.holds = tried.holds,
		.held_ns = tried.held_ns,
		.longest_hold_ns = tried.holds ? hold_longest_ns(hold) : 0,
	};
	/* Without it, or of one that is closed, nothing would seem to be missing. */
	if (heap->error == -EIO ||
	    !field_reference(lua_process_memory(process), &state->vm->layout,
			     state->g + (uint64_t)state->vm->layout.g_gc_total, &heap->account.gc_total))
		heap->account.uncertain.unread_objects = 1;
	return error;
}

int process_heaps_read(struct lua_process *process, struct hold *hold, pid_t pid, const char *name,
		       const struct heap_capture_options *options, struct process_heaps *heaps)
{
	size_t count = lua_process_global_count(process), missing = 0;
	int error = 0;

	process_heaps_clear(heaps);
	heaps->at = calloc(count + 1, sizeof(*heaps->at));
	if (!heaps->at)
		return -ENOMEM;
	for (size_t i = 0; i < count && error != -ENOMEM; i++) {
		struct vm_heap *heap = &heaps->at[heaps->count++];

		heap->account = (struct heap_account){
			.pid = pid,
			.process = name ? strdup(name) : NULL,
			.vm = (unsigned int)i + 1,
			.module = strdup(lua_process_global_path(process, i)),
			.time = (int64_t)time(NULL),
		};
		if (error != -EBUSY)
			error = heap_capture(process, hold, i, options, &heap->graph, &heap->account);
		if (!error || error == -ENOMEM)
			continue;
		heap->error = error;
		missing++;
		if (leave_out(process, hold, i, heap))
			error = -ENOMEM;
	}
	if (error == -ENOMEM)
		return error;
	return missing && missing == count ? heaps->at[0].error : 0;
}

const struct vm_heap *process_heaps_missing(const struct process_heaps *heaps)
{
	for (size_t i = 0; i < heaps->count; i++)
		if (heaps->at[i].error)
			return &heaps->at[i];
	return NULL;
}

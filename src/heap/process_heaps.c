/* SPDX-License-Identifier: MIT */
#include "src/heap/process_heaps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

int process_heaps_read(struct lua_process *process, struct hold *hold, pid_t pid, const char *name,
		       const struct heap_capture_options *options, struct process_heaps *heaps)
{
	size_t count = lua_process_global_count(process);
	int error = 0;

	process_heaps_clear(heaps);
	heaps->at = calloc(count + 1, sizeof(*heaps->at));
	if (!heaps->at)
		return -ENOMEM;
	for (size_t i = 0; i < count && !error; i++) {
		struct vm_heap *heap = &heaps->at[heaps->count++];

		heap->account = (struct heap_account){
			.pid = pid,
			.process = name ? strdup(name) : NULL,
			.vm = (unsigned int)i + 1,
			.module = strdup(lua_process_global_path(process, i)),
			.time = (int64_t)time(NULL),
		};
		error = heap_capture(process, hold, i, options, &heap->graph, &heap->account);
	}
	return error;
}

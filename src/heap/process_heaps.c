/* SPDX-License-Identifier: MIT */
#include "src/heap/process_heaps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "output/heap/heap_builder.h"
#include "src/linux/clocks/clock.h"
#include "unwind/allocation/allocated.h"

/* No more holds are tried after that: whoever naps or works where it may not be stopped goes on with it. */
enum { BUSY_NS_MAX = 2000000000 };

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

/*---- Of one VM ----*/

/* What a VM says that it has allocated; 0 if that cannot be read, or it is none any more. */
static uint64_t total_of(struct lua_process *process, size_t global)
{
	struct allocation_counters counters;

	return allocation_counters_read(lua_process_memory(process), lua_process_global(process, global),
					&counters)
		       ? counters.total + counters.string_table
		       : 0;
}

/* What is known of a VM whose heap could not be read. 0 or -ENOMEM. */
static int leave_out(struct lua_process *process, struct hold *hold, size_t global, struct vm_heap *heap)
{
	struct heap_builder *builder = heap_builder_new();
	const struct heap_account tried = heap->account;
	int error = builder ? heap_builder_finish(builder, &heap->graph) : -ENOMEM;

	heap_builder_free(builder);
	heap->too_long_ns = heap->error == -EFBIG ? tried.longest_hold_ns : 0;
	heap->account = (struct heap_account){
		.pid = tried.pid,
		.process = tried.process,
		.vm = tried.vm,
		.g = lua_process_global(process, global)->g,
		.module = tried.module,
		.time = tried.time,
		.gc_total = heap->error == -EIO ? 0 : total_of(process, global),
		.gc_state = "?",
		.method = HEAP_MISSING,
		.attempts = tried.attempts,
		.holds = tried.holds,
		.held_ns = tried.held_ns,
		.longest_hold_ns = tried.holds ? hold_longest_ns(hold) : 0,
	};
	return error;
}

/*---- Of all ----*/

struct place {
	uint64_t total;
	size_t global;
};

static int by_total(const void *a, const void *b)
{
	const struct place *left = a, *right = b;

	if (left->total != right->total)
		return left->total < right->total ? -1 : 1;
	return left->global < right->global ? -1 : 1;
}

/* Small ones first: they are read where a large one keeps changing. */
static void set_order(struct lua_process *process, struct place *places, size_t count)
{
	for (size_t i = 0; i < count; i++)
		places[i] = (struct place){ .total = total_of(process, i), .global = i };
	qsort(places, count, sizeof(*places), by_total);
}

struct reading {
	struct lua_process *process;
	struct hold *hold;
	const struct heap_capture_options *options;
	uint64_t busy_ns; /* taken by tries that ended with -EBUSY */
};

static int read_one(struct reading *reading, size_t global, struct vm_heap *heap)
{
	const uint64_t begin_ns = clock_now_ns(CLOCK_MONOTONIC);
	struct heap_capture_options options = *reading->options;

	options.is_unheld = reading->busy_ns >= BUSY_NS_MAX;
	heap->error = heap_capture(reading->process, reading->hold, global, &options, &heap->graph,
				   &heap->account);
	if (heap->error == -EBUSY)
		reading->busy_ns += clock_now_ns(CLOCK_MONOTONIC) - begin_ns;
	if (!heap->error || heap->error == -ENOMEM)
		return heap->error;
	return leave_out(reading->process, reading->hold, global, heap);
}

static int read_all(struct reading *reading, struct process_heaps *heaps)
{
	struct place *places = calloc(heaps->count + 1, sizeof(*places));
	int error = places ? 0 : -ENOMEM;

	if (places)
		set_order(reading->process, places, heaps->count);
	for (size_t i = 0; i < heaps->count && !error; i++)
		error = read_one(reading, places[i].global, &heaps->at[places[i].global]);
	free(places);
	return error;
}

int process_heaps_read(struct lua_process *process, struct hold *hold, pid_t pid, const char *name,
		       const struct heap_capture_options *options, struct process_heaps *heaps)
{
	struct reading reading = { .process = process, .hold = hold, .options = options };
	const size_t count = lua_process_global_count(process);
	int error;

	process_heaps_clear(heaps);
	heaps->at = calloc(count + 1, sizeof(*heaps->at));
	if (!heaps->at)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		heaps->at[heaps->count++].account = (struct heap_account){
			.pid = pid,
			.process = name ? strdup(name) : NULL,
			.vm = (unsigned int)i + 1,
			.module = strdup(lua_process_global_path(process, i)),
			.time = (int64_t)time(NULL),
		};
	error = read_all(&reading, heaps);
	if (!error && count && process_heaps_missing(heaps) == count)
		error = heaps->at[0].error;
	return error;
}

size_t process_heaps_missing(const struct process_heaps *heaps)
{
	size_t missing = 0;

	for (size_t i = 0; i < heaps->count; i++)
		missing += heaps->at[i].error != 0;
	return missing;
}

const struct vm_heap *process_heaps_missing_by(const struct process_heaps *heaps, int error)
{
	const struct vm_heap *worst = NULL;

	for (size_t i = 0; i < heaps->count; i++)
		if (heaps->at[i].error == error && (!worst || heaps->at[i].too_long_ns > worst->too_long_ns))
			worst = &heaps->at[i];
	return worst;
}

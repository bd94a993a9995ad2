/* SPDX-License-Identifier: MIT */
#include "src/top/history.h"

#include <string.h>

static const uint64_t second_ns = 1000000000;

void history_begin(struct history *history, uint64_t now_ns)
{
	*history = (struct history){ .begin_ns = now_ns };
}

void history_add(struct history *history, const struct sample *sample)
{
	uint64_t number = sample->time_ns / second_ns;
	struct history_second *second = &history->seconds[number % HISTORY_SECONDS];

	if (sample->time_ns < history->begin_ns || second->second > number)
		return;
	if (second->second < number)
		*second = (struct history_second){ .second = number };
	second->cpu_ns[sample->vm_state] += sample->cpu_ns;
	if (sample->gc.heap_bytes > second->heap_bytes)
		second->heap_bytes = sample->gc.heap_bytes;
	gc_allocated_add(&second->allocated, sample);
}

void history_forget(struct history *history, uint64_t before_ns)
{
	if (before_ns > history->begin_ns)
		history->begin_ns = before_ns;
}

static void add_second(struct history_cell *cell, const struct history_second *second)
{
	for (int state = 0; state < VM_STATE_COUNT; state++)
		cell->cpu_ns[state] += second->cpu_ns[state];
	if (second->heap_bytes > cell->heap_bytes)
		cell->heap_bytes = second->heap_bytes;
	gc_allocated_merge(&cell->allocated, &second->allocated);
}

size_t history_read(const struct history *history, uint64_t now_ns, size_t count, struct history_cell *cells,
		    unsigned int *ret_seconds)
{
	/* The first second and the current one are not whole. */
	uint64_t end = now_ns / second_ns, first = history->begin_ns / second_ns + 1, seen, each, used;

	seen = end > first ? end - first : 0;
	if (seen > HISTORY_SECONDS - 1)
		seen = HISTORY_SECONDS - 1;
	if (seen == 0 || count == 0)
		return 0;
	each = (seen + count - 1) / count;
	used = seen / each;
	memset(cells, 0, used * sizeof(*cells));
	for (uint64_t i = 0; i < used * each; i++) {
		uint64_t number = end - used * each + i;
		const struct history_second *second = &history->seconds[number % HISTORY_SECONDS];

		if (second->second == number)
			add_second(&cells[i / each], second);
	}
	*ret_seconds = (unsigned int)each;
	return used;
}

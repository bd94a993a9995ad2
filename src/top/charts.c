/* SPDX-License-Identifier: MIT */
#include "src/top/charts.h"

#include <stdio.h>
#include <string.h>

#include "output/labels/names.h"

/* From nothing to the whole. */
static const char *const blocks[] = { " ",      "\u2581", "\u2582", "\u2583", "\u2584",
				      "\u2585", "\u2586", "\u2587", "\u2588" };
static const char *const signs[] = { " ", ".", ":", "-", "=", "+", "*", "%", "#" };

enum { LEVELS = sizeof(blocks) / sizeof(blocks[0]) };

struct values {
	double at[CHART_CELLS_MAX];
	size_t count;
	double whole; /* what fills a cell */
};

static void make_text(const char *name, const char *latest, const struct values *values, bool utf8,
		      char ret_text[static CHART_TEXT_SIZE])
{
	size_t length = (size_t)snprintf(ret_text, CHART_TEXT_SIZE, "%-11s %7s ", name, latest);

	for (size_t i = 0; i < values->count; i++) {
		double part = values->whole > 0 ? values->at[i] / values->whole : 0;
		int level = (int)(part * (LEVELS - 1) + 0.5);

		/* What is there shows. */
		if (level == 0 && values->at[i] > 0)
			level = 1;
		if (level > LEVELS - 1)
			level = LEVELS - 1;
		length += (size_t)snprintf(ret_text + length, CHART_TEXT_SIZE - length, "%s",
					   utf8 ? blocks[level] : signs[level]);
	}
}

static uint64_t cpu_of(const struct history_cell *cell)
{
	uint64_t sum = 0;

	for (int state = 0; state < VM_STATE_COUNT; state++)
		sum += cell->cpu_ns[state];
	return sum;
}

/* A line of CPU time, in percent of one CPU, or of as many as were used. */
static void make_cpu(const struct history_cell *cells, struct values *values, double cell_ns, int state,
		     bool utf8, struct chart *chart)
{
	char latest[16];

	values->whole = cell_ns;
	for (size_t i = 0; i < values->count; i++) {
		values->at[i] = (double)(state < 0 ? cpu_of(&cells[i]) : cells[i].cpu_ns[state]);
		if ((double)cpu_of(&cells[i]) > values->whole)
			values->whole = (double)cpu_of(&cells[i]);
	}
	snprintf(latest, sizeof(latest), "%.1f%%", 100 * values->at[values->count - 1] / cell_ns);
	chart->state = state;
	make_text(state < 0 ? "CPU" : vm_state_name((enum vm_state)state), latest, values, utf8, chart->text);
}

/* False if no heap was seen. */
static bool make_heap(const struct history_cell *cells, struct values *values, bool utf8, struct chart *chart)
{
	char text[16];
	double latest = 0;

	values->whole = 0;
	for (size_t i = 0; i < values->count; i++) {
		values->at[i] = (double)cells[i].heap_bytes;
		if (values->at[i] > values->whole)
			values->whole = values->at[i];
		/* While nothing runs, the heap stays as it is. */
		if (values->at[i] > 0)
			latest = values->at[i];
	}
	if (values->whole <= 0)
		return false;
	snprintf(text, sizeof(text), latest < 9.95e6 ? "%.1f MB" : "%.0f MB", latest / 1e6);
	chart->state = -1;
	make_text("heap", text, values, utf8, chart->text);
	return true;
}

/* Bytes allocated in a second, by all VMs. False if none were seen. */
static bool make_allocated(const struct history_cell *cells, struct values *values, double cell_s, bool utf8,
			   struct chart *chart)
{
	char text[16];
	bool is_least = false;

	values->whole = 0;
	for (size_t i = 0; i < values->count; i++) {
		values->at[i] = (double)gc_allocated_bytes(&cells[i].allocated, &is_least) / cell_s;
		if (values->at[i] > values->whole)
			values->whole = values->at[i];
	}
	if (values->whole <= 0)
		return false;
	snprintf(text, sizeof(text), "%s%.*f MB", is_least ? ">" : "",
		 values->at[values->count - 1] < 9.95e6 ? 1 : 0, values->at[values->count - 1] / 1e6);
	chart->state = -1;
	make_text("alloc/s", text, values, utf8, chart->text);
	return true;
}

/* The state that took most of those that are not made yet; negative if none took any. */
static int next_state(const uint64_t sums[static VM_STATE_COUNT])
{
	int next = -1;

	for (int state = 0; state < VM_STATE_COUNT; state++)
		if (sums[state] && (next < 0 || sums[state] > sums[next]))
			next = state;
	return next;
}

size_t charts_make(const struct history *history, uint64_t now_ns, size_t count, size_t columns, bool utf8,
		   struct chart ret_charts[static CHARTS_MAX], unsigned int *ret_seconds)
{
	struct history_cell cells[CHART_CELLS_MAX];
	size_t wanted = columns > CHART_HEAD_COLUMNS ? columns - CHART_HEAD_COLUMNS : 0, made = 0;
	uint64_t sums[VM_STATE_COUNT] = { 0 };
	struct values values = { .count = 0 };
	unsigned int seconds = 0;
	struct chart heap, allocated;
	bool has_heap, has_allocated;
	size_t last;
	int state;

	values.count = history_read(history, now_ns, wanted < CHART_CELLS_MAX ? wanted : CHART_CELLS_MAX,
				    cells, &seconds);
	*ret_seconds = (unsigned int)values.count * seconds;
	if (values.count == 0 || count == 0)
		return 0;
	for (size_t i = 0; i < values.count; i++)
		for (int of = 0; of < VM_STATE_COUNT; of++)
			sums[of] += cells[i].cpu_ns[of];
	has_heap = make_heap(cells, &values, utf8, &heap) && count > 1;
	has_allocated = make_allocated(cells, &values, seconds, utf8, &allocated) && count > 3;
	last = (size_t)has_heap + has_allocated;
	make_cpu(cells, &values, 1e9 * seconds, -1, utf8, &ret_charts[made++]);
	/* The collector's share has a line wherever there is room for any state. */
	if (made + last < count) {
		uint64_t gc = sums[VM_STATE_GC];

		sums[VM_STATE_GC] = 0;
		while (made + last + (gc > 0) < count && (state = next_state(sums)) >= 0) {
			make_cpu(cells, &values, 1e9 * seconds, state, utf8, &ret_charts[made++]);
			sums[state] = 0;
		}
		if (gc)
			make_cpu(cells, &values, 1e9 * seconds, VM_STATE_GC, utf8, &ret_charts[made++]);
	}
	if (has_allocated)
		ret_charts[made++] = allocated;
	if (has_heap)
		ret_charts[made++] = heap;
	return made;
}

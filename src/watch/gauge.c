/* SPDX-License-Identifier: MIT */
#include "src/watch/gauge.h"

#include <string.h>

void gauge_begin(struct gauge *gauge, const struct condition *condition, uint64_t since_ns)
{
	*gauge = (struct gauge){ .condition = condition, .since_ns = since_ns };
}

bool gauge_value(struct gauge *gauge, uint64_t value)
{
	const bool held = gauge->holds;

	gauge->value = value;
	gauge->holds = value > gauge->condition->limit;
	return gauge->holds && !held;
}

static struct gauge_reading *last(struct gauge *gauge)
{
	return &gauge->readings[gauge->count - 1];
}

static void drop_oldest(struct gauge *gauge)
{
	gauge->count--;
	memmove(gauge->readings, gauge->readings + 1, gauge->count * sizeof(gauge->readings[0]));
}

static void add(struct gauge *gauge, uint64_t at_ns, uint64_t value)
{
	if (gauge->count == GAUGE_READINGS)
		drop_oldest(gauge);
	gauge->readings[gauge->count++] = (struct gauge_reading){ at_ns, value };
}

bool gauge_cpu(struct gauge *gauge, uint64_t now_ns, uint64_t cpu_ns)
{
	const uint64_t span_ns = gauge->condition->span_ns;
	const struct gauge_reading *oldest = gauge->readings;
	uint64_t elapsed_ns;

	if (gauge->count == 0 || now_ns - last(gauge)->at_ns >= span_ns / GAUGE_PARTS)
		add(gauge, now_ns, cpu_ns);
	while (gauge->count > 1 && now_ns - gauge->readings[1].at_ns >= span_ns)
		drop_oldest(gauge);
	elapsed_ns = now_ns - oldest->at_ns;
	if (elapsed_ns == 0 || elapsed_ns < span_ns || cpu_ns < oldest->value)
		return false;
	return gauge_value(gauge, (cpu_ns - oldest->value) * 100 / elapsed_ns);
}

/* A tenth of the span is over: compare its least heap with that of the whole. */
static bool judge_heap(struct gauge *gauge, uint64_t now_ns)
{
	uint64_t least = last(gauge)->value;

	while (gauge->count > 1 && now_ns - gauge->readings[0].at_ns > gauge->condition->span_ns)
		drop_oldest(gauge);
	for (unsigned int i = 0; i < gauge->count; i++)
		if (gauge->readings[i].value < least)
			least = gauge->readings[i].value;
	return gauge_value(gauge, (last(gauge)->value - least) * 100 / least);
}

bool gauge_heap(struct gauge *gauge, uint64_t now_ns, uint64_t live_bytes)
{
	const uint64_t part_ns = gauge->condition->span_ns / GAUGE_HEAP_PARTS;
	bool begins = false;

	if (live_bytes == 0 || now_ns < gauge->since_ns)
		return false;
	if (gauge->count == 0 || now_ns - last(gauge)->at_ns >= part_ns) {
		begins = gauge->count > 0 && judge_heap(gauge, now_ns);
		add(gauge, now_ns, live_bytes);
	} else if (live_bytes < last(gauge)->value) {
		last(gauge)->value = live_bytes;
	}
	return begins;
}

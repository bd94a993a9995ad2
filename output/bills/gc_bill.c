/* SPDX-License-Identifier: MIT */
#include "output/bills/gc_bill.h"

static struct frame innermost_lua(const struct sample *sample)
{
	for (size_t i = 0; i < sample->frame_count; i++)
		if (sample->frames[i].function->kind == FRAME_LUA)
			return sample->frames[i];
	return (struct frame){ .function = NULL };
}

static bool is_same_step(const struct gc_step *a, const struct gc_step *b)
{
	/* A sample's time is that of a moment later. */
	return a->tid == b->tid && a->begin_ns <= b->begin_ns + b->length_ns &&
	       b->begin_ns <= a->begin_ns + a->length_ns;
}

/* Keep it among the longest, in place of what was seen of it before. */
static void add_step(struct gc_bill *bill, const struct sample *sample)
{
	struct gc_step step = {
		.tid = sample->tid,
		.begin_ns = sample->time_ns - sample->gc.step_ns,
		.length_ns = sample->gc.step_ns,
		.first = sample->gc.phase,
		.last = sample->gc.phase,
		.frame = innermost_lua(sample),
	};
	size_t i = 0;

	while (i < GC_STEPS_MAX - 1 && bill->steps[i].length_ns && !is_same_step(&bill->steps[i], &step))
		i++;
	if (bill->steps[i].length_ns >= step.length_ns)
		return;
	if (is_same_step(&bill->steps[i], &step))
		step.first = bill->steps[i].first;
	for (; i > 0 && bill->steps[i - 1].length_ns < step.length_ns; i--)
		bill->steps[i] = bill->steps[i - 1];
	bill->steps[i] = step;
}

void gc_bill_add(struct gc_bill *bill, const struct sample *sample, uint64_t ns)
{
	const struct sample_gc *gc = &sample->gc;

	bill->phase_ns[gc->phase] += ns;
	bill->phase_squares[gc->phase] += (double)ns * (double)ns;
	bill->cycles += gc->has_marked;
	gc_allocated_add(&bill->allocated, sample);
	if (gc->step_ns)
		add_step(bill, sample);
	if (gc->heap_bytes == 0)
		return;
	if (bill->heap_tid == 0)
		bill->heap_tid = sample->tid;
	bill->has_heaps |= sample->tid != bill->heap_tid;
	if (bill->heap_least == 0 || gc->heap_bytes < bill->heap_least)
		bill->heap_least = gc->heap_bytes;
	if (gc->heap_bytes > bill->heap_most)
		bill->heap_most = gc->heap_bytes;
}

bool gc_bill_has_any(const struct gc_bill *bill)
{
	for (int phase = GC_PHASE_NONE + 1; phase < GC_PHASE_COUNT; phase++)
		if (bill->phase_ns[phase])
			return true;
	return false;
}

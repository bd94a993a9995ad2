/* SPDX-License-Identifier: MIT */
#include "unwind/allocation/collector_look.h"

#include "unwind/allocation/allocated.h"
#include "unwind/lua/luajit.h"

enum {
	/* In so much CPU time, no step that is worth a line ends, and another begins. */
	GAP_NS = 10 * 1000 * 1000,
	GAPS_MISSED = 4,
	GAPS_KEPT = 8,
};

/* The bytes allocated since the look before, without those that sweeps seem to have taken back. */
static uint64_t tell_allocated(struct collector_look *look, const struct allocated *allocated)
{
	int64_t told;

	look->untold = allocated->is_least ? allocated->bytes : look->untold + allocated->bytes;
	told = look->untold > 0 ? look->untold : 0;
	if (told > 0 || look->untold < -ALLOCATED_FREED_MAX)
		look->untold = 0;
	return (uint64_t)told;
}

/* A sample with a marking tells that it may be more. Finalizers come once a cycle, as a marking does. */
static void tell_part(struct collector_look *look, bool is_least, struct sample_gc *gc)
{
	if (gc->has_marked) {
		gc->allocated_bytes += look->part_bytes;
		gc->used_ns += look->part_ns;
		look->part_bytes = look->part_ns = 0;
	} else if (is_least) {
		look->part_bytes += gc->allocated_bytes;
		look->part_ns += gc->used_ns;
		gc->allocated_bytes = gc->used_ns = 0;
	}
}

/*
 * While a program has stopped the collector, all full collections that it asks for have the same threshold.
 * But then another marking than the step's own has ended in between, and changed the white once more.
 */
static bool is_same_step(const struct collector_look *look, const struct allocation_counters *now,
			 const struct allocated *allocated, bool has_marked)
{
	const bool must_mark = look->counters.state <= GCSatomic && now->state > GCSatomic;

	return look->step_begin_ns && look->counters.threshold == now->threshold &&
	       now->state >= look->counters.state && has_marked == must_mark &&
	       allocated->bytes <= ALLOCATED_FREED_MAX;
}

/*
 * Has the thread had so much CPU time since the last look that looks were missed? One step may have ended in
 * it, and another begun: two markings cannot be told from one.
 */
static bool has_gap(struct collector_look *look, uint64_t used_ns)
{
	const uint64_t gap_ns = look->step_gap_ns;
	const bool has_missed = gap_ns && used_ns > GAP_NS && used_ns > GAPS_MISSED * gap_ns;
	/* Looks may have become rare for good: little by little, the usual gap follows. */
	const uint64_t counted_ns = has_missed ? GAPS_MISSED * gap_ns : used_ns;

	look->step_gap_ns = gap_ns ? gap_ns - gap_ns / GAPS_KEPT + counted_ns / GAPS_KEPT : used_ns;
	return has_missed;
}

void collector_look_add(struct memory *memory, struct global_state *global, uint64_t now_ns, uint64_t cpu_ns,
			struct sample_gc *gc)
{
	struct collector_look *look = &global->collector;
	const bool is_step = gc->phase != GC_PHASE_NONE && gc->phase != GC_PHASE_FINALIZE;
	const bool has_looked = look->counters.string_table > 0;
	struct allocation_counters now;
	struct allocated allocated;
	uint64_t used_ns = 0;

	if (!allocation_counters_read(memory, global, &now))
		return;
	allocation_counters_follow(&look->counters, &now);
	allocated = allocated_between(&look->counters, &now);
	if (has_looked) {
		used_ns = cpu_ns > look->cpu_ns ? cpu_ns - look->cpu_ns : 0;
		gc->allocated_bytes = tell_allocated(look, &allocated);
		gc->used_ns = used_ns;
		/* After two markings the current white is the same again. */
		gc->has_marked |= allocated.has_marked;
		tell_part(look, allocated.is_least, gc);
	}
	if (!is_step)
		look->step_begin_ns = 0;
	else if (!is_same_step(look, &now, &allocated, gc->has_marked) || has_gap(look, used_ns))
		look->step_begin_ns = now_ns;
	else
		gc->step_ns = now_ns - look->step_begin_ns;
	/*
	 * A marking sets gc.estimate to all there is, sweeping takes off what it frees, and finalizers more
	 * (lj_gc.c).
	 */
	gc->live_bytes = now.state < GCSatomic ? now.estimate : 0;
	look->counters = now;
	look->cpu_ns = cpu_ns;
}

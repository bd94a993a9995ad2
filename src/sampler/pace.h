/* SPDX-License-Identifier: MIT */
/*
 * pace: set the gaps between looks so that each period of CPU time gets a sample.
 *
 * Looks come at random moments, whether the target then has a CPU or waits for one. So
 * ljspy is equally likely to see each moment that the target runs. But chance also
 * decides how many looks find it running, and some come too late to tell. So the pace
 * compares the CPU time used with the samples taken, and shortens or lengthens the gaps.
 * It compares once in many periods, so the gaps do not depend on where in its work the
 * target is.
 *
 * If more looks cannot make up for missing samples, the pace counts missed ticks. In the
 * end each period of CPU time has a sample or a missed tick.
 */
#ifndef LJSPY_PACE_H
#define LJSPY_PACE_H

#include <stdint.h>

struct pace {
	uint64_t period_ns;
	uint64_t begin_cpu_ns, compared_cpu_ns;
	uint64_t samples, missed;
	/*
	 * Mean gaps in periods: the one that leaves no samples missing in the long run, and that until the
	 * next comparison.
	 */
	double usual_stretch, stretch;
};

/* Looks at a target begin; cpu_ns, its CPU time so far, does not count. */
void pace_begin(struct pace *pace, uint64_t period_ns, uint64_t cpu_ns);

void pace_note_sample(struct pace *pace);

/*
 * Compare: the target has used cpu_ns of CPU time since its start. Returns how many more
 * ticks to count as missed.
 */
uint64_t pace_compare(struct pace *pace, uint64_t cpu_ns);

/* The same at the end, after the last sample. */
uint64_t pace_conclude(struct pace *pace, uint64_t cpu_ns);

/*
 * The time from a look to the next, in ns. It is at least half a period, so that ljspy is done
 * with the last sample; otherwise it would always look right after that. random is any
 * evenly spread 64-bit number.
 */
uint64_t pace_gap(const struct pace *pace, uint64_t random);

#endif

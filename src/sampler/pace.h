/* SPDX-License-Identifier: MIT */
/*
 * pace: set the gaps between looks so that each period of CPU time gets a sample.
 *
 * Looks come at random moments, whether the target has a CPU then or waits for one, so
 * each moment that it runs is equally likely to be seen. But chance also decides how
 * many looks find it running, and some come too late to tell. So the pace compares
 * the CPU time used with the samples taken, and shortens or lengthens the gaps for a
 * while. That while is many periods long, so it does not depend on where in its work
 * the target is.
 *
 * What more looks cannot make up for is missed: in the end each period of CPU time has
 * a sample or a missed tick.
 */
#ifndef LJSPY_PACE_H
#define LJSPY_PACE_H

#include <stdint.h>

struct pace {
	uint64_t period_ns;
	uint64_t begin_cpu_ns, compared_cpu_ns;
	uint64_t samples, missed;
	double stretch; /* mean gap in periods */
};

/* Looks at a target begin; cpu_ns, its CPU time so far, does not count. */
void pace_begin(struct pace *pace, uint64_t period_ns, uint64_t cpu_ns);

void pace_note_sample(struct pace *pace);

/* The target has used cpu_ns in all. Returns how many ticks to count as missed now. */
uint64_t pace_compare(struct pace *pace, uint64_t cpu_ns);

/* The same at the end, when there will be no more samples. */
uint64_t pace_conclude(struct pace *pace, uint64_t cpu_ns);

/*
 * The time from a look to the next, in ns. It is never so short that ljspy is still busy with the
 * last sample: it would always look just when it is done with that. random is evenly spread.
 */
uint64_t pace_gap(const struct pace *pace, uint64_t random);

#endif

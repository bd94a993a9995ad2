/* SPDX-License-Identifier: MIT */
/*
 * pace: how far apart looks are, so that there is a sample for each period of CPU time.
 *
 * Looks come at random moments, whether the target has a CPU then or waits for one: so
 * each moment that it runs is as likely to be seen as any other. But how many looks
 * find it running is then a matter of chance, too, and some come too late to tell.
 * So the CPU time that was used is compared with the samples that were taken, and looks
 * come somewhat sooner or later after each other for a while. That while is many
 * periods long: where in its work a target is has no part in it.
 *
 * What even more looks cannot make up for is missed: in the end there is a
 * sample or a missed tick for each period of CPU time.
 */
#ifndef LJSPY_PACE_H
#define LJSPY_PACE_H

#include <stdint.h>

struct pace {
	uint64_t period_ns;
	uint64_t begin_cpu_ns, compared_cpu_ns;
	uint64_t samples, missed;
	double stretch;		/* of gaps */
};

/* Of a target that begins to be looked at; its CPU time so far does not count. */
void pace_begin(struct pace *pace, uint64_t period_ns, uint64_t cpu_ns);

void pace_note_sample(struct pace *pace);

/*
 * The target has used so much CPU time in all. How many ticks are to be counted as missed now.
 */
uint64_t pace_compare(struct pace *pace, uint64_t cpu_ns);

/* The same at the end, when there will be no more samples. */
uint64_t pace_conclude(struct pace *pace, uint64_t cpu_ns);

/*
 * From a look to the next one, never so short that ljspy is still busy with the last sample: it
 * would always look just when it is done with it. random is evenly spread.
 */
uint64_t pace_gap(const struct pace *pace, uint64_t random);

#endif

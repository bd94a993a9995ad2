/* SPDX-License-Identifier: MIT */
/* The gap between looks: compare samples with CPU time, and stretch the gap. */
#include "src/sampler/pace.h"

enum {
	/* CPU time from one comparison to the next. */
	COMPARE_PERIODS = 16,
	/* The pace makes up for at most this many missing samples; it counts the others as missed. */
	OWED_MAX = 2 * COMPARE_PERIODS,
};

/* Until the next comparison, the gaps make up for half of the missing samples. */
static const double made_up = 0.5 / COMPARE_PERIODS;

/*
 * Where looks keep coming too late to tell, that alone would always leave some missing: so this part of it
 * lasts. Not while many are missing at once, as at the beginning, when each sample is dear.
 */
static const double lasting = 0.1;

/* Bounds of the mean gap, in periods. Gaps spread evenly around it, and are at least half a period. */
static const double stretch_min = 0.6, stretch_max = 2;

void pace_begin(struct pace *pace, uint64_t period_ns, uint64_t cpu_ns)
{
	*pace = (struct pace){
		.period_ns = period_ns,
		.begin_cpu_ns = cpu_ns,
		.compared_cpu_ns = cpu_ns,
		.usual_stretch = 1,
		.stretch = 1,
	};
}

void pace_note_sample(struct pace *pace)
{
	pace->samples++;
}

/* How many more samples there should be; negative if there are too many. */
static double owed(const struct pace *pace, uint64_t cpu_ns)
{
	double periods = (double)(cpu_ns - pace->begin_cpu_ns) / (double)pace->period_ns;

	return periods - (double)pace->samples - (double)pace->missed;
}

static uint64_t note_missed(struct pace *pace, double count)
{
	uint64_t missed = count >= 1 ? (uint64_t)count : 0;

	pace->missed += missed;
	return missed;
}

static double bounded(double stretch)
{
	if (stretch < stretch_min)
		return stretch_min;
	return stretch > stretch_max ? stretch_max : stretch;
}

uint64_t pace_compare(struct pace *pace, uint64_t cpu_ns)
{
	double change;
	uint64_t missed;

	if (cpu_ns - pace->compared_cpu_ns < COMPARE_PERIODS * pace->period_ns)
		return 0;
	pace->compared_cpu_ns = cpu_ns;
	missed = note_missed(pace, owed(pace, cpu_ns) - OWED_MAX);
	change = -made_up * owed(pace, cpu_ns);
	pace->stretch = bounded(pace->usual_stretch + change);
	if (pace->stretch > stretch_min && pace->stretch < stretch_max)
		pace->usual_stretch += lasting * change;
	return missed;
}

uint64_t pace_conclude(struct pace *pace, uint64_t cpu_ns)
{
	return note_missed(pace, owed(pace, cpu_ns));
}

uint64_t pace_gap(const struct pace *pace, uint64_t random)
{
	uint64_t least = pace->period_ns / 2;

	/* Up to twice the difference of mean and least: that gives the mean. */
	return least + random % (uint64_t)(2 * (pace->stretch - 0.5) * (double)pace->period_ns);
}

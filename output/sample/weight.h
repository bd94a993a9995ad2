/*
 * weight: what a sample counts for.
 */
#ifndef LJSPY_WEIGHT_H
#define LJSPY_WEIGHT_H

#include <stdint.h>

#include "output/sample/sample.h"

/* Which of a sample's two times is its weight. */
enum weight_kind {
	WEIGHT_CPU_TIME,
	WEIGHT_WALL_TIME,
	WEIGHT_OFF_CPU_TIME,	/* wall time of samples that a filter has taken the CPU time from */
};

/* Of a sample, in nanoseconds. */
uint64_t weight_of(enum weight_kind kind, const struct sample *sample);

#endif

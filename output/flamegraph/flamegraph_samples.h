/* SPDX-License-Identifier: MIT */
/*
 * flamegraph_samples: the samples behind the frames of a flame graph.
 *
 * With them, the user selects a process, a thread, a phase or a time, and sees
 * the samples in order of time and as a heat map. The data is in two
 * <metadata>: "threads" has a line for each thread in each phase,
 *
 *	pid tid process TAB thread TAB phase
 *
 * with empty names for unknown ones and no phase. "moments" begins with the
 * time of the recording and has a line for each sample, in time order:
 *
 *	since_us until_us
 *	delta_us frame state weight_ns [thread]
 *
 * Times count from the beginning of the session. delta_us is the time since
 * the previous sample; for the first, since 0. frame is an index in the flame
 * graph's list of frames; after a "-", the sample ends in a callee of that
 * frame which is too small to be listed. state is a letter (color.h). thread is
 * an index in threads; 0 is not written.
 *
 * More than MOMENTS_MAX samples have no times, unless the user has asked for
 * them: equal ones are summed. "parts", in place of "moments", then has a line
 * for each sum, and is only there if there are several threads:
 *
 *	samples frame state weight_ns [thread]
 *
 * With more than PARTS_MAX sums, the file has none of these: the user cannot
 * select. "cpu" (output/over_time/cpu_use.h) is always there, if there is CPU time.
 */
#ifndef LJSPY_FLAMEGRAPH_SAMPLES_H
#define LJSPY_FLAMEGRAPH_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "output/over_time/cpu_use.h"
#include "output/recording/sample_source.h"
#include "output/sample/session.h"
#include "output/views/profile.h"
#include "output/views/view.h"

enum {
	FLAMEGRAPH_MOMENTS_MAX = 100000,
	FLAMEGRAPH_PARTS_MAX = 400000,
	/* Threads in phases; all later ones count as one, with pid 0. */
	FLAMEGRAPH_THREADS_MAX = 4096,
};

struct flamegraph_samples;

struct flamegraph_samples_options {
	uint64_t start_ns; /* of the session, in CLOCK_MONOTONIC */
	struct time_span span;
	double rate_hz;   /* asked for; 0 if unknown */
	bool all_moments; /* keep the times of any number of samples, with 24 bytes each */
};

/*
 * Read a source to its end, and add its samples to profile, which must outlive
 * the result and get no other samples. Strings of samples are borrowed. 0,
 * -ENOMEM or the source's error.
 */
int flamegraph_samples_read(struct sample_source *source, struct profile *profile,
			    const struct flamegraph_samples_options *options,
			    struct flamegraph_samples **ret_samples);
/* The CPU use of all samples over time. */
const struct cpu_use *flamegraph_samples_cpu(const struct flamegraph_samples *samples);
void flamegraph_samples_free(struct flamegraph_samples *samples);

/* Write the data. listed are the frames in the order of the file, the root first. 0 or -ENOMEM. */
int flamegraph_samples_write(FILE *out, const struct flamegraph_samples *samples,
			     const struct profile_node *const *listed, size_t listed_count);

#endif

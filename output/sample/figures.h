/* SPDX-License-Identifier: MIT */
/*
 * figures: the quality and the cost of a recording.
 *
 * The sampler counts as it samples; every output ends with these figures.
 * Zeroed memory is a valid start.
 */
#ifndef LJSPY_FIGURES_H
#define LJSPY_FIGURES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "output/sample/frame.h"
#include "output/sample/histogram.h"
#include "output/sample/lost.h"
#include "output/sample/sample.h"

struct figures {
	uint64_t samples;          /* including lost ones */
	uint64_t lost[LOST_COUNT]; /* samples with an unknown part, each counted by its first reason */
	/*
	 * CPU time that the samples stand for, and those with an unknown part. One sample may stand for that
	 * of a hundred short runs of a thread that no tick met.
	 */
	uint64_t sampled_cpu_ns, lost_cpu_ns;
	uint64_t missed_ticks; /* ticks at which a sample was due and none was taken */
	uint64_t dropped;     /* samples taken, but not recorded: not in time, or they could not be written */
	uint64_t away_ns;     /* without sampling: ljspy was stopped, or a target's memory kept it waiting */
	uint64_t skid;        /* stops that came late, from another CPU, and met the end of a system call */
	uint64_t undisturbed; /* samples without a stop, which might have changed a system call */
	struct histogram pause_ns; /* how long a thread was held, for a sample or to deliver a signal */
	uint64_t duration_ns;      /* of the recording */
	uint64_t self_cpu_ns;      /* CPU time of ljspy itself */
	uint64_t target_cpu_ns;    /* CPU time of the target during the recording */
	/*
	 * Of the bytes that were allocated: those that are less certain, and those of which there may be any
	 * more.
	 */
	uint64_t alloc_estimated, alloc_least;
	/* ... all of them, and those of large allocations, of which it is rough who has how many. */
	uint64_t alloc_all, alloc_large;
	bool alloc_large_unknown; /* by an older recording */
	bool is_part;             /* the samples are some of those taken, which the user chose */
	/* the recording has no end: what only that tells is not known, see figures_json() */
	bool is_unfinished;
	bool target_cpu_unknown; /* by a recording of allocations, whose samples do not tell it */
	bool lost_cpu_unknown;   /* lost_cpu_ns, of samples of allocations */
	double rate_asked_hz;
	double rate_reached_hz; /* 0 if unknown, as of allocations: one look at a target finds several */
	uint64_t frames[CERTAINTY_COUNT]; /* frames shown, by certainty of their position */
};

/* What the frames of one stack add to the figures. */
struct figures_stack {
	uint32_t frames[CERTAINTY_COUNT];
	uint32_t lost; /* 1 + the reason of the innermost lost frame; 0 if no frame is lost */
};

/* Count one more frame, on top of those counted before. */
void figures_push(struct figures_stack *stack, const struct function *function,
		  enum frame_certainty certainty);
/* Count a sample with this stack, which stands for that CPU time. */
void figures_add_stack(struct figures *figures, const struct figures_stack *stack, uint64_t cpu_ns);

/* Count a sample, its frames, and the reason if a part is lost. */
void figures_add_sample(struct figures *figures, const struct sample *sample);

/* Set what samples tell to what was counted of others. The rest stays. */
void figures_take_samples(struct figures *figures, const struct figures *counted);

/* Add the figures of another recording to sum. rate_reached_hz stays; see figures_set_rate(). */
void figures_add(struct figures *sum, const struct figures *figures);

/*
 * Set what a sampler counts for its whole run to what it has counted since an earlier state. The rest, such
 * as the samples that a recording has, stays.
 */
void figures_count_since(struct figures *figures, const struct figures *now, const struct figures *before);

/* Set rate_reached_hz: samples per second of clocked_ns, the time that the sampling clock counted. */
void figures_set_rate(struct figures *figures, uint64_t clocked_ns);

enum { FIGURES_RATE_SIZE = 64 };

/* "99.8 Hz reached of 100 asked", or without what was reached if it is unknown. */
void figures_rate(const struct figures *figures, char ret_text[static FIGURES_RATE_SIZE]);

enum { FIGURES_BYTES_SIZE = 200 };

/*
 * "1.3 GB are estimated: ..." in ret_text, which it returns, or that it is not known; NULL if no bytes are
 * less certain than others.
 */
const char *figures_uncertain_bytes(const struct figures *figures, char ret_text[static FIGURES_BYTES_SIZE]);

/*
 * "about 1.2 GB (estimated) are in large allocations: ..." in ret_text, which it returns; NULL if that is not
 * known, or if they are so few of all bytes that it hardly matters.
 */
const char *figures_large_bytes(const struct figures *figures, char ret_text[static FIGURES_BYTES_SIZE]);

/* The number of samples with an unknown part, for any reason. */
uint64_t figures_lost(const struct figures *figures);

enum { FIGURES_LOST_SIZE = 64 };

/*
 * "0.40 %" in ret_text, which it returns: the share of those samples; where they have half a point or more
 * besides of the CPU time, "0.40 %, but 2.25 % of the CPU time".
 */
const char *figures_lost_share(const struct figures *figures, char ret_text[static FIGURES_LOST_SIZE]);

/* Print a few lines for people. */
void figures_print(FILE *out, const struct figures *figures);

/*
 * A JSON object, with the unit in each name: samples, lost by reason, lost_cpu_ms, missed_ticks, dropped,
 * away_ms, undisturbed, skid, pause_us {p50, p90, p99, max}, duration_ms, self_cpu_ms, target_cpu_ms,
 * alloc_bytes {estimated, least, large}, rate_hz {asked, reached}, frames {exact, nearest, function}. Of a
 * recording without an end, missed_ticks to pause_us, self_cpu_ms, alloc_bytes and the rate asked are null;
 * of an older one, large is; of allocations, lost_cpu_ms is. The caller owns the reference.
 * NULL when memory is short.
 */
json_t *figures_json(const struct figures *figures);

/*
 * Write that object to a stream, with members added, a borrowed object
 * or NULL. 0, -ENOMEM or -EIO (the stream's own error is in errno).
 */
int figures_write_json(FILE *out, const struct figures *figures, json_t *members);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * figures: how far a recording can be trusted, and what it cost.
 *
 * The part of ljspy that takes samples counts here as it goes; every output
 * ends with these figures. All zero bytes means that nothing happened yet.
 */
#ifndef LJSPY_FIGURES_H
#define LJSPY_FIGURES_H

#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "output/sample/frame.h"
#include "output/sample/histogram.h"
#include "output/sample/lost.h"
#include "output/sample/sample.h"

struct figures {
	uint64_t samples;		/* looks at a thread, lost ones included */
	uint64_t lost[LOST_COUNT];	/* of these, with an unknown part; each by its first reason */
	uint64_t missed_ticks;		/* times at which a sample was due and none was taken */
	uint64_t dropped;		/* samples that were taken, but not in time for whoever records them */
	uint64_t away_ns;		/* in which nobody was looked at, as ljspy itself was stopped */
	uint64_t undisturbed;		/* samples without a stop, as one might have changed a call of the thread's */
	struct histogram pause_ns;	/* how long a thread was held, for a sample or for a signal to be delivered */
	uint64_t duration_ns;		/* of the recording */
	uint64_t self_cpu_ns;		/* CPU time of ljspy itself */
	uint64_t target_cpu_ns;		/* CPU time of the target meanwhile */
	double rate_asked_hz;
	double rate_reached_hz;
	uint64_t frames[CERTAINTY_COUNT];	/* frames shown, by how sure their position is */
};

/* What the frames of a stack add to figures. */
struct figures_stack {
	uint32_t frames[CERTAINTY_COUNT];
	uint32_t lost;		/* the reason of the innermost lost frame, and 1; 0 if none is lost */
};

/* One more frame, on top of those that were counted. */
void figures_push(struct figures_stack *stack, const struct function *function,
		  enum frame_certainty certainty);
/* Count a sample of this stack. */
void figures_add_stack(struct figures *figures, const struct figures_stack *stack);

/* Count the sample, why a part of it is lost, and its frames. */
void figures_add_sample(struct figures *figures, const struct sample *sample);

/* Those of two recordings together, but for the rate that was reached. */
void figures_add(struct figures *sum, const struct figures *figures);

/* The rate that was reached: of these samples in so much time, of the kind that their clock counts. */
void figures_set_rate(struct figures *figures, uint64_t clocked_ns);

/* Samples with an unknown part, whatever the reason. */
uint64_t figures_lost(const struct figures *figures);

/* A few lines for people. */
void figures_print(FILE *out, const struct figures *figures);

/*
 * As JSON, with the unit in each name: samples, lost by reason, missed_ticks, dropped, away_ms,
 * undisturbed, pause_us {p50, p90, p99, max}, duration_ms, self_cpu_ms, target_cpu_ms,
 * rate_hz {asked, reached}, frames {exact, nearest, function}. The caller
 * owns the reference; NULL when memory is short.
 */
json_t *figures_json(const struct figures *figures);

/*
 * The same, to a stream, with other members if there are any: an object, which
 * is borrowed, or NULL. 0, -ENOMEM or -EIO (the stream's own error is in errno).
 */
int figures_write_json(FILE *out, const struct figures *figures, json_t *others);

#endif

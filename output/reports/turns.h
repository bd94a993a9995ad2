/* SPDX-License-Identifier: MIT */
/*
 * turns: how long the turns of event loops took, told from samples.
 *
 * A turn is the time in which an event loop does not wait for events; all that
 * becomes ready meanwhile has to wait. Where the loop's own clock is known
 * (sample.loop_ns), that tells turns apart and when each began. Elsewhere two
 * samples are of one turn only if the thread has not slept in between. An end
 * that only samples tell is taken to be half-way between two of them.
 *
 * Each turn of at least a threshold is seen if samples are no farther apart
 * than that; a shorter one is seen by chance.
 */
#ifndef LJSPY_TURNS_H
#define LJSPY_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#include "output/sample/sample.h"

struct turn {
	pid_t pid, tid;
	uint64_t number;	/* unique */
	uint64_t begin_ns;
	uint64_t end_ns;	/* 0 until it is over */
	uint64_t slack_ns;	/* it may be longer or shorter by so much */
};

/*
 * A sample of a long turn, in time order with those of other threads: wall_ns
 * is the part of the turn that it stands for. The turn may still go on.
 */
typedef int turns_take(void *context, const struct turn *turn, const struct sample *sample);

/* A turn is over, long or not; of a long one there are no more samples. */
typedef int turns_close(void *context, const struct turn *turn, bool is_long);

struct turns_options {
	uint64_t threshold_ns;		/* a turn is long from here on */
	turns_take *take;
	turns_close *close;
	void *context;
};

struct turns;

/* NULL when memory is short. */
struct turns *turns_new(const struct turns_options *options);
void turns_free(struct turns *turns);

/* Keep the functions of samples that have not been handed on (see output/sample/functions.h). */
void turns_keep_functions(const struct turns *turns);

/* Of any thread; in time order. 0, -ENOMEM or what was returned by take or close. */
int turns_add(struct turns *turns, const struct sample *sample);

/* There are no more: turns that go on end here. */
int turns_finish(struct turns *turns);

#endif

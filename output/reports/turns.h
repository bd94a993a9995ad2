/* SPDX-License-Identifier: MIT */
/*
 * turns: the length of the turns of event loops, derived from samples.
 *
 * A turn is the time in which an event loop does not wait for events; events
 * that become ready during a turn have to wait. If the loop's own clock is
 * known (sample.loop_ns), it separates turns and shows when each began.
 * Otherwise two samples belong to one turn only if the thread has not slept
 * between them: of a loop that always finds work, and so never sleeps, several
 * turns look like one. An end known only from samples is set half-way between two.
 * In a process with such a clock only the first thread has a loop.
 *
 * If samples are no farther apart than the threshold, every turn of at least
 * the threshold is seen. A shorter one is seen by chance.
 */
#ifndef LJSPY_TURNS_H
#define LJSPY_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#include "output/sample/sample.h"

struct turn {
	pid_t pid, tid;
	uint64_t number; /* unique */
	uint64_t begin_ns;
	uint64_t end_ns;   /* 0 until it is over */
	uint64_t slack_ns; /* the turn may be this much longer or shorter */
	/* it ran from one sample to the next, and nothing but sleeps would tell turns apart */
	bool may_be_several;
};

/*
 * Called for each sample of a long turn, in time order with those of other
 * threads. wall_ns is the part of the turn that the sample stands for. The turn
 * may still go on. 0 or a negative errno.
 */
typedef int turns_take(void *context, const struct turn *turn, const struct sample *sample);

/* Called when a turn is over, long or not, after its last sample. It refuses nothing. */
typedef void turns_close(void *context, const struct turn *turn, bool is_long);

struct turns_options {
	uint64_t threshold_ns; /* turns of at least this length are long */
	turns_take *take;
	turns_close *close;
	void *context;
};

struct turns;

/* options are copied. NULL when memory is short. */
struct turns *turns_new(const struct turns_options *options);
void turns_free(struct turns *turns);

/* Keep the functions of queued samples (see output/sample/functions.h). */
void turns_keep_functions(const struct turns *turns);

/* Add a sample of any thread, in time order. 0, -ENOMEM or the error of take. */
int turns_add(struct turns *turns, const struct sample *sample);

/*
 * Call this after the last sample: open turns end at their last samples, and all samples are handed on. *lost
 * grows by the number of those that take refused; that is no reason to keep others back, but for
 * -EIO, after which all that are left are lost. 0; or -EIO or -ENOMEM, if one of these was why.
 */
int turns_finish(struct turns *turns, uint64_t *lost);

#endif

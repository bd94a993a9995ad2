/* SPDX-License-Identifier: MIT */
/*
 * apart_state: what front and engine each have of their own, and its parts.
 *
 * apart.c begins and is the front's thread that takes what comes; beat.c is the
 * front's thread that beats and hears of signals; engine.c is the engine's main
 * thread, which watches over the one that works.
 */
#ifndef LJSPY_APART_STATE_H
#define LJSPY_APART_STATE_H

#include <pthread.h>
#include <semaphore.h>

#include "src/apart/apart.h"
#include "src/apart/shared.h"

enum {
	BEAT_NS = 33 * 1000 * 1000,
	SILENCE_NS = 100 * 1000 * 1000,	/* after which the front is not there */
	FIRST_BEAT_NS = 1000 * 1000 * 1000,	/* so long it may take to begin */
	BEAT_AT_REST_NS = 1000 * 1000 * 1000 - 1,
};

struct apart {
	const struct apart_options *options;
	struct shared *shared;
	size_t shared_size;
	pid_t front_group;
	pid_t others[APART_OTHERS];	/* front and guard */

	/* The front's. */
	pid_t guard;
	pthread_t taker, beater;
	atomic_bool taker_waits, taker_is_done;
	atomic_bool engine_is_gone;
	_Atomic uint64_t results_seen;	/* the version of the results that was looked at last */
	_Atomic uint64_t interrupted_ns;	/* when the first signal to conclude came; 0: none has */
	_Atomic int interrupted_by;	/* that signal */
	atomic_bool interrupted_by_process;
	uint64_t begin_cpu_ns;		/* of the front's process */

	/* The engine's. */
	atomic_bool must_let_go;
	atomic_bool is_away;		/* nobody is traced */
	bool standard_files_closed;
	atomic_bool worker_ends;	/* it has nothing more to do */
	sem_t watch;			/* has the watch look at once */
};

/*---- beat.c ----*/

/* A thread of the front: beats until the taker is done. 0 or a negative errno. */
int beat_begin(struct apart *apart);
void beat_end(struct apart *apart);

/* Wait, in the taker, until there may be something new; hears of signals, too. */
void beat_await(struct apart *apart);

/*---- engine.c ----*/

_Noreturn void engine_run(struct apart *apart);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * apart_state: the private state of front and engine, shared by the files of this folder.
 *
 * apart.c starts everything and runs the front's thread that takes messages (the taker).
 * beat.c runs the front's thread that beats and receives signals. engine.c runs the
 * engine's main thread (the watch), which watches over the worker.
 */
#ifndef LJSPY_APART_STATE_H
#define LJSPY_APART_STATE_H

#include <pthread.h>
#include <semaphore.h>

#include "src/apart/absence.h"
#include "src/apart/inherited_files.h"
#include "src/apart/apart.h"
#include "src/apart/dead_man.h"
#include "src/apart/shared.h"

enum {
	BEAT_NS = 33 * 1000 * 1000,
	SILENCE_NS = 100 * 1000 * 1000,     /* between beats, after which the engine lets go */
	FIRST_BEAT_NS = 1000 * 1000 * 1000, /* the front may take this long to begin */
	BEAT_AT_REST_NS = 1000 * 1000 * 1000 - 1,
};

struct apart {
	const struct apart_options *options;
	struct shared *shared;
	size_t shared_size;
	pid_t front_group;
	pid_t own_pids[APART_OWN_PIDS]; /* front and guard */

	/* The front's. */
	pid_t guard;
	pthread_t taker, beater;
	atomic_bool taker_waits, taker_is_done;
	atomic_bool engine_is_gone;
	_Atomic uint64_t results_seen;   /* the results' version at the last update() */
	_Atomic uint64_t interrupted_ns; /* when the first signal to conclude came; 0: none came */
	_Atomic int interrupted_by;      /* that signal */
	atomic_bool interrupted_by_process;
	uint64_t begin_cpu_ns; /* the front's CPU time at the beginning */

	/* The engine's. */
	atomic_bool must_let_go;
	atomic_bool is_away; /* there are no tracees */
	bool waits_briefly;  /* the worker, as it told last */
	bool standard_files_closed;
	struct inherited_files inherited; /* to be closed with them */
	atomic_bool worker_ends;          /* it has nothing more to do */
	sem_t watch;                      /* wakes the watch */
	struct absence absence;           /* the worker's */
	struct dead_man dead_man;         /* continues the engine */
	pthread_mutex_t tracer_lock;
	/* see apart_note_tracer(); under the lock, so that the thread does not end meanwhile */
	pid_t tracer_tid;
	clockid_t tracer_clock; /* of its CPU time */
};

/*---- beat.c ----*/

/* Start the front's thread that beats until beat_end(). 0 or a negative errno. */
int beat_begin(struct apart *apart);
void beat_end(struct apart *apart);

/* In the taker: wait until there may be something new; handles signals, too. */
void beat_await(struct apart *apart);

/*---- engine.c ----*/

/* Be the engine: run the work, then exit. */
_Noreturn void engine_run(struct apart *apart);

#endif

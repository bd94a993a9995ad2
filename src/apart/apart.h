/* SPDX-License-Identifier: MIT */
/*
 * apart: whoever traces is a process of its own, and waits for nobody but its target.
 *
 * A thread that is traced stops for each signal and goes on when its tracer says
 * so. If ljspy is stopped meanwhile (Ctrl-Z), or waits for a terminal, a disk or
 * who reads what it writes, the target stands still. So there are three processes:
 *
 *	front	what the user has started: terminal, files, signals, rendering
 *	guard	waits for the engine, and has it go on if it is stopped (guard.h)
 *	engine	traces; it has no file of the front's and is out of its terminal's reach
 *
 * The front beats: a thread of its own tells the time, in memory that is shared.
 * If it does not for 100 ms, and does not merely wait for a CPU, the engine lets
 * go of everybody, and begins anew when it beats again. From the engine to the
 * front leads a queue, which refuses what does not fit (queue.h), and results, of
 * which there is always the last whole version.
 *
 * Should all three be stopped, a timer of the engine's has the kernel let it go on.
 * If the front dies, so does the guard, and with it the engine. If the engine dies,
 * in whatever way, the kernel frees what it traces; the front has what came so far.
 */
#ifndef LJSPY_APART_H
#define LJSPY_APART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct apart;

struct apart_options {
	/*
	 * In the engine, in a thread of its own. What it does is bounded, or asks for
	 * apart_wish() when SIGCHLD comes, which is blocked. When it is to conclude,
	 * SIGHUP comes, which is blocked, too.
	 */
	void (*work)(struct apart *apart, void *context);

	/* In the front, by the thread that called apart_run(); NULL if not wanted. */
	void (*take)(struct apart *apart, void *context, const unsigned char *bytes, size_t size);
	/* ... some 30 times a second while there is something new, and at the end. */
	void (*look)(struct apart *apart, void *context);

	void *context;		/* the engine has a copy of what was there at its beginning */
	size_t results_size;
	bool can_be_concluded;	/* by SIGINT, SIGTERM, SIGHUP or SIGQUIT, which else end ljspy at once */
	bool keeps_standard_files;	/* in the engine, until apart_close_standard_files() */
	int standard_output, standard_error;	/* the engine's, if they are not 0 */
};

enum apart_end {
	APART_CONCLUDED,
	APART_KILLED,	/* the engine or its guard, by somebody */
};

/*
 * Run the work in an engine, and take what it sends, until it is done. 0 or a
 * negative errno, when there was no engine.
 *
 * SIGINT, SIGTERM, SIGHUP, SIGCHLD and SIGRTMIN must be blocked in every thread of
 * ljspy's, and SIGQUIT if it is to be as the former three: the first of these has
 * the work concluded; another SIGINT ends ljspy.
 */
int apart_run(const struct apart_options *options, enum apart_end *ret_end);

/*---- In the front, from within take() and look() ----*/

/* Have the work concluded. */
void apart_conclude(struct apart *apart);

/* The last whole version of the results; false if there is none. For all that is in it the engine's word is all there is. */
bool apart_results(const struct apart *apart, void *ret_results);

/* The first signal that was to end it, 0 if none was; and whether a process sent it to ljspy alone, not the terminal to all. */
int apart_interrupted_by(const struct apart *apart, bool *ret_by_process);

/* So far: for how long the engine stayed away, and the CPU time of all of ljspy but the engine's own results. */
uint64_t apart_away_ns(const struct apart *apart);
uint64_t apart_cpu_ns(const struct apart *apart);

/*---- In the engine ----*/

enum apart_wish {
	APART_GO_ON,
	APART_LET_GO,	/* of everybody, at once, and apart_stay_away() */
	APART_CONCLUDE,	/* soon */
};

enum apart_wish apart_wish(const struct apart *apart);

/* Until the front beats again; false if it is to conclude. */
bool apart_stay_away(struct apart *apart);

/*
 * The worker waits for a target to run, or no longer: meanwhile, front and engine wake up rarely.
 * Should all three be stopped then, a signal for a target may wait for 300 ms; else 35 ms.
 */
void apart_rest(struct apart *apart, bool rests);

/* False if there is no room; the message is lost. */
bool apart_send(struct apart *apart, const void *bytes, size_t size);

void apart_publish(struct apart *apart, const void *results);

void apart_close_standard_files(struct apart *apart);

/* The process group that the front is in, and the processes of ljspy's but the engine. */
pid_t apart_front_group(const struct apart *apart);
enum { APART_OTHERS = 2 };
const pid_t *apart_others(const struct apart *apart);

#endif

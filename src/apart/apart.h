/* SPDX-License-Identifier: MIT */
/*
 * apart: a separate process traces, and waits only for its targets.
 *
 * A tracee stops for each signal until its tracer resumes it. If ljspy traced in the
 * process the user started, the target would stand still while that process is stopped
 * (Ctrl-Z) or waits for a terminal, a disk or the reader of its output. So there are
 * three processes:
 *
 *	front	the one the user started: terminal, files, signals, rendering
 *	guard	waits for the engine, and continues it if it is stopped (guard.h)
 *	engine	traces; it has none of the front's files, and its terminal cannot signal it
 *
 * The front beats: one of its threads stores, in shared memory, when its next beat is
 * overdue. If no beat comes for 100 ms, and the thread does not merely wait for a CPU,
 * the engine detaches from all tracees; it starts again when the front does. The engine
 * sends the front messages by a queue, which refuses messages that do not fit (queue.h).
 * It also publishes results; the front reads their last whole version.
 *
 * If the kernel does not come back from reading a target for seconds (blocked.h), the
 * engine ends. If all three are stopped, a timer makes the kernel continue the engine. If the front
 * dies, the guard dies with it, and the engine with the guard. However the engine dies,
 * the kernel releases its tracees; the front keeps what it has received.
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
	 * Runs in the engine, in a thread. Each of its steps takes bounded time, or checks
	 * apart_wish() when SIGCHLD comes. SIGHUP asks it to conclude. Both are blocked.
	 */
	void (*work)(struct apart *apart, void *context);

	/* Runs in the front, in the thread that called apart_run(), for each message. May be NULL. */
	void (*take)(struct apart *apart, void *context, const unsigned char *bytes, size_t size);
	/*
	 * Runs there, too: about 10 times a second while there are new results, and at the end. May be NULL.
	 */
	void (*update)(struct apart *apart, void *context);

	void *context;         /* the engine has a copy, from when it was forked */
	size_t results_size;   /* bytes */
	bool can_be_concluded; /* by SIGINT, SIGTERM, SIGHUP or SIGQUIT; otherwise they end ljspy at once */
	/*
	 * The engine keeps the standard files, and those that ljspy was started with, until
	 * apart_close_standard_files(): a command is to inherit them. The front closes all but the first
	 * three.
	 */
	bool keeps_standard_files;
	int standard_output, standard_error; /* descriptors for the engine to use; 0: /dev/null */
};

enum apart_end {
	APART_CONCLUDED,
	APART_KILLED,    /* the engine or its guard died, or the engine sent nonsense */
	APART_BLOCKED,   /* the kernel kept the engine waiting for seconds, so the engine ended */
	APART_UNWATCHED, /* waitpid() fails for ljspy's own processes, so they were ended */
};

struct apart_outcome {
	enum apart_end end;
	pid_t blocked_pid;    /* with APART_BLOCKED: whose memory it was reading; 0 if unknown */
	bool blocked_in_exec; /* that process seemed to be in an execve(): it had memory without code */
};

/*
 * Run the work in an engine, and take what it sends, until it is done. 0, or a negative errno:
 * why the engine could not start, or, with APART_UNWATCHED, of waitpid().
 *
 * Every thread of ljspy must block SIGINT, SIGTERM, SIGHUP, SIGCHLD and WAKE_SIGNAL, and
 * SIGQUIT to treat it like the first three. The first of them concludes the work;
 * another SIGINT ends ljspy.
 */
int apart_run(const struct apart_options *options, struct apart_outcome *ret_outcome);

/*---- In the front, from within take() and update() ----*/

/* Ask the engine to conclude the work. */
void apart_conclude(struct apart *apart);

/* Copy the last whole version of the results; false if there is none. Its content is not checked. */
bool apart_results(const struct apart *apart, void *ret_results);

/*
 * The first signal that asked to conclude; 0: none did. *ret_by_process: a process sent
 * it. Otherwise the terminal did, which also signalled the command that ljspy started.
 */
int apart_interrupted_by(const struct apart *apart, bool *ret_by_process);

/* How long the engine has stayed away so far. */
uint64_t apart_away_ns(const struct apart *apart);
/* The CPU time of the front so far, and that of the guard if it has ended. */
uint64_t apart_cpu_ns(const struct apart *apart);

/*---- In the engine ----*/

enum apart_wish {
	APART_GO_ON,
	APART_LET_GO,   /* detach from all tracees at once, then apart_stay_away() */
	APART_CONCLUDE, /* soon */
};

enum apart_wish apart_wish(const struct apart *apart);

/* Wait until the front beats again; false if the worker is to conclude. */
bool apart_stay_away(struct apart *apart);

/*
 * Say whether the worker only waits for a target to run. While it does, front and engine
 * wake up rarely; if all three are stopped then, a signal for a target may wait 300 ms
 * instead of 35 ms.
 */
void apart_rest(struct apart *apart, bool rests);

/*
 * The worker is about to wait for so long. It comes by where that is brief, as the wait before was. While it
 * does so often, the engine's main thread sleeps on. What that notices it may notice later for that, by 20 ms
 * at most.
 */
void apart_come_by(struct apart *apart, uint64_t wait_ns);

/*
 * The calling thread of the engine, tid, traces, and binds itself to CPUs; 0: it does no more. If it waits
 * for its CPU, it may run on all of them again (stranded.h).
 */
void apart_note_tracer(struct apart *apart, pid_t tid);

/* Send the front a message. False if there is no room; the message is lost. */
bool apart_send(struct apart *apart, const void *bytes, size_t size);

/* Make a copy of the results, of apart_options.results_size bytes, the front's newest version. */
void apart_publish(struct apart *apart, const void *results);

/* Replace the standard files as the options say, and close those kept; only the first call has an effect. */
void apart_close_standard_files(struct apart *apart);

/* The front's process group, and ljspy's other processes: front and guard. */
pid_t apart_front_group(const struct apart *apart);
enum { APART_OWN_PIDS = 2 };
const pid_t *apart_own_pids(const struct apart *apart);

#endif

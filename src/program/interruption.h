/* SPDX-License-Identifier: MIT */
/*
 * interruption: signals that come while ljspy writes results.
 *
 * The first one ends ljspy at once. ljspy passes it on to the command it started and
 * tells the user what is left. A signal within 250 ms of the recording's end does not
 * count: it was meant to end the recording, and timeout(1) signals both ljspy and its
 * group. All threads block the signals that end a recording, and WAKE_SIGNAL; a thread
 * created here waits for them.
 */
#ifndef LJSPY_INTERRUPTION_H
#define LJSPY_INTERRUPTION_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct interruption {
	pthread_t thread;
	const char *words;    /* the message to print; NULL for none */
	pthread_mutex_t lock; /* of words */
	pid_t command;        /* 0 if there is none, or if it has ended */
	int signal;           /* the one that ended the recording; 0 if none did */
	uint64_t begin_ns;
	atomic_bool over;
};

/* SIGINT, SIGTERM, SIGHUP, SIGQUIT. */
void interruption_signals(sigset_t *ret_signals);

/* Has one of them come that waits, for it is blocked? */
bool interruption_is_pending(void);

/*
 * True if a process sent the signal. The terminal's signals go to all processes
 * in the foreground, including the command.
 */
bool interruption_is_from_process(const siginfo_t *info);

/*
 * Handle signals until interruption_end(). The caller has set words, command and
 * signal, and lock to PTHREAD_MUTEX_INITIALIZER. False if the thread cannot be created.
 */
bool interruption_begin(struct interruption *interruption);

/*
 * Print other words from now on; the caller may free the former. If those are being printed, ljspy ends
 * before this returns: what they name is still there.
 */
void interruption_set_words(struct interruption *interruption, const char *words);

/* Signals that come from now on stay blocked. */
void interruption_end(struct interruption *interruption);

#endif

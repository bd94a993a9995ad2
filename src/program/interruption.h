/* SPDX-License-Identifier: MIT */
/*
 * interruption: signals that come while results are written.
 *
 * The first one ends ljspy at once, but the command that was started gets it
 * as well, and the user is told what is left. What comes within a moment of the
 * recording's end was to end that: whoever has sent it could not know, and
 * timeout(1) sends one to ljspy and to its group. The signals that end a recording
 * are blocked in all threads, and so is SIGRTMIN; one of its own waits for them here.
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
	_Atomic(const char *) words;	/* to be said; NULL if there is nothing to say */
	pid_t command;		/* 0 if there is none, or if it has ended */
	int signal;		/* that has ended the recording; 0 if none has */
	uint64_t begin_ns;
	atomic_bool over;
};

/* SIGINT, SIGTERM, SIGHUP, SIGQUIT. */
void interruption_signals(sigset_t *ret_signals);

/*
 * Has a process sent it? The terminal's goes to all processes in the
 * foreground, the command among them.
 */
bool interruption_is_from_process(const siginfo_t *info);

/* words, command and signal are set. Until interruption_end(); false if it cannot be. */
bool interruption_begin(struct interruption *interruption);

/* Those that come from now on are blocked as before. */
void interruption_end(struct interruption *interruption);

#endif

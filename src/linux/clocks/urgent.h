/* SPDX-License-Identifier: MIT */
/*
 * urgent: ljspy runs before other threads while it holds one, where that is allowed.
 *
 * A held thread waits for ljspy. On a busy machine ljspy waits for a CPU itself,
 * in the middle of a hold if its time slice ends there. So for the length of a
 * hold it takes SCHED_RR or, if only that is allowed, the best nice value. It may keep
 * that for the short work that follows a hold: a thread that gets a signal stops, too, and waits
 * until ljspy has a CPU. Work that turns out long goes on with the policy and nice value
 * that ljspy's user gave it; but where SCHED_RR is allowed and the user gave no nice value,
 * it has a better one throughout. A thread with a real-time policy keeps that. Threads and processes that
 * ljspy starts have none of this.
 *
 * So that ljspy can never take a CPU for good, the kernel ends it when it has run
 * for URGENT_MAX_US without a sleep (RLIMIT_RTTIME).
 */
#ifndef LJSPY_URGENT_H
#define LJSPY_URGENT_H

#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <time.h>

enum { URGENT_MAX_US = 1000 * 1000 };

/* A timer of the thread's CPU time sends it. SIGRTMAX is valgrind's, and the one below watch.h's. */
#define URGENT_SIGNAL (SIGRTMAX - 2)

enum urgent_means {
	URGENT_NOT_ALLOWED, /* or not needed */
	URGENT_BY_NICE,
	URGENT_BY_POLICY,
};

struct urgent {
	enum urgent_means means;
	volatile sig_atomic_t begun;

	/* The module's own. */
	volatile sig_atomic_t goes_on; /* it has begun, and nothing is held: the timer may end it */
	volatile sig_atomic_t is_long; /* the timer has expired once since it goes on */
	timer_t timer;
	bool has_timer;
	int policy, nice, best_nice; /* policy and nice as the user gave them */
	unsigned begun_count;        /* holds under SCHED_RR */
	struct rlimit limit;         /* RLIMIT_RTTIME as it was */
};

/* For the calling thread. Do not move urgent in memory before it is closed. */
void urgent_open(struct urgent *urgent);
/* The same, but only by the nice value: for a thread that may hold others for longer than URGENT_MAX_US. */
void urgent_open_by_nice(struct urgent *urgent);
void urgent_close(struct urgent *urgent);

/* No effect if it has already begun, or ended. */
void urgent_begin(struct urgent *urgent);
void urgent_end(struct urgent *urgent);

/*
 * Instead of urgent_end() after a hold: stay urgent, but sleep for a moment now and then, as there. It ends
 * by itself when the thread has used some 4 to 8 ms of CPU time without another urgent_begin().
 */
void urgent_go_on(struct urgent *urgent);

#endif

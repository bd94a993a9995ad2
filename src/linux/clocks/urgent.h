/* SPDX-License-Identifier: MIT */
/*
 * urgent: ljspy runs before other threads while it holds one, where that is allowed.
 *
 * A held thread waits for ljspy. On a busy machine ljspy waits for a CPU itself,
 * in the middle of a hold if its time slice ends there. So for the length of a
 * hold it takes SCHED_RR or, if only that is allowed, the best nice value. Then
 * it returns to the policy and nice value that its user gave it; but where SCHED_RR
 * is allowed and the user gave no nice value, it keeps a better one throughout, as its
 * samples would come too late else. A thread with a real-time policy keeps that.
 *
 * So that ljspy can never take a CPU for good, the kernel ends it when it has run
 * for URGENT_MAX_US without a sleep (RLIMIT_RTTIME).
 */
#ifndef LJSPY_URGENT_H
#define LJSPY_URGENT_H

#include <stdbool.h>
#include <sys/resource.h>

enum { URGENT_MAX_US = 1000 * 1000 };

enum urgent_means {
	URGENT_NOT_ALLOWED, /* or not needed */
	URGENT_BY_NICE,
	URGENT_BY_POLICY,
};

struct urgent {
	enum urgent_means means;
	bool begun;

	/* The module's own. */
	int policy, nice, best_nice; /* policy and nice as the user gave them */
	unsigned begun_count;        /* holds under SCHED_RR */
	struct rlimit limit;         /* RLIMIT_RTTIME as it was */
};

/* For the calling thread, which must start no thread or process between begin and end. */
void urgent_open(struct urgent *urgent);
/* The same, but only by the nice value: for a thread that may hold others for longer than URGENT_MAX_US. */
void urgent_open_by_nice(struct urgent *urgent);
void urgent_close(struct urgent *urgent);

/* No effect if it has already begun, or ended. */
void urgent_begin(struct urgent *urgent);
void urgent_end(struct urgent *urgent);

/* Instead of urgent_end() after a hold: stay urgent, but sleep for a moment now and then, as there. */
void urgent_go_on(struct urgent *urgent);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * urgent: running before others, where that is allowed, for as long as somebody is held.
 *
 * A thread that is held waits for ljspy. On a full machine ljspy waits for the
 * others there: in the middle of a hold, if its time is used up then. So for
 * the length of a hold it asks for SCHED_RR or, where only that is allowed, for
 * the best nice value, and then goes back to what its user gave it. Whoever
 * has a real-time policy already keeps it.
 *
 * So that it can never take a CPU for good, the kernel ends it when it has run for
 * URGENT_MAX_US without a sleep (RLIMIT_RTTIME).
 */
#ifndef LJSPY_URGENT_H
#define LJSPY_URGENT_H

#include <stdbool.h>
#include <sys/resource.h>

enum { URGENT_MAX_US = 1000 * 1000 };

enum urgent_means {
	URGENT_NOT_ALLOWED,	/* or not needed */
	URGENT_BY_NICE,
	URGENT_BY_POLICY,
};

struct urgent {
	enum urgent_means means;
	bool begun;

	/* The module's own. */
	int policy, nice, best_nice;	/* policy and nice as the user gave them */
	unsigned begun_count;		/* since it slept */
	struct rlimit limit;		/* as it was */
};

/* Of the calling thread. Nothing that it starts is to be started between begin and end. */
void urgent_open(struct urgent *urgent);
void urgent_close(struct urgent *urgent);

/* Without effect if it has begun, or ended, already. */
void urgent_begin(struct urgent *urgent);
void urgent_end(struct urgent *urgent);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * follow: find new processes that ljspy should watch.
 *
 * ljspy follows descendants of followed processes, for good, even if their parents
 * end before them; and it follows processes that match a pattern. It finds them in
 * /proc, which needs no privilege and disturbs no process. One short read tells
 * whether any process has started since the last search (/proc/loadavg ends with the
 * newest id), so ljspy can search often. Where processes start all the time, the
 * longer a search takes, the later the next one comes.
 */
#ifndef LJSPY_FOLLOW_H
#define LJSPY_FOLLOW_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "memory/errand.h"

struct follow_options {
	bool descendants;       /* follow descendants of followed processes */
	bool orphans;           /* follow processes that ljspy has inherited (PR_SET_CHILD_SUBREAPER) */
	const regex_t *pattern; /* see process_matches(); NULL if there is none; must outlive the follow */
	const pid_t *own_pids;  /* ljspy's other processes, to leave out; must outlive the follow */
	size_t own_pid_count;
	/*
	 * With a pattern: what to do while a helper reads names, which may take half a second; NULL: nothing.
	 */
	const struct errands_waiter *waiter;
};

struct follow;

/* Receives a process that is now followed; parents come before their children. */
typedef void follow_found(void *context, pid_t pid);

/* NULL when memory is short. */
struct follow *follow_new(const struct follow_options *options);
void follow_free(struct follow *follow);

/* Follow this process from the start; follow_search() does not report it. 0 or -ENOMEM. */
int follow_add(struct follow *follow, pid_t pid);

/* When to search again, in CLOCK_MONOTONIC; 0 before the first search. */
uint64_t follow_due(const struct follow *follow);

/*
 * Call found() for each process that is newly followed. The first search lists the
 * processes that exist already. 0 or a negative errno; the next search then finds what
 * this one could not see.
 */
int follow_search(struct follow *follow, uint64_t now_ns, follow_found *found, void *context);

/*
 * Of how many processes is it not known whether they match, as the kernel keeps whoever reads their arguments
 * waiting? They are read again when it no longer does. *ret_pid: one of them, unless all have ended.
 */
size_t follow_unread(const struct follow *follow, pid_t *ret_pid);

#endif

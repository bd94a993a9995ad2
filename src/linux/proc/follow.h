/* SPDX-License-Identifier: MIT */
/*
 * follow: noticing processes that come to belong to those being watched.
 *
 * Descendants of followed processes are followed as well, for good, even if
 * their parents end before them; and so are processes that match a pattern.
 * They are found by looking at /proc, which takes no privilege and disturbs
 * nobody. One short read tells whether any process was started since the last
 * look (/proc/loadavg ends with the newest id), so that looking often is cheap.
 * Where processes start all the time, the next look comes the later the longer
 * a look takes.
 */
#ifndef LJSPY_FOLLOW_H
#define LJSPY_FOLLOW_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct follow_options {
	bool descendants;	/* of processes that are followed */
	bool orphans;		/* processes that ljspy has inherited (PR_SET_CHILD_SUBREAPER) */
	const regex_t *pattern;	/* see process_matches(); NULL if there is none; must outlive it */
	const pid_t *own_pids;	/* ljspy's other processes, which are left out; must outlive it */
	size_t own_pid_count;
};

struct follow;

/* Receives a process; parents come before their children. */
typedef void follow_found(void *context, pid_t pid);

/* NULL when memory is short. */
struct follow *follow_new(const struct follow_options *options);
void follow_free(struct follow *follow);

/* Follow this process from the start; it is not told of. 0 or -ENOMEM. */
int follow_add(struct follow *follow, pid_t pid);

/* When to look again, in CLOCK_MONOTONIC; 0 before the first look. */
uint64_t follow_due(const struct follow *follow);

/*
 * Tell of each process that has come to be followed. Which processes there are
 * already is found out at the first look. 0 or a negative errno; what could not
 * be seen then is found next time.
 */
int follow_look(struct follow *follow, uint64_t now_ns, follow_found *found, void *context);

#endif

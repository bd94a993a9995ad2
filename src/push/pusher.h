/* SPDX-License-Identifier: MIT */
/*
 * pusher: a process that sends what an archive holds to a service for profiles.
 *
 * It reads the archive and talks to the server; it has nothing to do with sampling, which
 * no server delays. A pipe tells it that a recording has begun, and its closing that ljspy
 * has: then it tries what is left for a few seconds, and ends. If it is killed, or
 * cannot begin, another one takes its place.
 */
#ifndef LJSPY_PUSHER_H
#define LJSPY_PUSHER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct pusher_options {
	const char *url;
	const char *credentials; /* file; NULL if there are none */
	const char *ca;          /* file; NULL for the system's certificates */
	const char *path;        /* of the archive */
	uint32_t newest;         /* the number of its newest recording; 0 if it has none */
};

struct pusher {
	pid_t pid; /* of the process that keeps it going; 0: there is none */
	int pipe;
};

/* Can this be pushed to? False after telling the user. */
bool pusher_check(const struct pusher_options *options);

/* Start it; from a process that has no threads of its own yet. 0 or a negative errno. */
int pusher_start(const struct pusher_options *options, struct pusher *ret_pusher);

/* A recording has begun, and those before it have ended. Never waits. */
void pusher_note(const struct pusher *pusher);

/* All recordings have ended. Waits, for seconds at most. False if some profiles are lost or were refused. */
bool pusher_end(struct pusher *pusher);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * session: what a recording is a recording of.
 */
#ifndef LJSPY_SESSION_H
#define LJSPY_SESSION_H

#include <stdint.h>
#include <sys/types.h>

#include "output/sample/weight.h"

/* Strings are borrowed, may hold any byte but NUL, and may be NULL if unknown. */
struct session {
	pid_t pid;			/* of the target; 0 if there are several */
	const char *target;		/* its command line, or what was asked for */
	const char *command_line;	/* ljspy's own */
	const char *layout;		/* of LuaJIT's memory, by name */
	uint64_t start_unix_ns;		/* since 1970, UTC */
	uint64_t start_ns;		/* the same moment as samples have it: CLOCK_MONOTONIC */
	uint64_t duration_ns;
	enum weight_kind clock;	/* what the weights of the samples mean */
};

#endif

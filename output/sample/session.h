/* SPDX-License-Identifier: MIT */
/*
 * session: what was recorded, how and when.
 */
#ifndef LJSPY_SESSION_H
#define LJSPY_SESSION_H

#include <stdint.h>
#include <sys/types.h>

#include "output/sample/weight.h"

/* Strings are borrowed and may hold any byte but NUL; NULL if unknown. */
struct session {
	pid_t pid;                /* of the target; 0 if there are several */
	const char *target;       /* its command line, or what the user asked for */
	const char *command_line; /* of ljspy */
	const char *layout;       /* name of the layout of LuaJIT's memory */
	uint64_t start_unix_ns;   /* since 1970, UTC */
	uint64_t start_ns;        /* the same moment in CLOCK_MONOTONIC, the clock of samples */
	uint64_t duration_ns;
	enum weight_kind clock; /* the meaning of the samples' weights */
};

#endif

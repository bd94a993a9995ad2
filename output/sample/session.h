/* SPDX-License-Identifier: MIT */
/*
 * session: what was recorded, how and when.
 */
#ifndef LJSPY_SESSION_H
#define LJSPY_SESSION_H

#include <stdint.h>
#include <sys/types.h>

#include "output/sample/weight.h"

/*
 * Where a target's files are, to find its sources again: of the target, or of the first
 * one of several. Strings as in struct session.
 */
struct session_home {
	pid_t pid;            /* 0: unknown */
	uint64_t start_ticks; /* of that process; while a machine runs, pid and start together never recur */
	uint64_t began_unix_ns; /* when the process began; 0: unknown */
	const char *boot;       /* the kernel's id of the time since that machine started */
	const char *root;       /* its root directory; NULL if ljspy had no path to it */
	const char *directory;  /* its current directory, below its root */
};

/* Strings are borrowed and may hold any byte but NUL; NULL if unknown. */
struct session {
	pid_t pid;                /* of the target; 0 if there are several */
	const char *target;       /* its command line, or what the user asked for */
	const char *command_line; /* of ljspy */
	const char *cause;        /* why it was recorded: the condition that held; NULL: the user wanted it */
	const char *layout;       /* name of the layout of LuaJIT's memory */
	const char *roots; /* package roots: directories of its package.path, each with a ";" behind it */
	uint64_t start_unix_ns; /* since 1970, UTC */
	uint64_t start_ns;      /* the same moment in CLOCK_MONOTONIC, the clock of samples */
	uint64_t duration_ns;
	enum weight_kind clock; /* the meaning of the samples' weights */
	struct session_home home;
};

#endif

/* SPDX-License-Identifier: MIT */
/*
 * command: ljspy's commands and exit statuses.
 */
#ifndef LJSPY_COMMAND_H
#define LJSPY_COMMAND_H

#define LJSPY_VERSION "0.1.0"

enum command {
	COMMAND_RECORD,
	COMMAND_DUMP,
	COMMAND_TOP,
	COMMAND_TRACES,
	COMMAND_HEAP,
	COMMAND_MEMORY,
	COMMAND_REQUESTS,
	COMMAND_CHECK,
	COMMAND_TIMERS,
	COMMAND_SHDICT,
	COMMAND_INFO,
	COMMAND_REPORT,
	COMMAND_DIFF,
	COMMAND_SERVE,
	COMMAND_COUNT
};

/* Exit status of ljspy. */
enum exit_status {
	EXIT_ALL_GOOD = 0,
	EXIT_WITH_ERRORS = 1,  /* ljspy ran, but with errors worth knowing */
	EXIT_NOTHING_DONE = 2, /* ljspy could profile nothing */
	EXIT_USAGE = 64,
};

#endif

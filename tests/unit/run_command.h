/* SPDX-License-Identifier: MIT */
/*
 * run_command: run a command of ljspy; what it has shown and told is in shown[] and told[] then.
 */
#ifndef LJSPY_RUN_COMMAND_H
#define LJSPY_RUN_COMMAND_H

#include "src/commands/commands.h"
#include "tests/unit/shown.h"
#include "tests/unit/told.h"

#define ASSERT_SHOWN(words) assert_non_null(strstr(shown, words))
#define ASSERT_TOLD(words) assert_non_null(strstr(told, words))

static enum exit_status run_command(enum exit_status (*command)(const struct invocation *invocation),
				    struct options *options)
{
	const struct invocation invocation = { .options = options };
	enum exit_status status;

	shown_begin();
	told_begin();
	status = command(&invocation);
	told_end();
	shown_end();
	return status;
}

#endif

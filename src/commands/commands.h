/* SPDX-License-Identifier: MIT */
/*
 * commands: what ljspy can be told to do, one function each.
 */
#ifndef LJSPY_COMMANDS_H
#define LJSPY_COMMANDS_H

#include <signal.h>

#include "src/options/options.h"

/* What a command needs of the process that it runs in. */
struct invocation {
	struct options *options;
	char *command_line;		/* ljspy's own, for the record */
	sigset_t inherited_mask;	/* signal mask for commands that are started */
};

enum exit_status command_record(const struct invocation *invocation);
enum exit_status command_dump(const struct invocation *invocation);
enum exit_status command_top(const struct invocation *invocation);
enum exit_status command_traces(const struct invocation *invocation);
enum exit_status command_info(const struct invocation *invocation);
enum exit_status command_report(const struct invocation *invocation);
enum exit_status command_diff(const struct invocation *invocation);

#endif

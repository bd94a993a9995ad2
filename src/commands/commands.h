/* SPDX-License-Identifier: MIT */
/*
 * commands: one function for each of ljspy's commands. Each returns ljspy's exit status.
 */
#ifndef LJSPY_COMMANDS_H
#define LJSPY_COMMANDS_H

#include <signal.h>

#include "src/options/options.h"

/* What a command needs to know about ljspy's own process. */
struct invocation {
	struct options *options;
	char *command_line;      /* ljspy's own, for the recording; NULL when memory is short */
	sigset_t inherited_mask; /* the signal mask ljspy started with, for a command it starts */
};

enum exit_status command_record(const struct invocation *invocation);
enum exit_status command_dump(const struct invocation *invocation);
enum exit_status command_top(const struct invocation *invocation);
enum exit_status command_traces(const struct invocation *invocation);
enum exit_status command_info(const struct invocation *invocation);
enum exit_status command_report(const struct invocation *invocation);
enum exit_status command_diff(const struct invocation *invocation);

#endif

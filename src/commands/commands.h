/* SPDX-License-Identifier: MIT */
/*
 * commands: one function for each of ljspy's commands. Each returns ljspy's exit status.
 */
#ifndef LJSPY_COMMANDS_H
#define LJSPY_COMMANDS_H

#include "src/options/invocation.h"

enum exit_status command_record(const struct invocation *invocation);
enum exit_status command_dump(const struct invocation *invocation);
enum exit_status command_top(const struct invocation *invocation);
enum exit_status command_traces(const struct invocation *invocation);
enum exit_status command_heap(const struct invocation *invocation);
enum exit_status command_memory(const struct invocation *invocation);
enum exit_status command_requests(const struct invocation *invocation);
enum exit_status command_check(const struct invocation *invocation);
enum exit_status command_timers(const struct invocation *invocation);
enum exit_status command_shdict(const struct invocation *invocation);
enum exit_status command_info(const struct invocation *invocation);
enum exit_status command_report(const struct invocation *invocation);
enum exit_status command_serve(const struct invocation *invocation);
enum exit_status command_diff(const struct invocation *invocation);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * ran_apart: what a command does apart from its front, it does in the test's own process. ran_apart tells
 * that it has; the test resets it.
 */
#ifndef LJSPY_RAN_APART_H
#define LJSPY_RAN_APART_H

#include "src/targets/command_apart.h"
#include "tests/unit/instead_of.h"

static bool ran_apart;

INSTEAD_OF(command_run_apart);
enum exit_status __wrap_command_run_apart(command_in_engine *command, const struct invocation *invocation,
					  bool can_be_concluded)
{
	assert_false(can_be_concluded);
	ran_apart = true;
	return command(NULL, invocation);
}

#endif

/*
 * command_apart: a whole command in a process of its own (src/apart/apart.h).
 *
 * For commands that hold their targets and end by themselves. What they write comes
 * through memory and is written when they have ended: by the front, which may wait
 * for whoever reads it.
 */
#ifndef LJSPY_COMMAND_APART_H
#define LJSPY_COMMAND_APART_H

#include "src/apart/apart.h"
#include "src/commands/commands.h"

typedef enum exit_status command_in_engine(struct apart *apart, const struct invocation *invocation);

/* can_be_concluded: see apart_options; else SIGINT, SIGTERM and SIGHUP end ljspy at once. */
enum exit_status command_run_apart(command_in_engine *command, const struct invocation *invocation,
				   bool can_be_concluded);

#endif

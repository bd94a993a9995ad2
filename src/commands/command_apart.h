/* SPDX-License-Identifier: MIT */
/*
 * command_apart: run a whole command in the engine (src/apart/apart.h).
 *
 * For commands that hold their targets and end by themselves. They write to files in
 * memory. The front copies these to standard output and error when the command has
 * ended; it may wait for their readers.
 */
#ifndef LJSPY_COMMAND_APART_H
#define LJSPY_COMMAND_APART_H

#include "src/apart/apart.h"
#include "src/commands/commands.h"

typedef enum exit_status command_in_engine(struct apart *apart, const struct invocation *invocation);

/*
 * Returns the command's exit status. can_be_concluded: see apart_options; without it,
 * SIGINT, SIGTERM and SIGHUP end ljspy at once.
 */
enum exit_status command_run_apart(command_in_engine *command, const struct invocation *invocation,
				   bool can_be_concluded);

/*
 * Reading a target, by a thread whose end frees it, is given up while the front does not
 * beat (apart.h), and begun anew afterwards:
 *
 *	do
 *		(start the thread, which asks command_try_may_go_on(), and join it)
 *	while (command_try_again(&try));
 */
struct command_try {
	struct apart *apart;
	bool given_up;
};

/* Of a struct command_try: false if its thread is to end at once. */
bool command_try_may_go_on(void *try);

/* Was it given up, and may it be begun anew now? Waits until it may; still given_up if that is never. */
bool command_try_again(struct command_try *try);

#endif

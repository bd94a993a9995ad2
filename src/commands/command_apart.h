/* SPDX-License-Identifier: MIT */
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

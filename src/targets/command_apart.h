/* SPDX-License-Identifier: MIT */
/*
 * command_apart: run a whole command in the engine (src/apart/apart.h).
 *
 * For commands that hold their targets and end by themselves. They write to files in
 * memory. The front copies these to standard output and error when the command has
 * ended; it may wait for their readers. A command that can be concluded takes long: its messages are copied
 * whenever the front wakes, at the latest after an apart_publish() of its exit status. Where a process has to
 * be left out, the command runs again from its beginning, and the user who has its messages is told that.
 */
#ifndef LJSPY_COMMAND_APART_H
#define LJSPY_COMMAND_APART_H

#include "src/apart/apart.h"
#include "src/options/invocation.h"

typedef enum exit_status command_in_engine(struct apart *apart, const struct invocation *invocation);

/*
 * Returns the command's exit status. can_be_concluded: see apart_options; without it,
 * SIGINT, SIGTERM and SIGHUP end ljspy at once.
 */
enum exit_status command_run_apart(command_in_engine *command, const struct invocation *invocation,
				   bool can_be_concluded);

/* An attempt to read targets: given up while the front does not beat (apart.h), and begun anew afterwards. */
struct command_try {
	struct apart *apart;
	bool given_up;
};

/*
 * Call read() in a thread of its own, whose end frees the targets, and once more after each attempt that
 * was given up. read() returns NULL; it asks command_try_may_go_on(). Still given_up if reading must not
 * begin anew. 0 or a negative errno.
 */
int command_try_run(struct command_try *try, void *(*read)(void *context), void *context);

/* Of a struct command_try: false if its thread is to end at once. */
bool command_try_may_go_on(void *try);

#endif

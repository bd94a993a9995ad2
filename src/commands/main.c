/* SPDX-License-Identifier: MIT */
/* From the command line to the command and its exit status. */
#include <malloc.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/commands/commands.h"
#include "src/program/command_line.h"
#include "src/program/message.h"
#include "src/program/stack_room.h"
#include "src/program/standard_files.h"
#include "src/program/wake_signal.h"
#include "src/targets/choose.h"

/* nohup starts ljspy with SIGHUP ignored. */
static bool is_ignored(int signal_number)
{
	struct sigaction action;

	return sigaction(signal_number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

/*
 * Block all signals that ljspy waits for before it creates a thread. Ignore SIGPIPE and
 * SIGXFSZ: a write to a closed pipe or to a file that is too large fails instead.
 */
static void set_signals(enum command command, sigset_t *ret_inherited)
{
	sigset_t blocked;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGINT);
	sigaddset(&blocked, SIGTERM);
	if (!is_ignored(SIGHUP))
		sigaddset(&blocked, SIGHUP);
	if (command == COMMAND_RECORD)
		sigaddset(&blocked, SIGQUIT);
	sigaddset(&blocked, SIGCHLD);
	sigaddset(&blocked, SIGRTMIN);
	sigaddset(&blocked, WAKE_SIGNAL);
	sigprocmask(SIG_BLOCK, &blocked, ret_inherited);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
}

/* Nothing has begun: a signal that is to end ljspy may do so at once, also in the middle of a search. */
static enum exit_status choose(const struct invocation *invocation)
{
	enum exit_status status;
	sigset_t blocked;

	pthread_sigmask(SIG_SETMASK, &invocation->inherited_mask, &blocked);
	status = choose_processes(invocation->options);
	pthread_sigmask(SIG_SETMASK, &blocked, NULL);
	return status;
}

/* Run the command; options are valid. */
static int run_command(void *context)
{
	static enum exit_status (*const commands[COMMAND_COUNT])(const struct invocation *) = {
		[COMMAND_RECORD] = command_record,     [COMMAND_DUMP] = command_dump,
		[COMMAND_TOP] = command_top,           [COMMAND_TRACES] = command_traces,
		[COMMAND_HEAP] = command_heap,         [COMMAND_MEMORY] = command_memory,
		[COMMAND_REQUESTS] = command_requests, [COMMAND_TIMERS] = command_timers,
		[COMMAND_SHDICT] = command_shdict,     [COMMAND_INFO] = command_info,
		[COMMAND_REPORT] = command_report,     [COMMAND_DIFF] = command_diff,
		[COMMAND_SERVE] = command_serve,       [COMMAND_CHECK] = command_check,
	};
	const struct invocation *invocation = context;
	enum exit_status chosen = choose(invocation), status = chosen;

	if (chosen == EXIT_ALL_GOOD || chosen == EXIT_WITH_ERRORS)
		status = commands[invocation->options->command](invocation);
	return (int)(status == EXIT_ALL_GOOD ? chosen : status);
}

int main(int argc, char **argv)
{
	struct options options;
	struct invocation invocation = { .options = &options };
	enum exit_status status;
	int result;

	standard_files_reserve();
	/*
	 * One heap for all threads: each thread's own would grow a page at a time, with a system call each.
	 * glibc alone has several.
	 */
#ifdef M_ARENA_MAX
	mallopt(M_ARENA_MAX, 1);
#endif
	if (!options_parse(argc, argv, &options, &status)) {
		options_clear(&options);
		return (int)(standard_output_flush() ? status : EXIT_NOTHING_DONE); /* help */
	}
	set_signals(options.command, &invocation.inherited_mask);
	invocation.command_line = command_line_join(argv);
	result = stack_room_run(run_command, &invocation);
	if (result < 0)
		message_error_errno(-result, "starting");
	free(invocation.command_line);
	options_clear(&options);
	return result < 0 ? EXIT_NOTHING_DONE : result;
}

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/choose.h"
#include "src/commands.h"
#include "src/message.h"

static char *join_arguments(int argc, char **argv)
{
	char *line = NULL;
	size_t length;
	FILE *stream = open_memstream(&line, &length);

	if (!stream)
		return NULL;
	for (int i = 0; i < argc; i++)
		fprintf(stream, "%s%s", i ? " " : "", argv[i]);
	if (fclose(stream)) {
		free(line);
		return NULL;
	}
	return line;
}

/*
 * All signals that ljspy waits for are blocked before any thread is created;
 * a closed pipe is an error of the write that meets it.
 */
static void set_signals(sigset_t *ret_inherited)
{
	sigset_t blocked;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGINT);
	sigaddset(&blocked, SIGTERM);
	sigaddset(&blocked, SIGHUP);
	sigaddset(&blocked, SIGCHLD);
	sigaddset(&blocked, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &blocked, ret_inherited);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
}

int main(int argc, char **argv)
{
	static enum exit_status (*const commands[COMMAND_COUNT])(const struct invocation *) = {
		[COMMAND_RECORD] = command_record,
		[COMMAND_DUMP] = command_dump,
		[COMMAND_TOP] = command_top,
		[COMMAND_TRACES] = command_traces,
		[COMMAND_INFO] = command_info,
		[COMMAND_REPORT] = command_report,
		[COMMAND_DIFF] = command_diff,
	};
	struct options options;
	struct invocation invocation = { .options = &options };
	enum exit_status status;

	/* The heaps of threads grow by a page at a time, with a system call for each. */
	mallopt(M_ARENA_MAX, 1);
	if (!options_parse(argc, argv, &options, &status)) {
		options_clear(&options);
		return (int)status;
	}
	set_signals(&invocation.inherited_mask);
	invocation.command_line = join_arguments(argc, argv);
	status = choose_processes(&options);
	if (status == EXIT_ALL_GOOD)
		status = commands[options.command](&invocation);
	free(invocation.command_line);
	options_clear(&options);
	return (int)status;
}

/* SPDX-License-Identifier: MIT */
#include "src/serve/heap_request.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "memory/child_wait.h"
#include "src/linux/clocks/clock.h"
#include "src/program/message.h"
#include "src/program/output_file.h"

enum { PID_TEXT = 12, ARGUMENTS_MAX = 12, LOOK_NS = 50 * 1000 * 1000, SECONDS_MAX = 120 };

/* "12,13": those still there; the caller frees it. NULL when memory is short. */
static char *join_pids(const struct wanted *wanted)
{
	pid_t *pids = calloc(wanted_count(wanted) + 1, sizeof(*pids));
	size_t count = pids ? wanted_left(wanted, pids) : 0;
	char *text = pids ? calloc(1, count * PID_TEXT + 1) : NULL, *at = text;

	for (size_t i = 0; text && i < count; i++)
		at += snprintf(at, PID_TEXT, "%s%d", i ? "," : "", (int)pids[i]);
	free(pids);
	return text;
}

/* Fill in the command line, ended by NULL. Without a process it says none: `ljspy heap` would choose one. */
static bool fill_command(const struct options *options, const char *pids, const char *format,
			 const char *ret_argv[static ARGUMENTS_MAX])
{
	const char *by = options->name ? "--name" : options->subprocesses ? "--tree" : "--pid";
	const char *which = options->name ? options->name : pids;
	size_t count = 0;

	if (!*which)
		return false;
	ret_argv[count++] = "ljspy";
	ret_argv[count++] = "heap";
	ret_argv[count++] = by;
	ret_argv[count++] = which;
	if (options->allow_attach)
		ret_argv[count++] = "--allow-attach";
	if (options->layout) {
		ret_argv[count++] = "--layout";
		ret_argv[count++] = options->layout_text;
	}
	ret_argv[count++] = "-f";
	ret_argv[count++] = format;
	ret_argv[count++] = "-o";
	ret_argv[count++] = "-";
	ret_argv[count] = NULL;
	return true;
}

static int spawn(const struct options *options, const char *pids, const char *format, FILE *out, FILE *said,
		 pid_t *ret_pid)
{
	const char *argv[ARGUMENTS_MAX];
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int error;

	if (!fill_command(options, pids, format, argv))
		return -ESRCH;
	sigemptyset(&none);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, fileno(out), STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, fileno(said), STDERR_FILENO);
	/* posix_spawn() does not write to its arguments; C has no better type for them. */
	error = posix_spawn(ret_pid, "/proc/self/exe", &actions, &attributes, (char *const *)(uintptr_t)argv,
			    environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return -error;
}

/* End it as a user would, so that it lets go of the targets. */
static void end(pid_t pid)
{
	kill(pid, SIGTERM);
	child_wait(pid, NULL, 0);
}

static enum hub_answer await(pid_t pid, struct hub *hub, const struct hub_request *request)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	uint64_t end_ns = clock_now_ns(CLOCK_MONOTONIC) + SECONDS_MAX * (uint64_t)NS_PER_SECOND;
	pid_t ended;
	int status;

	while ((ended = child_wait(pid, &status, WNOHANG)) == 0) {
		const bool is_late = clock_now_ns(CLOCK_MONOTONIC) > end_ns, is_stopped = hub_is_stopped(hub);

		if (is_late || is_stopped || !request->is_there(request->client)) {
			end(pid);
			if (is_late)
				message_error("/heap took longer than %d seconds.", SECONDS_MAX);
			return is_late ? HUB_FAILED : is_stopped ? HUB_STOPPED : HUB_GONE;
		}
		nanosleep(&pause, NULL);
	}
	/* With several processes, one may have gone: what it wrote of the others counts. */
	return ended == pid && WIFEXITED(status) && WEXITSTATUS(status) <= EXIT_WITH_ERRORS ? HUB_DONE
											    : HUB_FAILED;
}

/* What it has said: it must not wait for who reads that. */
static void pass_on(FILE *said)
{
	char *line = NULL;
	size_t size = 0;

	rewind(said);
	while (getline(&line, &size, said) > 0)
		message_lines(line);
	free(line);
}

enum hub_answer heap_request_run(struct hub *hub, const struct options *options, const struct wanted *wanted,
				 const struct hub_request *request, const char *format, FILE *out)
{
	char *pids = join_pids(wanted);
	enum hub_answer answer = HUB_FAILED;
	FILE *said = NULL;
	pid_t pid;
	int error = pids ? output_file_scratch(&said) : -ENOMEM;

	if (!error)
		error = spawn(options, pids, format, out, said, &pid);
	free(pids);
	if (error) {
		message_error_errno(-error, "starting the reader of a heap");
	} else {
		answer = await(pid, hub, request);
		pass_on(said);
	}
	if (said)
		fclose(said);
	return answer;
}

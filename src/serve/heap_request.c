/* SPDX-License-Identifier: MIT */
#include "src/serve/heap_request.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "memory/child_wait.h"
#include "src/linux/clocks/clock.h"

enum { PID_TEXT = 12, LOOK_NS = 50 * 1000 * 1000, SECONDS_MAX = 120 };

/* "12,13"; the caller frees it. */
static char *join_pids(const struct options *options)
{
	char *text = malloc(options->pid_count * PID_TEXT + 1), *at = text;

	for (size_t i = 0; text && i < options->pid_count; i++)
		at += snprintf(at, PID_TEXT, "%s%d", i ? "," : "", (int)options->pids[i]);
	return text;
}

static int spawn(const struct options *options, const char *pids, const char *format, int fd, pid_t *ret_pid)
{
	const char *by = options->name ? "--name" : options->subprocesses ? "--tree" : "--pid";
	const char *const argv[] = { "ljspy", "heap", by,  options->name ? options->name : pids, "-f", format,
				     "-o",    "-",    NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int error;

	sigemptyset(&none);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, fd, STDOUT_FILENO);
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

static enum hub_answer await(pid_t pid, const struct hub_request *request)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	uint64_t end_ns = clock_now_ns(CLOCK_MONOTONIC) + SECONDS_MAX * (uint64_t)NS_PER_SECOND;
	pid_t ended;
	int status;

	while ((ended = child_wait(pid, &status, WNOHANG)) == 0) {
		bool is_there = request->is_there(request->client);

		if (!is_there || clock_now_ns(CLOCK_MONOTONIC) > end_ns) {
			end(pid);
			return is_there ? HUB_FAILED : HUB_GONE;
		}
		nanosleep(&pause, NULL);
	}
	/* With several processes, one may have gone: what it wrote of the others counts. */
	return ended == pid && WIFEXITED(status) && WEXITSTATUS(status) <= EXIT_WITH_ERRORS ? HUB_DONE
											    : HUB_FAILED;
}

enum hub_answer heap_request_run(const struct options *options, const struct hub_request *request,
				 const char *format, FILE *out)
{
	char *pids = join_pids(options);
	pid_t pid;
	int error = pids ? spawn(options, pids, format, fileno(out), &pid) : -ENOMEM;

	free(pids);
	return error ? HUB_FAILED : await(pid, request);
}

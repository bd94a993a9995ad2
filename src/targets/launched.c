/* SPDX-License-Identifier: MIT */
#include "src/targets/launched.h"

#include <signal.h>

#include "memory/child_wait.h"
#include "src/program/interruption.h"
#include "src/program/message.h"

enum { SIGNALLED = 128 }; /* as in shells */

static bool is_running(const struct sampler_result *result)
{
	return result->launched && !result->exit_known;
}

void launched_pass_on(const struct sampler_result *result)
{
	if (is_running(result) && result->end == SAMPLER_INTERRUPTED && result->interrupted_by_process)
		kill(result->pid, result->interrupted_by);
}

/* True when there is nothing more to wait for. */
static bool has_ended(struct sampler_result *result)
{
	pid_t pid = child_wait(result->pid, &result->exit_status, WNOHANG);

	result->exit_known = pid == result->pid;
	return pid != 0;
}

void launched_look(struct sampler_result *result)
{
	if (is_running(result))
		has_ended(result);
}

void launched_await(struct sampler_result *result, const char *command)
{
	sigset_t signals;
	siginfo_t info;

	if (!is_running(result) || has_ended(result))
		return;
	message_note("%s (%d) goes on until it ends or is interrupted.", command, result->pid);
	interruption_signals(&signals);
	sigaddset(&signals, SIGCHLD);
	while (!has_ended(result)) {
		int number = sigwaitinfo(&signals, &info);

		if (number > 0 && number != SIGCHLD && interruption_is_from_process(&info))
			kill(result->pid, number);
	}
}

json_t *launched_json(const struct sampler_result *result)
{
	int status = result->exit_status;

	if (!result->exit_known)
		return json_pack("{s:n, s:n}", "exit_status", "signal");
	if (WIFSIGNALED(status))
		return json_pack("{s:n, s:i}", "exit_status", "signal", WTERMSIG(status));
	return json_pack("{s:i, s:n}", "exit_status", WEXITSTATUS(status), "signal");
}

int launched_exit_status(const struct sampler_result *result, enum exit_status own)
{
	int status = result->exit_status;

	if (!result->launched || !result->exit_known)
		return own;
	if (WIFSIGNALED(status))
		return SIGNALLED + WTERMSIG(status);
	return WEXITSTATUS(status) ? WEXITSTATUS(status) : own;
}

/* SPDX-License-Identifier: MIT */
/*
 * signals: a library that counts the signals of a Lua program, which calls
 * signals_begin(), signals_work() until that returns false, and signals_print().
 */
#include <stdbool.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../targets/queued_signals.h"

static volatile sig_atomic_t alarms, children;
static int started;

static void on_alarm(int signal)
{
	(void)signal;
	alarms++;
}

static void on_child(int signal)
{
	(void)signal;
	children++;
}

void signals_begin(void)
{
	const struct itimerval millisecond = { { 0, 1000 }, { 0, 1000 } };
	struct sigaction queued = { .sa_sigaction = on_queued, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct sigaction alarm = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct sigaction child = { .sa_handler = on_child, .sa_flags = SA_RESTART };

	sigaction(SIGRTMIN, &queued, NULL);
	sigaction(SIGALRM, &alarm, NULL);
	sigaction(SIGCHLD, &child, NULL);
	setitimer(ITIMER_REAL, &millisecond, NULL);
}

/* Start a child and wait for its end and its signal. */
bool signals_work(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	started++;
	while (waitpid(pid, NULL, 0) != pid || children < started)
		;
	return !finished;
}

void signals_print(void)
{
	printf("%d %d %d %d %d\n", (int)received, (int)disordered, (int)alarms, started, (int)children);
	fflush(stdout);
}

/* SPDX-License-Identifier: MIT */
#include "src/apart/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "memory/child_wait.h"
#include "memory/close_files.h"
#include "src/linux/clocks/clock.h"
#include "src/linux/proc/engine_name.h"
#include "src/linux/proc/process.h"

enum {
	GOES_ON_MS = 10, /* the engine may take this long to continue */
	TRIES = 3,
	LEFT_MS = 10, /* what the engine has left may take this long to end, as often as that */
	LEFT_TRIES = 20,
};

void guard_die_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* it died before prctl() */
		_exit(1);
}

/* Close the front's files: a pipe must end when the front closes it. */
static void close_inherited(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int standard = 0; null >= 0 && standard <= 2; standard++)
		dup2(null, standard);
	close_files(3, UINT_MAX);
}

/* Continue the engine; kill it if it stays stopped. */
static void rouse(pid_t engine)
{
	const struct timespec moment = { .tv_nsec = GOES_ON_MS * 1000 * 1000 };

	for (int i = 0; i < TRIES; i++) {
		kill(engine, SIGCONT);
		if (!process_is_stopped(engine))
			return;
		nanosleep(&moment, NULL);
	}
	kill(engine, SIGKILL);
}

/*
 * Processes that the engine has started and not waited for, such as the one that reads symbols, end with it.
 * In a container they would fall to the first process, a target maybe, which gets a signal for each; and
 * which does not wait for them if it is ljspy.
 */
static void wait_for_left(void)
{
	const struct timespec moment = { .tv_nsec = LEFT_MS * 1000 * 1000 };
	pid_t reported = 1;

	for (int i = 0; i < LEFT_TRIES && reported >= 0; i++) {
		while ((reported = child_wait(-1, NULL, WNOHANG)) > 0)
			;
		if (reported == 0)
			nanosleep(&moment, NULL);
	}
}

_Noreturn static void wait_for(struct shared *shared, pid_t engine)
{
	pid_t reported;
	int status;

	while ((reported = child_wait(-1, &status, WUNTRACED)) > 0 &&
	       (reported != engine || WIFSTOPPED(status)))
		if (reported == engine)
			rouse(engine);
	if (reported != engine) /* it ends with the guard */
		shared->wait_error = errno;
	else
		wait_for_left();
	shared->guard_cpu_ns = clock_now_ns(CLOCK_PROCESS_CPUTIME_ID);
	_exit(0);
}

void guard_become(struct shared *shared, pid_t front, bool adopts)
{
	pid_t guard = getpid(), engine;

	guard_die_with(front);
	setpgid(0, 0); /* keeps the terminal's signals out */
	if (adopts)
		prctl(PR_SET_CHILD_SUBREAPER, 1);
	engine = fork();
	if (engine == 0) {
		guard_die_with(guard);
		return;
	}
	if (engine < 0) {
		shared->start_error = errno;
		_exit(1);
	}
	prctl(PR_SET_NAME, GUARD_NAME);
	close_inherited();
	wait_for(shared, engine);
}

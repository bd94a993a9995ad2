/* SPDX-License-Identifier: MIT */
/* The start of a command, step by step. The child and its tracer are made up. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/threads/launch.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/open_files.h"

INSTEAD_OF(pipe2);
INSTEAD_OF(fork);
INSTEAD_OF(kill);
INSTEAD_OF(waitpid);
INSTEAD_OF(poll);
INSTEAD_OF(sigtimedwait);
INSTEAD_OF(tracer_find);
INSTEAD_OF(tracer_poll);

enum { PID = 2147483000, NEVER = 100 };

/* The child's ends of the pipes, and what becomes of it. */
static struct {
	int go, error;
	unsigned int pipes, failing_pipe;
	int fork_error;
	unsigned int kills, waits, stops_left; /* stops that are waited for before its end */
	unsigned int polls, polls_at_first;    /* of the tracer; before the child has said anything */
	unsigned int sleeps, sleeps_before_end;
	bool ends; /* in the end it is gone, else it has execed */
} child;
static struct tracee tracee;
static struct tracer *const tracer = (struct tracer *)&child;
static char name[] = "command";
static char *const command[] = { name, NULL };

int __wrap_pipe2(int fds[2], int flags)
{
	assert_int_equal(flags, O_CLOEXEC);
	if (++child.pipes == child.failing_pipe) {
		errno = EMFILE;
		return -1;
	}
	assert_int_equal(__real_pipe2(fds, flags), 0);
	if (child.pipes == 1)
		child.go = dup(fds[0]);
	else
		child.error = dup(fds[1]);
	return 0;
}

pid_t __wrap_fork(void)
{
	errno = child.fork_error;
	return child.fork_error ? -1 : PID;
}

int __wrap_kill(pid_t pid, int number)
{
	assert_int_equal(pid, PID);
	assert_int_equal(number, SIGKILL);
	child.kills++;
	return 0;
}

pid_t __wrap_waitpid(pid_t pid, int *ret_status, int options)
{
	assert_int_equal(pid, PID);
	assert_int_equal(options, __WALL);
	assert_int_equal(child.kills, 1);
	child.waits++;
	*ret_status = child.stops_left ? SIGTRAP << 8 | 0x7f : SIGKILL;
	child.stops_left -= child.stops_left > 0;
	return pid;
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout)
{
	assert_int_equal(count, 1);
	assert_in_range(timeout, 1, 1000);
	if (child.polls < child.polls_at_first)
		return child.polls % 2 ? -1 : 0;
	return __real_poll(fds, count, timeout);
}

int __wrap_sigtimedwait(const sigset_t *signals, siginfo_t *ret_info, const struct timespec *timeout)
{
	assert_int_equal(sigismember(signals, SIGCHLD), 1);
	assert_null(ret_info);
	assert_int_equal(timeout->tv_sec, 0);
	assert_in_range(timeout->tv_nsec, 1, 1000000000);
	child.sleeps++;
	return -1;
}

struct tracee *__wrap_tracer_find(const struct tracer *of, pid_t tid)
{
	assert_ptr_equal(of, tracer);
	assert_int_equal(tid, PID);
	return &tracee;
}

bool __wrap_tracer_poll(struct tracer *of)
{
	assert_ptr_equal(of, tracer);
	child.polls++;
	if (child.sleeps < child.sleeps_before_end)
		return false;
	if (child.ends)
		tracee.state = TRACEE_GONE;
	else
		tracee.execed = true;
	return true;
}

static unsigned int files_before;

static int begin(void **state)
{
	(void)state;
	child = (__typeof__(child)){ .go = -1, .error = -1, .sleeps_before_end = 3 };
	tracee = (struct tracee){ .tid = PID };
	files_before = open_files_count();
	return signal(SIGPIPE, SIG_IGN) == SIG_ERR;
}

/* The ends of the child are its own. */
static void close_child(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static int end(void **state)
{
	(void)state;
	close_child(&child.go);
	close_child(&child.error);
	assert_int_equal(open_files_count(), files_before);
	return 0;
}

static struct launch start(void)
{
	struct launch launch;
	sigset_t none;

	sigemptyset(&none);
	assert_int_equal(launch_start(command, &none, 0, &launch), 0);
	assert_int_equal(launch.pid, PID);
	return launch;
}

static bool is_told_to_go(void)
{
	char letter;

	return fcntl(child.go, F_SETFL, O_NONBLOCK) == 0 && read(child.go, &letter, 1) == 1;
}

static void the_child_waits_until_it_may_go(void **state)
{
	struct launch launch = start();

	(void)state;
	assert_false(is_told_to_go());
	/* It runs the command, which closes its end; the kernel reports that a bit later. */
	close_child(&child.error);
	assert_int_equal(launch_go(&launch, tracer), 0);
	assert_true(is_told_to_go());
	assert_int_equal(child.sleeps, 3);
	assert_int_equal(child.kills, 0);
}

static void its_signals_are_passed_on_until_it_has_spoken(void **state)
{
	struct launch launch = start();

	(void)state;
	close_child(&child.error);
	child.polls_at_first = 4;
	child.sleeps_before_end = 0;
	assert_int_equal(launch_go(&launch, tracer), 0);
	assert_in_range(child.polls, 5, 6);
	assert_int_equal(child.sleeps, 0);
}

static void why_the_command_cannot_run_is_told(void **state)
{
	const int cause = ENOENT;
	struct launch launch = start();

	(void)state;
	assert_int_equal(write(child.error, &cause, sizeof(cause)), sizeof(cause));
	child.ends = true;
	assert_int_equal(launch_go(&launch, tracer), -ENOENT);
	/* It has ended, and that was noted. */
	assert_int_equal(tracee.state, TRACEE_GONE);
}

static void a_child_that_is_killed_on_its_way_has_not_run_it(void **state)
{
	struct launch launch = start();

	(void)state;
	close_child(&child.error);
	child.ends = true;
	assert_int_equal(launch_go(&launch, tracer), -ESRCH);
	assert_int_equal(child.kills, 0);
}

static void a_child_that_is_killed_before_is_reaped(void **state)
{
	struct launch launch = start();

	(void)state;
	close_child(&child.go);
	child.stops_left = 2;
	assert_int_equal(launch_go(&launch, tracer), -ESRCH);
	assert_int_equal(child.kills, 1);
	assert_int_equal(child.waits, 3);
	assert_int_equal(child.polls, 0);
}

static void a_child_that_is_not_needed_is_ended_and_reaped(void **state)
{
	struct launch launch = start();

	(void)state;
	launch_cancel(&launch);
	assert_int_equal(child.kills, 1);
	assert_int_equal(child.waits, 1);
	assert_false(is_told_to_go());
}

static void what_cannot_start_leaves_nothing_open(void **state)
{
	struct launch launch = { .pid = 7 };
	sigset_t none;

	(void)state;
	sigemptyset(&none);
	for (int i = 0; i < 3; i++) {
		child.pipes = 0;
		child.failing_pipe = i < 2 ? (unsigned int)i + 1 : NEVER;
		child.fork_error = EAGAIN;
		assert_int_equal(launch_start(command, &none, 0, &launch), i < 2 ? -EMFILE : -EAGAIN);
		assert_int_equal(launch.pid, 7);
		close_child(&child.go);
		close_child(&child.error);
		assert_int_equal(open_files_count(), files_before);
	}
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_child_waits_until_it_may_go),
		TEST(its_signals_are_passed_on_until_it_has_spoken),
		TEST(why_the_command_cannot_run_is_told),
		TEST(a_child_that_is_killed_on_its_way_has_not_run_it),
		TEST(a_child_that_is_killed_before_is_reaped),
		TEST(a_child_that_is_not_needed_is_ended_and_reaped),
		TEST(what_cannot_start_leaves_nothing_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

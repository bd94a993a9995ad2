/* SPDX-License-Identifier: MIT */
#include "src/linux/threads/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	/* The shell's exit status for commands that could not be run. */
	EXIT_NOT_RUN = 127,
	/* How often ljspy passes on the child's signals while it starts. */
	POLL_MS = 5,
};

struct pipe_ends {
	int read, write;
};

static int open_pipe(struct pipe_ends *ret_ends)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	*ret_ends = (struct pipe_ends){ fds[0], fds[1] };
	return 0;
}

static void close_pipe(const struct pipe_ends *ends)
{
	close(ends->read);
	close(ends->write);
}

/* Runs in the child. */
_Noreturn static void run_command(char *const command[], const sigset_t *mask, pid_t group,
				  const struct pipe_ends *go, const struct pipe_ends *error)
{
	char letter;
	int cause;

	close(go->write);
	if (read(go->read, &letter, 1) != 1) /* ljspy has ended or changed its mind */
		_exit(EXIT_NOT_RUN);
	if (group)
		setpgid(0, group); /* so that it gets the terminal's signals, too */
	signal(SIGPIPE, SIG_DFL);  /* ljspy ignores these for itself */
	signal(SIGXFSZ, SIG_DFL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(command[0], command);
	cause = errno;
	if (write(error->write, &cause, sizeof(cause)) < 0)
		_exit(EXIT_NOT_RUN);
	_exit(EXIT_NOT_RUN);
}

int launch_start(char *const command[], const sigset_t *mask, pid_t group, struct launch *ret_launch)
{
	struct pipe_ends go = { -1, -1 }, failure = { -1, -1 };
	pid_t pid;
	int error = open_pipe(&go);

	if (error)
		return error;
	error = open_pipe(&failure);
	if (error) {
		close_pipe(&go);
		return error;
	}
	pid = fork();
	if (pid < 0) {
		error = -errno;
		close_pipe(&go);
		close_pipe(&failure);
		return error;
	}
	if (pid == 0)
		run_command(command, mask, group, &go, &failure);
	close(go.read);
	close(failure.write);
	*ret_launch = (struct launch){ .pid = pid, .go_fd = go.write, .error_fd = failure.read };
	return 0;
}

static void close_launch(struct launch *launch)
{
	close(launch->go_fd);
	close(launch->error_fd);
}

/*
 * Pass on the child's signals until it has reported an errno, or has closed its end by
 * running the command or by dying. The errno, negative; 0 if it has closed.
 */
static int await_outcome(const struct launch *launch, struct tracer *tracer)
{
	struct pollfd outcome = { .fd = launch->error_fd, .events = POLLIN };
	int cause = 0;

	while (poll(&outcome, 1, POLL_MS) <= 0)
		tracer_poll(tracer);
	return read(launch->error_fd, &cause, sizeof(cause)) == sizeof(cause) ? -cause : 0;
}

int launch_go(struct launch *launch, struct tracer *tracer)
{
	const struct tracee *tracee = tracer_find(tracer, launch->pid);
	struct timespec moment = { 0, POLL_MS * 1000000 };
	sigset_t child;
	int error;

	if (write(launch->go_fd, "!", 1) < 0) { /* EPIPE: it has been killed */
		launch_cancel(launch);
		return -ESRCH;
	}
	error = await_outcome(launch, tracer);
	close_launch(launch);
	/* The kernel is about to report either the execve() or the end of the child. */
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	tracer_poll(tracer);
	while (!tracee->execed && tracee->state != TRACEE_GONE) {
		sigtimedwait(&child, NULL, &moment);
		tracer_poll(tracer);
	}
	if (error)
		return error;
	return tracee->execed ? 0 : -ESRCH;
}

void launch_cancel(struct launch *launch)
{
	int status;

	close_launch(launch);
	kill(launch->pid, SIGKILL);
	while (waitpid(launch->pid, &status, __WALL) == launch->pid && WIFSTOPPED(status))
		;
}

/* SPDX-License-Identifier: MIT */
#include "src/push/pusher.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "memory/child_wait.h"
#include "memory/close_files.h"
#include "src/linux/clocks/clock.h"
#include "src/program/message.h"
#include "src/push/backoff.h"
#include "src/push/sending.h"

/* How long the rest may take once recording has ended. */
static const uint64_t grace_ns = 5 * (uint64_t)NS_PER_SECOND;

enum { NICENESS = 5, PUSHED_ALL = 0, LOST_SOME = 1, FAILED = 2 };

/*---- In the process of its own ----*/

struct pushing {
	int pipe;
	bool ended;
	uint64_t end_ns; /* when to give up, after the end */
};

/* Wait for a note, the end or that time; not again for the end. */
static void await(struct pushing *pushing, uint64_t wait_ns)
{
	struct pollfd wanted = { .fd = pushing->pipe, .events = POLLIN };
	const struct timespec limit = { .tv_sec = (time_t)(wait_ns / NS_PER_SECOND),
					.tv_nsec = (long)(wait_ns % NS_PER_SECOND) };
	char notes[64];

	if (ppoll(&wanted, 1, wait_ns == UINT64_MAX ? NULL : &limit, NULL) <= 0)
		return;
	while (read(pushing->pipe, notes, sizeof(notes)) > 0)
		;
	if ((wanted.revents & (POLLHUP | POLLERR)) == 0 || pushing->ended)
		return;
	pushing->ended = true;
	pushing->end_ns = clock_now_ns(CLOCK_MONOTONIC) + grace_ns;
}

static bool gives_up(void *context)
{
	struct pushing *pushing = context;

	if (!pushing->ended)
		await(pushing, 0);
	return pushing->ended && clock_now_ns(CLOCK_MONOTONIC) > pushing->end_ns;
}

static void push_until_end(struct pushing *pushing, struct sending *sending)
{
	uint64_t wait_ns, due_ns = 0;

	while (!pushing->ended) {
		uint64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);

		if (now_ns < due_ns) {
			await(pushing, due_ns - now_ns);
			continue;
		}
		wait_ns = sending_step(sending, false);
		due_ns = wait_ns == UINT64_MAX ? 0 : clock_now_ns(CLOCK_MONOTONIC) + wait_ns;
		await(pushing, wait_ns == UINT64_MAX ? wait_ns : 0);
	}
}

/* The rest, each profile once. */
static void push_rest(struct pushing *pushing, struct sending *sending)
{
	uint64_t wait_ns = 0;

	while (wait_ns == 0 && !gives_up(pushing))
		wait_ns = sending_step(sending, true);
}

/* PUSHED_ALL, LOST_SOME, or a negative errno if it could not begin. */
static int push(const struct pusher_options *options, int pipe)
{
	struct pushing pushing = { .pipe = pipe };
	struct sending_options sending_options = {
		.url = options->url,
		.credentials = options->credentials,
		.ca = options->ca,
		.path = options->path,
		.newest = options->newest,
		.gives_up = gives_up,
		.context = &pushing,
	};
	struct sending *sending = NULL;
	const char *wrong;
	bool good;

	if (!endpoint_read(options->url, &sending_options.endpoint, &wrong))
		return -EINVAL;
	sending_options.directory = open(options->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (sending_options.directory < 0)
		return -errno;
	sending = sending_new(&sending_options);
	if (!sending)
		return -ENOMEM;
	push_until_end(&pushing, sending);
	push_rest(&pushing, sending);
	good = sending_conclude(sending);
	sending_free(sending);
	close(sending_options.directory);
	return good ? PUSHED_ALL : LOST_SOME;
}

/*---- In the process that keeps it going ----*/

static void pause_for(struct pushing *pushing, uint64_t wait_ns)
{
	const uint64_t due_ns = clock_now_ns(CLOCK_MONOTONIC) + wait_ns;
	uint64_t now_ns;

	while (!pushing->ended && (now_ns = clock_now_ns(CLOCK_MONOTONIC)) < due_ns)
		await(pushing, due_ns - now_ns);
}

/* What became of a process that pushes. */
struct outcome {
	enum { NO_PROCESS, NOT_BEGUN, KILLED, CONCLUDED } kind;
	int code; /* why there is none or it has not begun: an errno; or what it concluded */
};

static bool is_same(const struct outcome *a, const struct outcome *b)
{
	return a->kind == b->kind && a->code == b->code;
}

static void tell_loss(const struct outcome *loss)
{
	if (loss->kind == NO_PROCESS)
		message_warn("There is no process to push with (%s); ljspy tries again.",
			     strerror(loss->code));
	else if (loss->kind == NOT_BEGUN)
		message_warn("The process that pushes could not begin (%s); another one tries again.",
			     strerror(loss->code));
	else
		message_warn("The process that pushes was killed; another one goes on.");
}

/* Its status is what it concluded, or more than FAILED by the errno with which it could not begin. */
static struct outcome push_apart(const struct pusher_options *options, int pipe)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return (struct outcome){ NO_PROCESS, errno };
	if (pid == 0) {
		int result = push(options, pipe);

		_exit(result < 0 ? FAILED - result : result);
	}
	if (child_wait(pid, &status, 0) < 0)
		return (struct outcome){ CONCLUDED, FAILED };
	if (!WIFEXITED(status))
		return (struct outcome){ KILLED, 0 };
	if (WEXITSTATUS(status) > FAILED)
		return (struct outcome){ NOT_BEGUN, WEXITSTATUS(status) - FAILED };
	return (struct outcome){ CONCLUDED, WEXITSTATUS(status) };
}

/*
 * A process that is killed, for want of memory maybe, gets a successor, and so does one that cannot begin:
 * ljspy may run for months. The user reads each loss that is another one than the last.
 */
static int keep_pushing(const struct pusher_options *options, int pipe)
{
	struct pushing pushing = { .pipe = pipe };
	struct outcome outcome, told = { CONCLUDED, FAILED };
	uint64_t begin_ns, wait_ns = 0;
	unsigned int losses = 0; /* in a row */

	for (;;) {
		begin_ns = clock_now_ns(CLOCK_MONOTONIC);
		outcome = push_apart(options, pipe);
		if (outcome.kind == CONCLUDED)
			return outcome.code;
		if (pushing.ended) /* one try */
			return FAILED;
		if (!is_same(&outcome, &told))
			tell_loss(&outcome);
		told = outcome;
		/* It ran for a while before it was killed. */
		if (outcome.kind == KILLED && clock_now_ns(CLOCK_MONOTONIC) - begin_ns > wait_ns)
			losses = 0;
		wait_ns = backoff_ns(++losses, 0, 0);
		pause_for(&pushing, wait_ns);
	}
}

/* The lock of the archive and the other ends of pipes are ljspy's alone. */
static void keep_only(int *pipe)
{
	if (*pipe != 3) {
		dup3(*pipe, 3, O_CLOEXEC);
		*pipe = 3;
	}
	close_files(4, UINT_MAX);
	fcntl(*pipe, F_SETFL, O_NONBLOCK);
}

/*---- In ljspy's first process ----*/

/* Can the file be read? */
static bool check_file(const char *path)
{
	if (!path || access(path, R_OK) == 0)
		return true;
	message_error_errno(errno, "%s", path);
	return false;
}

static bool check_credentials(const struct pusher_options *options, const struct endpoint *endpoint)
{
	struct credentials credentials;
	int line;

	if (!options->credentials || !check_file(options->credentials))
		return !options->credentials;
	line = credentials_read(options->credentials, &credentials);
	explicit_bzero(&credentials, sizeof(credentials));
	if (line > 0) {
		message_error("%s: line %d is wrong.", options->credentials, line);
		message_note("Each line is \"user NAME:PASSWORD\", \"token TOKEN\" or \"tenant ID\".");
	} else if (line < 0) {
		message_error_errno(-line, "%s", options->credentials);
	} else if (!endpoint->is_secret_safe) {
		message_warn("The credentials go to %s unencrypted.", options->url);
	}
	return line == 0;
}

bool pusher_check(const struct pusher_options *options)
{
	struct endpoint endpoint;
	const char *wrong;

#ifdef LJSPY_STATIC
	message_error_left_out("--push");
	return false;
#endif
	if (!endpoint_read(options->url, &endpoint, &wrong)) {
		message_error("--push %s: this is no URL to push to. %s", options->url, wrong);
		return false;
	}
	return check_file(options->ca) && check_credentials(options, &endpoint);
}

int pusher_start(const struct pusher_options *options, struct pusher *ret_pusher)
{
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_NAME, "ljspy-push");
		setpriority(PRIO_PROCESS, 0, NICENESS);
		keep_only(&ends[0]);
		message_must_not_wait(true);
		_exit(keep_pushing(options, ends[0]));
	}
	close(ends[0]);
	if (pid < 0) {
		int error = -errno;

		close(ends[1]);
		return error;
	}
	fcntl(ends[1], F_SETFL, O_NONBLOCK);
	*ret_pusher = (struct pusher){ .pid = pid, .pipe = ends[1] };
	return 0;
}

void pusher_note(const struct pusher *pusher)
{
	/* A full pipe wakes it just as well; that it is gone is told at the end. */
	if (pusher->pid && write(pusher->pipe, "", 1) < 0)
		return;
}

bool pusher_end(struct pusher *pusher)
{
	int status;
	pid_t waited;

	if (!pusher->pid)
		return true;
	close(pusher->pipe);
	waited = child_wait(pusher->pid, &status, 0);
	pusher->pid = 0;
	if (waited < 0) {
		message_error_errno(errno, "waiting for the process that pushes");
		return false;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) != FAILED)
		return WEXITSTATUS(status) == PUSHED_ALL;
	message_error(
		"The process that pushes has ended early; the next `ljspy record --push` sends the rest.");
	return false;
}

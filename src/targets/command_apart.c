/* SPDX-License-Identifier: MIT */
#include "src/targets/command_apart.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory/memory_file.h"
#include "src/linux/tracer/tracing_thread.h"
#include "src/program/message.h"
#include "src/targets/choose.h"

struct command_apart {
	command_in_engine *command;
	const struct invocation *invocation;
	int output, error; /* files in memory that the command writes to */
	off_t told;        /* bytes of error that the user has */
	bool tells_at_once;
	enum exit_status status;
	bool is_interrupted;
};

static void work(struct apart *apart, void *context)
{
	struct command_apart *self = context;
	enum exit_status status = self->command(apart, self->invocation);

	apart_publish(apart, &status);
}

bool command_try_may_go_on(void *context)
{
	struct command_try *try = context;

	try->given_up |= apart_wish(try->apart) == APART_LET_GO;
	return !try->given_up;
}

/* Was it given up, and may it be begun anew now? Waits until it may. */
static bool may_begin_anew(struct command_try *try)
{
	if (!try->given_up || !apart_stay_away(try->apart))
		return false;
	try->given_up = false;
	return true;
}

int command_try_run(struct command_try *try, void *(*read)(void *context), void *context)
{
	int error;

	do {
		error = tracing_thread_run(read, context);
	} while (!error && may_begin_anew(try));
	return error;
}

/*
 * Wait until a file that makes nobody wait, such as a pipe with O_NONBLOCK, takes more. 0 or a negative
 * errno.
 */
static int wait_for_room(int file)
{
	struct pollfd room = { .fd = file, .events = POLLOUT };

	return poll(&room, 1, -1) >= 0 || errno == EINTR ? 0 : -errno;
}

/*
 * Copy a file from there to its end into another; *at is then where the next copy begins, also after an
 * error. 0 or a negative errno. is_last: no later copy would have what the other file does not take now.
 */
static int copy(int from, off_t *at, int to, bool is_last)
{
	char bytes[1 << 16];
	ssize_t length;
	int error = 0;

	while (!error && (length = pread(from, bytes, sizeof(bytes), *at)) > 0) {
		ssize_t written = write(to, bytes, (size_t)length);

		if (written > 0)
			*at += written;
		else if (written < 0 && errno == EAGAIN && is_last)
			error = wait_for_room(to);
		else if (written < 0 && errno != EINTR)
			error = -errno;
	}
	return error ? error : length < 0 ? -errno : 0;
}

static void update(struct apart *apart, void *context)
{
	struct command_apart *self = context;
	enum exit_status status;
	bool by_process;

	self->is_interrupted |= apart_interrupted_by(apart, &by_process) != 0;
	if (apart_results(apart, &status))
		self->status = status;
	if (self->tells_at_once)
		copy(self->error, &self->told, STDERR_FILENO, false);
}

/* Files in memory grow up to the limit, too. */
static bool is_cut(int file, rlim_t *ret_limit)
{
	struct rlimit limit;
	struct stat status;

	if (getrlimit(RLIMIT_FSIZE, &limit) || fstat(file, &status) ||
	    (rlim_t)status.st_size < limit.rlim_cur)
		return false;
	*ret_limit = limit.rlim_cur;
	return true;
}

static void write_out(struct command_apart *self)
{
	off_t shown = 0;
	int error = copy(self->output, &shown, STDOUT_FILENO, true);
	rlim_t limit;

	copy(self->error, &self->told, STDERR_FILENO, true);
	if (is_cut(self->output, &limit) || is_cut(self->error, &limit)) {
		message_error("Not all is shown: no file may have more than %llu bytes.",
			      (unsigned long long)limit);
		message_note_file_limit();
		if (self->status == EXIT_ALL_GOOD)
			self->status = EXIT_WITH_ERRORS;
	}
	if (!error)
		return;
	message_error_stdout(-error);
	if (self->status == EXIT_ALL_GOOD)
		self->status = EXIT_WITH_ERRORS;
}

/*
 * Of several processes, leave out the one whose memory the kernel kept the engine waiting for. False if it
 * cannot be.
 */
static bool leave_out(struct options *options, pid_t pid)
{
	for (size_t i = 0; i < options->pid_count && options->pid_count > 1; i++) {
		if (options->pids[i] != pid)
			continue;
		options->pid_count--;
		memmove(options->pids + i, options->pids + i + 1, (options->pid_count - i) * sizeof(pid_t));
		return true;
	}
	return false;
}

static bool empty(int file)
{
	return ftruncate(file, 0) == 0 && lseek(file, 0, SEEK_SET) == 0;
}

/*
 * What it has written is part of the answer at best, and what it has said comes again. False if it cannot be.
 */
static bool begin_anew(struct command_apart *self, pid_t without)
{
	const bool has_told = self->told > 0;

	self->status = EXIT_NOTHING_DONE;
	self->told = 0;
	if (!empty(self->output) || !empty(self->error))
		return false;
	choose_explain_blocked(without);
	if (has_told)
		message_note(
			"ljspy begins anew without it: messages come again, and files are written again.");
	return true;
}

/* 0 or an error of apart_run(). *ret_is_part: processes were left out, and the user knows which. */
static int run_engines(struct command_apart *self, const struct apart_options *options,
		       struct apart_outcome *ret_outcome, bool *ret_is_part)
{
	int error = apart_run(options, ret_outcome);

	*ret_is_part = false;
	while (!error && ret_outcome->end == APART_BLOCKED && !self->is_interrupted &&
	       leave_out(self->invocation->options, ret_outcome->blocked_pid) &&
	       begin_anew(self, ret_outcome->blocked_pid)) {
		*ret_is_part = true;
		error = apart_run(options, ret_outcome);
	}
	return error;
}

static enum exit_status run(struct command_apart *self, const struct apart_options *options,
			    const sigset_t *inherited_mask)
{
	struct apart_outcome outcome = { .end = APART_KILLED };
	bool is_part;
	int error;

	fflush(stdout);
	error = run_engines(self, options, &outcome, &is_part);
	/* The targets are free: from here on, an interrupt ends ljspy at once. */
	pthread_sigmask(SIG_SETMASK, inherited_mask, NULL);
	if (error && outcome.end == APART_UNWATCHED) {
		message_error_errno(-error, "ljspy's processes cannot wait for each other: waitpid() fails");
		return EXIT_NOTHING_DONE;
	}
	if (error) {
		choose_explain_error(-error, "starting to look");
		return EXIT_NOTHING_DONE;
	}
	if (outcome.end == APART_KILLED) {
		message_error("The process of ljspy's that looked at the target was killed.");
		return EXIT_NOTHING_DONE;
	}
	if (outcome.end == APART_BLOCKED) {
		choose_explain_blocked(outcome.blocked_pid);
		return EXIT_NOTHING_DONE;
	}
	write_out(self);
	return is_part && self->status == EXIT_ALL_GOOD ? EXIT_WITH_ERRORS : self->status;
}

enum exit_status command_run_apart(command_in_engine *command, const struct invocation *invocation,
				   bool can_be_concluded)
{
	struct command_apart self = {
		.command = command,
		.invocation = invocation,
		.output = memory_file("output"),
		.error = memory_file("messages"),
		.tells_at_once = can_be_concluded,
		.status = EXIT_NOTHING_DONE,
	};
	const struct apart_options options = {
		.work = work,
		.update = update,
		.context = &self,
		.results_size = sizeof(enum exit_status),
		.can_be_concluded = can_be_concluded,
		.standard_output = self.output,
		.standard_error = self.error,
	};
	enum exit_status status = EXIT_NOTHING_DONE;

	if (self.output < 0 || self.error < 0)
		choose_explain_error(errno, "starting to look");
	else
		status = run(&self, &options, &invocation->inherited_mask);
	if (self.output >= 0)
		close(self.output);
	if (self.error >= 0)
		close(self.error);
	return status;
}

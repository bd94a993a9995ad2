/* SPDX-License-Identifier: MIT */
/* ljspy top: the live view. */
#include "src/commands/commands.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "src/program/message.h"
#include "src/sampler/sampler_apart.h"
#include "src/targets/choose.h"
#include "src/targets/sampled.h"
#include "src/targets/sampling.h"
#include "src/top/live_samples.h"
#include "src/top/screen.h"
#include "src/top/ui.h"

enum { STALL_MS = 1000 };

struct top {
	const struct options *options;
	struct functions *functions;
	struct live_samples *live;
	char *target;
	regex_t pattern; /* of --name, if given */
	struct sampler_options sampler_options;
	struct sampler_result result;
	pthread_t thread;
	int begun_fd;  /* readable once sampling has begun, or cannot begin */
	int ended_fd;  /* readable when sampling has ended */
	int closed_fd; /* readable once the terminal is as before, or was never taken over */
	int signal_fd; /* readable once a signal ends ljspy that nobody has taken; the signal stays */
	struct termios settings;  /* of the terminal, before it is taken over */
	bool could_not_begin;     /* known once begun_fd is readable */
	const char *nothing_left; /* why, or NULL; known once ended_fd is readable */
	int ui_error;
};

/*---- The end ----*/

static enum exit_status conclude(const struct top *top)
{
	const struct sampler_result *result = &top->result;

	if (choose_explain_failure(result, NULL))
		return EXIT_NOTHING_DONE;
	sampled_tell_figures(&result->figures);
	if (choose_explain_early_end(result))
		return EXIT_WITH_ERRORS;
	if (result->end == SAMPLER_TARGETS_ENDED)
		message_note(result->left_out ? "No target is left to sample." : "The target has ended.");
	sampled_tell_unsearched(result);
	if (result->left_out) {
		struct permission_verdict verdict;

		permission_diagnose(result->left_out_pid, -result->left_out_error, &verdict);
		sampled_tell_left_out(result, &verdict);
		return EXIT_WITH_ERRORS;
	}
	if (top->ui_error) {
		message_error_errno(-top->ui_error, "showing samples");
		return EXIT_WITH_ERRORS;
	}
	if (live_samples_out_of_memory(top->live)) {
		message_warn("Memory ran short; some samples were not shown.");
		return EXIT_WITH_ERRORS;
	}
	return EXIT_ALL_GOOD;
}

/*---- The thread that takes samples ----*/

static void take_sample(void *context, const struct sample *sample)
{
	struct top *top = context;

	live_samples_take(top->live, sample);
}

static bool take_figures(void *context, const struct figures *so_far)
{
	struct top *top = context;

	live_samples_progress(top->live, so_far);
	eventfd_write(top->begun_fd, 1);
	return true;
}

/*
 * Sampling is over for good, and so is ljspy, but the showing thread may hang in a write to the terminal:
 * after Ctrl-S, or behind a connection that hangs. curses begins such a write again after any signal. So end
 * without it once the terminal has taken no text for some time; its picture stays.
 */
static void end_despite_stall(const struct top *top)
{
	struct pollfd closed = { .fd = top->closed_fd, .events = POLLIN };
	struct pollfd terminal = { .fd = STDOUT_FILENO, .events = POLLOUT };

	while (poll(&closed, 1, STALL_MS) == 0) {
		if (poll(&terminal, 1, STALL_MS) != 0)
			continue;
		tcsetattr(STDIN_FILENO, TCSANOW, &top->settings);
		_exit(conclude(top));
	}
}

/* Until a signal ends ljspy, the user quits, or the terminal is as before. */
static void await_end(const struct top *top)
{
	struct pollfd files[] = {
		{ .fd = top->signal_fd, .events = POLLIN },
		{ .fd = top->closed_fd, .events = POLLIN },
	};

	while (poll(files, sizeof(files) / sizeof(files[0]), -1) < 0 && errno == EINTR)
		;
}

static void *run_sampler(void *context)
{
	struct top *top = context;

	sampler_run_apart(&top->sampler_options, &top->result);
	live_samples_progress(top->live, &top->result.figures);
	top->could_not_begin = top->result.end == SAMPLER_FAILED || top->result.end == SAMPLER_NO_LUAJIT ||
			       choose_ended_before_beginning(&top->result);
	/* A signal may come as the last target ends. */
	if (top->result.end == SAMPLER_TARGETS_ENDED && !top->result.interrupted_by)
		top->nothing_left = top->result.left_out ? "no target is left to sample"
							 : "the target has ended";
	eventfd_write(top->begun_fd, 1);
	eventfd_write(top->ended_fd, 1);
	if (top->nothing_left)
		await_end(top); /* the last samples stay on the screen */
	end_despite_stall(top);
	return NULL;
}

/*---- The thread that shows them ----*/

static void explain_no_screen(int error)
{
	if (error == -ENOTTY) {
		message_error("`ljspy top` needs a terminal for its input and output.");
		message_note("`ljspy record` writes to a file, `ljspy dump` shows stacks once.");
	} else if (error == -ENOTSUP) {
		const char *name = getenv("TERM");

		message_error("The terminal \"%s\" is unknown, or cannot place text.", name ? name : "");
		message_note("Set TERM to what it is, such as xterm, linux or vt100.");
	} else {
		message_error_errno(-error, "taking over the terminal");
	}
}

/* Show the live view until it or sampling ends. False after telling the user that there is no screen. */
static bool show(struct top *top)
{
	struct ui_options ui_options = {
		.live = top->live,
		.target = top->target,
		.rate_hz = top->options->rate_hz,
		.by_line = top->options->lines,
		.ended_fd = top->ended_fd,
		.nothing_left = &top->nothing_left,
		.signal_fd = top->signal_fd,
	};
	struct screen *screen = NULL;
	eventfd_t count;
	int error;

	/* If sampling cannot begin, do not let the screen flash before the message. */
	eventfd_read(top->begun_fd, &count);
	if (top->could_not_begin) {
		eventfd_write(top->closed_fd, 1);
		pthread_join(top->thread, NULL);
		return true;
	}
	error = screen_open(&screen);
	ui_options.screen = screen;
	if (!error)
		top->ui_error = ui_run(&ui_options);
	/* Free the targets first, or wake the thread from its wait. A second SIGINT does no harm. */
	pthread_kill(top->thread, SIGINT);
	eventfd_read(top->ended_fd, &count);
	screen_close(screen);
	eventfd_write(top->closed_fd, 1);
	pthread_join(top->thread, NULL);
	if (error)
		explain_no_screen(error);
	return !error;
}

/*
 * "PID TITLE" or "N processes: TITLE of the first that is there"; the caller frees it. 0 or a negative errno.
 */
static int describe_target(const struct options *options, char **ret_text)
{
	struct process process;
	int error = -ESRCH, length;
	char *title, *text;

	for (size_t i = 0; i < options->pid_count && error; i++)
		error = process_read_soon(options->pids[i], &process);
	if (error)
		return error;
	title = process_title(&process);
	length = options->pid_count == 1 ? asprintf(&text, "%d %s", process.pid, title ? title : process.name)
					 : asprintf(&text, "%zu processes: %s", options->pid_count,
						    title ? title : process.name);
	free(title);
	process_clear(&process);
	if (length < 0)
		return -ENOMEM;
	*ret_text = text;
	return 0;
}

/*
 * Only the showing thread takes SIGWINCH, and only while it waits. Ctrl-Z does nothing:
 * the screen stays.
 */
static void set_terminal_signals(void)
{
	sigset_t blocked;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGWINCH);
	pthread_sigmask(SIG_BLOCK, &blocked, NULL);
	signal(SIGTSTP, SIG_IGN);
}

/* A descriptor for signals that end ljspy, which are blocked; negative on failure. */
static int open_signals(void)
{
	sigset_t ending;

	sigemptyset(&ending);
	sigaddset(&ending, SIGINT);
	sigaddset(&ending, SIGTERM);
	sigaddset(&ending, SIGHUP);
	return signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK);
}

static enum exit_status run(struct top *top)
{
	const struct options *options = top->options;
	enum exit_status status = EXIT_NOTHING_DONE;
	int error;

	top->functions = functions_new();
	top->live = live_samples_new();
	top->begun_fd = eventfd(0, EFD_CLOEXEC);
	top->ended_fd = eventfd(0, EFD_CLOEXEC);
	top->closed_fd = eventfd(0, EFD_CLOEXEC);
	top->signal_fd = open_signals();
	if (!top->functions || !top->live || top->begun_fd < 0 || top->ended_fd < 0 || top->closed_fd < 0 ||
	    top->signal_fd < 0 || tcgetattr(STDIN_FILENO, &top->settings)) {
		choose_explain_error(errno, "starting to look");
		return EXIT_NOTHING_DONE;
	}
	error = describe_target(options, &top->target);
	if (error) {
		choose_explain(options->pids[0], -error);
		return EXIT_NOTHING_DONE;
	}
	top->sampler_options = sampling_options(options);
	top->sampler_options.functions = top->functions;
	top->sampler_options.take = take_sample;
	top->sampler_options.progress = take_figures;
	top->sampler_options.context = top;
	if (sampling_follow(options, &top->pattern, &top->sampler_options)) {
		message_error_errno(ENOMEM, "starting to look");
		return EXIT_NOTHING_DONE;
	}
	set_terminal_signals();
	error = pthread_create(&top->thread, NULL, run_sampler, top);
	if (error)
		choose_explain_error(error, "starting to look");
	else if (show(top))
		status = conclude(top);
	sampling_forget(&top->sampler_options, &top->pattern);
	return status;
}

enum exit_status command_top(const struct invocation *invocation)
{
	const struct options *options = invocation->options;
	struct top *top;
	enum exit_status status;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		explain_no_screen(-ENOTTY);
		return EXIT_NOTHING_DONE;
	}
	if (!choose_check_all(options) || !choose_check_layouts(options))
		return EXIT_NOTHING_DONE;
	top = calloc(1, sizeof(*top));
	if (!top) {
		message_error_errno(ENOMEM, "starting to look");
		return EXIT_NOTHING_DONE;
	}
	/* Who reads what ljspy says may stall; the end does not wait for that. */
	message_must_not_wait(true);
	top->options = options;
	top->begun_fd = top->ended_fd = top->closed_fd = top->signal_fd = -1;
	status = run(top);
	if (top->begun_fd >= 0)
		close(top->begun_fd);
	if (top->ended_fd >= 0)
		close(top->ended_fd);
	if (top->closed_fd >= 0)
		close(top->closed_fd);
	if (top->signal_fd >= 0)
		close(top->signal_fd);
	live_samples_free(top->live);
	functions_free(top->functions);
	free(top->target);
	free(top);
	return status;
}

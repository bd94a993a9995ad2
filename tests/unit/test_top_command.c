/* SPDX-License-Identifier: MIT */
/* ljspy top: how the live view begins and ends with the sampling, and what its user is told of that. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/program/interruption.h"
#include "src/program/message.h"
#include "src/sampler/sampler_apart.h"
#include "src/top/live_samples.h"
#include "src/top/screen.h"
#include "src/top/ui.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/open_files.h"
#include "tests/unit/run_command.h"
#include "tests/unit/told_reason.h"

enum {
	PROCESSES = 2,
	FIRST = 5000000,
	EVENT_FILES = 3,
	STALL_PART = 10,
	LET_GO_US = 20000,
	DRAWS_FOREVER_S = 60
};

static struct options options;
static pid_t pids[PROCESSES];

#include "tests/unit/checked_all.h"

/* What is around the command. The sampling thread sees it, too, in which no check may fail. */
static struct {
	bool no_input, no_output; /* that is a terminal */
	unsigned int fails_event; /* which file of events, from 1 on; 0: none */
	bool fails_signals, fails_settings, fails_thread, fails_functions, fails_live;
	int screen_error, ui_error;
	struct sampler_result result;
	bool samples_on;         /* until it is interrupted */
	bool fails_before_begin; /* no figures are told */
	bool loses_samples;      /* memory is short */
	bool closes_never;       /* the terminal takes nothing more */
	bool takes_text;         /* ... but the kernel says that it would */
	bool is_gone[PROCESSES];
} scene;

static struct {
	unsigned int runs, opened, closed, shown, events;
	bool ended_before_closing, saw_end, nothing_left_known;
	struct sampler_options sampler;
	struct ui_options ui;
	char target[128], nothing_left[64];
} seen;

static volatile bool sampler_has_ended;

/*---- The terminal ----*/

INSTEAD_OF(isatty);
int __wrap_isatty(int fd)
{
	return fd == STDIN_FILENO ? !scene.no_input : fd == STDOUT_FILENO ? !scene.no_output : 0;
}

INSTEAD_OF(tcgetattr);
int __wrap_tcgetattr(int fd, struct termios *ret_settings)
{
	assert_int_equal(fd, STDIN_FILENO);
	memset(ret_settings, 0, sizeof(*ret_settings));
	ret_settings->c_lflag = ICANON | ECHO;
	errno = EIO;
	return scene.fails_settings ? -1 : 0;
}

INSTEAD_OF(tcsetattr);
int __wrap_tcsetattr(int fd, int when, const struct termios *settings)
{
	if (fd == STDIN_FILENO && when == TCSANOW && settings->c_lflag == (ICANON | ECHO))
		fputs("Restored.\n", stderr);
	return 0;
}

INSTEAD_OF(screen_open);
int __wrap_screen_open(struct screen **ret_screen)
{
	if (scene.screen_error)
		return scene.screen_error;
	seen.opened++;
	*ret_screen = (struct screen *)&seen;
	return 0;
}

INSTEAD_OF(screen_close);
void __wrap_screen_close(struct screen *screen)
{
	if (!screen)
		return;
	assert_ptr_equal(screen, &seen);
	seen.closed++;
	seen.ended_before_closing = sampler_has_ended;
	if (scene.closes_never)
		sleep(DRAWS_FOREVER_S);
}

/* Who waits for the terminal need not wait for so long here. */
INSTEAD_OF(poll);
int __wrap_poll(struct pollfd *files, nfds_t count, int timeout_ms)
{
	const int ready = __real_poll(files, count, timeout_ms > 0 ? timeout_ms / STALL_PART : timeout_ms);

	if (files->fd != STDOUT_FILENO)
		return ready;
	if (!scene.takes_text)
		return 0;
	scene.takes_text = false; /* from then on it takes nothing */
	fputs("It takes text.\n", stderr);
	return 1;
}

/*---- The view ----*/

INSTEAD_OF(ui_run);
int __wrap_ui_run(const struct ui_options *ui)
{
	seen.shown++;
	seen.ui = *ui;
	snprintf(seen.target, sizeof(seen.target), "%s", ui->target);
	if (!scene.samples_on && !scene.ui_error) {
		struct pollfd ended = { .fd = ui->ended_fd, .events = POLLIN };

		seen.saw_end = __real_poll(&ended, 1, DRAWS_FOREVER_S * 1000) == 1;
		snprintf(seen.nothing_left, sizeof(seen.nothing_left), "%s",
			 *ui->nothing_left ? *ui->nothing_left : "");
	}
	return scene.ui_error;
}

INSTEAD_OF(live_samples_out_of_memory);
bool __wrap_live_samples_out_of_memory(struct live_samples *live)
{
	assert_non_null(live);
	return scene.loses_samples;
}

/*---- Sampling ----*/

INSTEAD_OF(sampler_run_apart);
void __wrap_sampler_run_apart(const struct sampler_options *sampler, struct sampler_result *ret_result)
{
	static const struct function function = { .kind = FRAME_LUA, .name = "work", .file = "@a.lua" };
	static const struct frame frame = { .function = &function };
	const struct sample sample = { .pid = FIRST, .tid = FIRST, .frames = &frame, .frame_count = 1 };
	struct figures so_far = { .samples = 1 };
	sigset_t interrupting;

	seen.runs++;
	seen.sampler = *sampler;
	*ret_result = scene.result;
	if (!scene.fails_before_begin) {
		sampler->take(sampler->context, &sample);
		sampler->progress(sampler->context, &so_far);
	}
	if (scene.samples_on) {
		sigemptyset(&interrupting);
		sigaddset(&interrupting, SIGINT);
		sigwaitinfo(&interrupting, NULL);
		ret_result->end = SAMPLER_INTERRUPTED;
		ret_result->interrupted_by = SIGINT;
		usleep(LET_GO_US); /* it lets go of the targets */
	}
	ret_result->figures = so_far;
	sampler_has_ended = true;
}

INSTEAD_OF(process_read_soon);
int __wrap_process_read_soon(pid_t pid, struct process *ret_process)
{
	assert_in_range(pid, FIRST, FIRST + PROCESSES - 1);
	if (scene.is_gone[pid - FIRST])
		return -ESRCH;
	*ret_process = (struct process){ .pid = pid, .name = "worker" };
	return 0;
}

INSTEAD_OF(process_title);
char *__wrap_process_title(const struct process *process)
{
	return process->pid == FIRST ? strdup("lua server.lua") : NULL;
}

/*---- What the kernel refuses ----*/

INSTEAD_OF(eventfd);
int __wrap_eventfd(unsigned int count, int flags)
{
	if (++seen.events != scene.fails_event)
		return __real_eventfd(count, flags);
	errno = EMFILE;
	return -1;
}

INSTEAD_OF(signalfd);
int __wrap_signalfd(int fd, const sigset_t *signals, int flags)
{
	for (int signal = 1; signal < SIGRTMIN; signal++)
		assert_int_equal(sigismember(signals, signal),
				 signal == SIGINT || signal == SIGTERM || signal == SIGHUP);
	if (!scene.fails_signals)
		return __real_signalfd(fd, signals, flags);
	errno = EMFILE;
	return -1;
}

INSTEAD_OF(pthread_create);
int __wrap_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes, void *(*run)(void *),
			  void *context)
{
	return scene.fails_thread ? EAGAIN : __real_pthread_create(ret_thread, attributes, run, context);
}

INSTEAD_OF(functions_new);
struct functions *__wrap_functions_new(void)
{
	errno = ENOMEM;
	return scene.fails_functions ? NULL : __real_functions_new();
}

INSTEAD_OF(live_samples_new);
struct live_samples *__wrap_live_samples_new(void)
{
	errno = ENOMEM;
	return scene.fails_live ? NULL : __real_live_samples_new();
}

/*---- The user ----*/

static int begin(void **state)
{
	(void)state;
	memset(&scene, 0, sizeof(scene));
	memset(&checked, 0, sizeof(checked));
	told_reason = PERMISSION_UNKNOWN;
	pids[0] = FIRST;
	pids[1] = FIRST + 1;
	options = (struct options){
		.command = COMMAND_TOP, .pids = pids, .pid_count = 1, .rate_hz = 77, .lines = true
	};
	scene.result = (struct sampler_result){
		.end = SAMPLER_TARGETS_ENDED, .begin_ns = 1, .has_attached = true, .saw_luajit = true
	};
	scene.samples_on = true;
	return 0;
}

static enum exit_status top(void)
{
	const unsigned int files = open_files_count();
	enum exit_status status;

	memset(&seen, 0, sizeof(seen));
	sampler_has_ended = false;
	status = run_command(command_top, &options);
	message_must_not_wait(false);
	assert_string_equal(shown, "");
	assert_int_equal(seen.closed, seen.opened);
	assert_int_equal(open_files_count(), files);
	return status;
}

static void assert_not_shown(const char *words)
{
	assert_int_equal(top(), EXIT_NOTHING_DONE);
	ASSERT_TOLD(words);
	assert_int_equal(seen.shown, 0);
	assert_int_equal(told_times("samples"), 0);
}

static void who_quits_ends_sampling_before_the_screen(void **state)
{
	(void)state;
	assert_int_equal(top(), EXIT_ALL_GOOD);
	assert_int_equal(seen.runs, 1);
	assert_int_equal(seen.shown, 1);
	assert_int_equal(seen.closed, 1);
	assert_true(seen.ended_before_closing);
	assert_int_equal(told_times("samples"), 1); /* the figures */
	assert_null(strstr(told, "ljspy: "));
	assert_int_equal(seen.ui.rate_hz, 77);
	assert_true(seen.ui.by_line);
	assert_ptr_equal(seen.ui.screen, &seen);
	assert_string_equal(seen.target, "5000000 lua server.lua");
	assert_int_equal(seen.sampler.pid_count, 1);
	assert_int_equal(seen.sampler.rate_hz, 77);
	assert_null(seen.sampler.pattern);
	options.lines = false;
	options.name = "worker";
	options.subprocesses = true;
	assert_int_equal(top(), EXIT_ALL_GOOD);
	assert_false(seen.ui.by_line);
	assert_non_null(seen.sampler.pattern);
	assert_true(seen.sampler.subprocesses);
}

static void the_title_names_a_process_that_is_there(void **state)
{
	(void)state;
	options.pid_count = 2;
	assert_int_equal(top(), EXIT_ALL_GOOD);
	assert_string_equal(seen.target, "2 processes: lua server.lua");
	/* One of them has ended since they were chosen. */
	scene.is_gone[0] = true;
	assert_int_equal(top(), EXIT_ALL_GOOD);
	assert_string_equal(seen.target, "2 processes: worker");
	scene.is_gone[1] = true;
	assert_not_shown("5000000: error 3");
	assert_int_equal(seen.runs, 0);
}

/*---- Sampling that ends by itself ----*/

static void the_last_samples_stay_until_the_user_quits(void **state)
{
	(void)state;
	scene.samples_on = false;
	assert_int_equal(top(), EXIT_ALL_GOOD);
	assert_true(seen.saw_end);
	assert_string_equal(seen.nothing_left, "the target has ended");
	ASSERT_TOLD("The target has ended.\n");
	scene.result.left_out = 1;
	scene.result.left_out_pid = FIRST;
	scene.result.left_out_error = -EPERM;
	assert_int_equal(top(), EXIT_WITH_ERRORS);
	assert_string_equal(seen.nothing_left, "no target is left to sample");
	ASSERT_TOLD("No target is left to sample.\n");
	ASSERT_TOLD("5000000: error 1");
	ASSERT_TOLD("Process 5000000 was left out.");
	scene.result.left_out = 0;
	scene.result.unsearched = 1;
	scene.result.unsearched_pid = FIRST + 1;
	assert_int_equal(top(), EXIT_ALL_GOOD);
	ASSERT_TOLD("Whether process 5000001 has run LuaJIT is not known");
	/* Not where a signal came as the last one ended. */
	scene.result.interrupted_by = SIGTERM;
	assert_int_equal(top(), EXIT_ALL_GOOD);
	assert_string_equal(seen.nothing_left, "");
}

static void sampling_that_breaks_off_is_told(void **state)
{
	(void)state;
	scene.samples_on = false;
	scene.result.end = SAMPLER_KILLED;
	assert_int_equal(top(), EXIT_WITH_ERRORS);
	assert_true(seen.saw_end);
	assert_string_equal(seen.nothing_left, "");
	ASSERT_TOLD("there are no samples after that.");
}

static void a_screen_does_not_flash_before_a_reason(void **state)
{
	(void)state;
	scene.samples_on = false;
	scene.fails_before_begin = true;
	scene.result = (struct sampler_result){ .end = SAMPLER_FAILED, .error = -EPERM, .pid = FIRST };
	assert_not_shown("5000000: error 1");
	assert_int_equal(seen.opened, 0);
	scene.result = (struct sampler_result){ .end = SAMPLER_NO_LUAJIT, .pid = FIRST };
	assert_not_shown("Process 5000000 does not run LuaJIT");
	assert_int_equal(seen.opened, 0);
	scene.result = (struct sampler_result){ .end = SAMPLER_INTERRUPTED, .interrupted_by = SIGTERM };
	assert_not_shown("sampling was to end before it had begun.");
	assert_int_equal(seen.opened, 0);
}

static void what_the_view_lacked_is_told(void **state)
{
	(void)state;
	scene.loses_samples = true;
	assert_int_equal(top(), EXIT_WITH_ERRORS);
	ASSERT_TOLD("Memory ran short; some samples were not shown.");
	scene.ui_error = -ENOMEM;
	assert_int_equal(top(), EXIT_WITH_ERRORS);
	ASSERT_TOLD("showing samples: Cannot allocate memory");
	assert_int_equal(seen.runs, 1);
}

/*---- No screen ----*/

static void without_a_terminal_nothing_is_sampled(void **state)
{
	(void)state;
	for (int output = 0; output < 2; output++) {
		scene.no_input = !output;
		scene.no_output = output;
		assert_not_shown("`ljspy top` needs a terminal for its input and output.");
		ASSERT_TOLD("`ljspy record` writes to a file");
		assert_int_equal(seen.runs, 0);
	}
}

/* The targets are free then. */
static void a_terminal_that_shows_nothing_is_told(void **state)
{
	(void)state;
	setenv("TERM", "made-up", 1);
	scene.screen_error = -ENOTSUP;
	assert_not_shown("The terminal \"made-up\" is unknown, or cannot place text.");
	assert_true(sampler_has_ended);
	unsetenv("TERM");
	assert_not_shown("The terminal \"\" is unknown");
	scene.screen_error = -ENOMEM;
	assert_not_shown("taking over the terminal: Cannot allocate memory");
	scene.screen_error = -ENOTTY;
	assert_not_shown("needs a terminal");
	assert_true(sampler_has_ended);
}

static void targets_that_may_not_be_sampled_are_left_alone(void **state)
{
	(void)state;
	checked.may_not = true;
	assert_not_shown("");
	assert_int_equal(seen.runs, 0);
	checked.may_not = false;
	checked.misfit = true;
	assert_not_shown("");
	assert_int_equal(seen.runs, 0);
}

static void whatever_the_kernel_refuses_is_told(void **state)
{
	bool *const refusals[] = { &scene.fails_signals, &scene.fails_settings, &scene.fails_thread,
				   &scene.fails_functions, &scene.fails_live };
	static const char *const words[] = { "files open", "starting to look: Input/output error",
					     "No timer, thread or process can be had",
					     "There is not enough memory", "There is not enough memory" };

	(void)state;
	for (unsigned int file = 1; file <= EVENT_FILES; file++) {
		scene.fails_event = file;
		assert_not_shown("files open");
		assert_int_equal(seen.runs, 0);
	}
	scene.fails_event = 0;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++) {
		*refusals[i] = true;
		assert_not_shown(words[i]);
		assert_int_equal(seen.runs, 0);
		*refusals[i] = false;
	}
	assert_int_equal(top(), EXIT_ALL_GOOD);
}

/*---- A terminal that takes no text ----*/

/* The status, and all that a process of its own tells that ends so. */
static int top_in_child(void)
{
	int ends[2], status;
	size_t length = 0;
	ssize_t part;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		const struct invocation invocation = { .options = &options };

		alarm(DRAWS_FOREVER_S);
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		_exit(100 + command_top(&invocation));
	}
	close(ends[1]);
	while ((part = read(ends[0], told + length, sizeof(told) - 1 - length)) > 0)
		length += (size_t)part;
	told[length] = '\0';
	close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void a_terminal_that_hangs_does_not_hold_ljspy_up(void **state)
{
	(void)state;
	scene.closes_never = true;
	assert_int_equal(top_in_child(), EXIT_ALL_GOOD);
	assert_int_equal(told_times("Restored."), 1);
	assert_int_equal(told_times("samples"), 1);
	scene.takes_text = true; /* once more */
	assert_int_equal(top_in_child(), EXIT_ALL_GOOD);
	assert_int_equal(told_times("It takes text."), 1);
	assert_int_equal(told_times("Restored."), 1);
	scene.result.end = SAMPLER_KILLED;
	scene.samples_on = false;
	assert_int_equal(top_in_child(), EXIT_WITH_ERRORS);
	ASSERT_TOLD("there are no samples after that.");
}

static int block_signals(void **state)
{
	sigset_t blocked;

	(void)state;
	interruption_signals(&blocked);
	return sigprocmask(SIG_BLOCK, &blocked, NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, begin)
	const struct CMUnitTest tests[] = {
		TEST(who_quits_ends_sampling_before_the_screen),
		TEST(the_title_names_a_process_that_is_there),
		TEST(the_last_samples_stay_until_the_user_quits),
		TEST(sampling_that_breaks_off_is_told),
		TEST(a_screen_does_not_flash_before_a_reason),
		TEST(what_the_view_lacked_is_told),
		TEST(without_a_terminal_nothing_is_sampled),
		TEST(a_terminal_that_shows_nothing_is_told),
		TEST(targets_that_may_not_be_sampled_are_left_alone),
		TEST(whatever_the_kernel_refuses_is_told),
		TEST(a_terminal_that_hangs_does_not_hold_ljspy_up),
	};

	return cmocka_run_group_tests(tests, block_signals, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Starting the command that is to be profiled. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/threads/launch.h"
#include "tests/unit/target_process.h"

/* With its standard output in a pipe. */
static struct launch start(const char *command, const sigset_t *mask, FILE **ret_output)
{
	char *argv[] = { strdup(command), NULL };
	int fds[2], saved = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
	struct launch launch;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	fflush(stdout);
	dup2(fds[1], STDOUT_FILENO);
	close(fds[1]);
	assert_int_equal(launch_start(argv, mask, 0, &launch), 0);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	free(argv[0]);
	*ret_output = fdopen(fds[0], "r");
	return launch;
}

static struct tracee *seize(struct tracer *tracer, const struct launch *launch)
{
	struct tracee *tracee;

	assert_int_equal(tracer_seize(tracer, launch->pid, launch->pid, &tracee), 0);
	return tracee;
}

static void poll_until_gone(struct tracer *tracer, const struct tracee *tracee)
{
	while (tracee->state != TRACEE_GONE) {
		tracer_poll(tracer);
		sleep_ms(1);
	}
}

static void read_line(FILE *output, char line[static 256])
{
	assert_non_null(fgets(line, 256, output));
	line[strcspn(line, "\n")] = '\0';
}

static void command_inherits_nothing_of_ljspy(void **state)
{
	struct tracer *tracer = tracer_new();
	const struct tracee *tracee;
	char path[8192], line[256];
	struct launch launch;
	sigset_t mask;
	FILE *output;
	int secret = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1); /* as ljspy's own parent had it */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	launch = start(target_process_path("shower", path, sizeof(path)), &mask, &output);
	tracee = seize(tracer, &launch);
	assert_int_equal(launch_go(&launch, tracer), 0);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	assert_true(tracee->execed);
	poll_until_gone(tracer, tracee);
	read_line(output, line);
	assert_int_equal(strncmp(line, "fds 0 1 2", 9), 0);
	for (const char *fd = line + 9; *fd; fd += strcspn(fd + 1, " ") + 1) {
		struct stat status;

		/* What came from the parent is none of ljspy's business. */
		assert_int_equal(fstat(atoi(fd + 1), &status), 0);
		assert_false(fcntl(atoi(fd + 1), F_GETFD) & FD_CLOEXEC);
	}
	read_line(output, line);
	assert_string_equal(line, "blocked 10");
	read_line(output, line);
	assert_string_equal(line, "SIGPIPE deadly");
	read_line(output, line);
	assert_string_equal(line, "SIGXFSZ deadly");
	assert_true(tracee->exit_known);
	assert_true(WIFEXITED(tracee->exit_status));
	assert_int_equal(WEXITSTATUS(tracee->exit_status), 7);
	close(secret);
	fclose(output);
	tracer_free(tracer);
}

static void refuse(const char *command, int error)
{
	struct tracer *tracer = tracer_new();
	const struct tracee *tracee;
	struct launch launch;
	sigset_t mask;
	FILE *output;

	sigemptyset(&mask);
	launch = start(command, &mask, &output);
	tracee = seize(tracer, &launch);
	assert_int_equal(launch_go(&launch, tracer), -error);
	assert_int_equal(tracee->state, TRACEE_GONE);
	assert_int_equal(waitpid(launch.pid, NULL, WNOHANG), -1); /* reaped */
	fclose(output);
	tracer_free(tracer);
}

static void command_that_cannot_be_run_is_explained(void **state)
{
	(void)state;
	refuse("/no/such/command", ENOENT);
	setenv("PATH", "/usr/bin:/bin", 1);
	refuse("no-such-command-along-path", ENOENT);
	refuse("/", EACCES);
	refuse("/dev/null", EACCES);
}

static void nothing_runs_before_it_is_told_to(void **state)
{
	struct tracer *tracer = tracer_new();
	char path[8192];
	struct launch launch;
	sigset_t mask;
	FILE *output;

	(void)state;
	sigemptyset(&mask);
	launch = start(target_process_path("shower", path, sizeof(path)), &mask, &output);
	sleep_ms(50);
	launch_cancel(&launch);
	assert_int_equal(fgetc(output), EOF);
	assert_int_equal(kill(launch.pid, 0), -1);
	fclose(output);
	tracer_free(tracer);
}

static void signal_before_the_command_runs_ends_the_wait(void **state)
{
	struct tracer *tracer = tracer_new();
	const struct tracee *tracee;
	struct launch launch;
	sigset_t mask;
	FILE *output;
	char path[8192];

	(void)state;
	sigemptyset(&mask);
	launch = start(target_process_path("shower", path, sizeof(path)), &mask, &output);
	tracee = seize(tracer, &launch);
	kill(launch.pid, SIGTERM);
	assert_int_equal(launch_go(&launch, tracer), -ESRCH);
	assert_int_equal(tracee->state, TRACEE_GONE);
	assert_int_equal(fgetc(output), EOF);
	fclose(output);
	tracer_free(tracer);
}

static void child_does_not_outlive_ljspy(void **state)
{
	pid_t ljspy, child;
	int fds[2], status;
	char path[8192];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	ljspy = fork();
	if (ljspy == 0) {
		struct launch launch;
		sigset_t mask;
		FILE *output;

		sigemptyset(&mask);
		launch = start(target_process_path("shower", path, sizeof(path)), &mask, &output);
		if (write(fds[1], &launch.pid, sizeof(launch.pid)) < 0)
			_exit(1);
		_exit(0);
	}
	assert_int_equal(read(fds[0], &child, sizeof(child)), sizeof(child));
	waitpid(ljspy, &status, 0);
	for (int i = 0;
	     i < 5000 && target_process_state(child, child) != 0 && target_process_state(child, child) != 'Z';
	     i++)
		sleep_ms(1);
	assert_true(target_process_state(child, child) == 0 || target_process_state(child, child) == 'Z');
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(command_inherits_nothing_of_ljspy),
		cmocka_unit_test(command_that_cannot_be_run_is_explained),
		cmocka_unit_test(nothing_runs_before_it_is_told_to),
		cmocka_unit_test(signal_before_the_command_runs_ends_the_wait),
		cmocka_unit_test(child_does_not_outlive_ljspy),
	};
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

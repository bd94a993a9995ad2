/* SPDX-License-Identifier: MIT */
#include "tests/unit/target_process.h"

#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum {
	TARGET_SECONDS_MAX = 60,
	AWAIT_MS_MAX = 10000,
	ARGUMENTS_MAX = 8,
};

void sleep_ms(unsigned int ms)
{
	struct timespec left = { ms / 1000, (long)(ms % 1000) * 1000000 };

	while (nanosleep(&left, &left))
		;
}

uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Beside the directory of the running test. */
const char *target_process_path(const char *program, char *path, size_t room)
{
	char self[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	assert_true(length > 0);
	self[length] = '\0';
	*strrchr(self, '/') = '\0';
	snprintf(path, room, "%s/../targets/%s", self, program);
	return path;
}

static void run(const char *program, const char *const arguments[], int input, int output)
{
	char path[2 * PATH_MAX], name[64], *argv[ARGUMENTS_MAX + 2] = { name };
	sigset_t none;

	snprintf(name, sizeof(name), "%s", program);
	for (int i = 0; i < ARGUMENTS_MAX && arguments && arguments[i]; i++)
		argv[i + 1] = strdup(arguments[i]);
	dup2(input, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(TARGET_SECONDS_MAX);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execv(target_process_path(program, path, sizeof(path)), argv);
	_exit(127);
}

struct target_process target_process_start(const char *program, const char *const arguments[])
{
	struct target_process target;
	int input[2], output[2];
	char line[64];

	assert_int_equal(pipe2(input, O_CLOEXEC), 0);
	assert_int_equal(pipe2(output, O_CLOEXEC), 0);
	target.pid = fork();
	assert_true(target.pid >= 0);
	if (target.pid == 0)
		run(program, arguments, input[0], output[1]);
	close(input[0]);
	close(output[1]);
	target.input = fdopen(input[1], "w");
	target.output = fdopen(output[0], "r");
	target_process_line(&target, line, sizeof(line));
	assert_string_equal(line, "ready");
	return target;
}

void target_process_line(struct target_process *target, char *line, size_t room)
{
	assert_non_null(fgets(line, (int)room, target->output));
	line[strcspn(line, "\n")] = '\0';
}

void target_process_tell(struct target_process *target, const char *line)
{
	fprintf(target->input, "%s\n", line);
	fflush(target->input);
}

void target_process_end(struct target_process *target)
{
	/* Its end is only reported after that of its other seized threads. */
	kill(target->pid, SIGKILL);
	while (kill(target->pid, 0) == 0)
		if (waitpid(-1, NULL, __WALL | WNOHANG) == 0)
			sleep_ms(1);
	fclose(target->input);
	fclose(target->output);
}

pid_t target_process_sleeper(const char *name, uid_t user, bool dumpable)
{
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_NAME, name);
		if (user &&
		    (setgroups(0, NULL) || setresgid(user, user, user) || setresuid(user, user, user)))
			_exit(1);
		prctl(PR_SET_DUMPABLE, dumpable);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	target_process_await(child, child, "S");
	return child;
}

void target_process_end_sleeper(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

char target_process_state(pid_t pid, pid_t tid)
{
	char path[64], text[512], *name_end;
	FILE *file;
	size_t length;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	file = fopen(path, "r");
	if (!file)
		return 0;
	length = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[length] = '\0';
	name_end = strrchr(text, ')');
	return name_end ? name_end[2] : 0;
}

void target_process_await(pid_t pid, pid_t tid, const char *states)
{
	char state = 0;

	for (int i = 0; i < AWAIT_MS_MAX; i++) {
		state = target_process_state(pid, tid);
		if (state ? strchr(states, state) != NULL : !*states)
			return;
		sleep_ms(1);
	}
	fail_msg("thread %d is in state '%c', not in one of \"%s\"", (int)tid, state, states);
}

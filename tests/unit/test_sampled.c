/* SPDX-License-Identifier: MIT */
/* What a user is told of a run of the sampler, and what becomes of the command that was started. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "src/linux/proc/process.h"
#include "src/targets/choose.h"
#include "src/targets/halted.h"
#include "src/targets/launched.h"
#include "src/targets/sampled.h"
#include "src/targets/sampling.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/told.h"
#include "tests/unit/told_no_luajit.h"
#include "tests/unit/told_reason.h"

enum { FIRST = 100, TRACER = 90, TRACED = 101, GONE = 102 };

static struct sampler_result result;
static struct options options;
static const struct permission_verdict why = { .sentence = "It is a secret.", .remedy = "Be root." };

INSTEAD_OF(process_read);
int __wrap_process_read(pid_t pid, struct process *ret_process)
{
	if (pid == GONE + 1)
		return -ESRCH;
	*ret_process = (struct process){
		.pid = pid, .name = "gdb", .command = strdup("gdb"), .command_length = 4
	};
	if (pid == TRACED)
		ret_process->tracer_pid = TRACER;
	if (pid == GONE)
		ret_process->tracer_pid = GONE + 1;
	return 0;
}

static int begin(void **state)
{
	(void)state;
	result = (struct sampler_result){ .end = SAMPLER_DURATION_OVER };
	options = (struct options){ .pid_count = 1 };
	return 0;
}

/*---- Left out ----*/

static void who_is_refused_is_told_at_the_beginning(void **state)
{
	(void)state;
	told_begin();
	sampled_tell_refused(&result.refused);
	told_end();
	assert_string_equal(told, "");
	sampler_note(&result.refused, FIRST, -EPERM);
	sampler_note(&result.refused, FIRST + 1, 0);
	/* The same reason is not told twice in a row. */
	sampler_note(&result.refused, FIRST + 2, -EMFILE);
	sampler_note(&result.refused, FIRST + 3, -EMFILE);
	told_begin();
	sampled_tell_refused(&result.refused);
	told_end();
	assert_string_equal(told, "ljspy: 100: error 1.\n101 runs no LuaJIT.\nljspy: Too few files.\n"
				  "ljspy: warning: 4 of the processes cannot be sampled, or not yet.\n");
	for (pid_t i = 4; i < NOTED_MAX + 3; i++)
		sampler_note(&result.refused, FIRST + i, -EPERM);
	told_begin();
	sampled_tell_refused(&result.refused);
	told_end();
	assert_int_equal(told_times(": error 1."), 1 + NOTES_TOLD_MAX - 4);
	assert_int_equal(told_times("259 of the processes cannot be sampled"), 1);
}

static bool explain(void)
{
	bool is_missing;

	told_begin();
	is_missing = sampled_explain(&options, &result, &why);
	told_end();
	return is_missing;
}

static void who_was_left_out_is_told_once(void **state)
{
	(void)state;
	assert_false(explain());
	assert_string_equal(told, "");
	result.left_out = 1;
	result.left_out_pid = FIRST;
	result.left_out_error = -EPERM;
	assert_true(explain());
	assert_string_equal(
		told, "ljspy: It is a secret.\nljspy: Be root.\nljspy: warning: Process 100 was left out.\n");
	result.left_out_error = 0;
	result.left_out = 3;
	assert_true(explain());
	assert_string_equal(told, "100 runs no LuaJIT.\n"
				  "ljspy: warning: 3 processes were left out, process 100 among them.\n");
	sampler_note(&result.refused, FIRST, 0);
	assert_true(explain());
	assert_string_equal(told, "ljspy: warning: 3 processes were left out, process 100 among them.\n");
}

static void lua_that_is_not_shown_is_told(void **state)
{
	(void)state;
	result.unknown_pid = FIRST;
	strcpy(result.unknown_reason, "no such field");
	assert_true(explain());
	assert_string_equal(
		told,
		"ljspy: warning: LuaJIT in process 100 is laid out in a way that is not known, so its Lua is "
		"not shown: no such field.\n");
	result.unknown_pid = 0;
	result.unsearched = 1;
	result.unsearched_pid = FIRST + 1;
	assert_false(explain());
	assert_non_null(strstr(told, "Whether process 101 has run LuaJIT is not known"));
	result.unsearched = 2;
	assert_false(explain());
	assert_non_null(
		strstr(told, "Whether 2 processes have run LuaJIT, process 101 among them, is not known"));
}

/*---- Ends ----*/

static void an_end_with_the_targets_is_told(void **state)
{
	char *launch[] = { (char[]){ "sh" }, NULL };

	(void)state;
	result.end = SAMPLER_TARGETS_ENDED;
	assert_false(explain());
	assert_string_equal(told, "ljspy: The recording ended early, with its target.\n");
	options.pid_count = 2;
	assert_false(explain());
	assert_string_equal(told, "ljspy: The recording ended early, with the last of its targets.\n");
	options.pid_count = 1;
	options.subprocesses = true;
	assert_false(explain());
	assert_string_equal(told, "ljspy: The recording ended early, with the last of its targets.\n");
	/* Who was left out, as gdb has it meanwhile, has not ended. */
	result.left_out = 1;
	result.left_out_pid = FIRST;
	result.left_out_error = -EPERM;
	assert_true(explain());
	assert_int_equal(told_times("The recording ended early, as no target was left to sample.\n"), 1);
	assert_int_equal(told_times("with "), 0);
	result.left_out = 0;
	options.launch = launch; /* it ends when the command does */
	assert_false(explain());
	assert_string_equal(told, "");
	result.end = SAMPLER_KILLED;
	assert_true(explain());
	assert_non_null(strstr(told, "there are no samples after that"));
}

static void a_target_that_could_not_run_is_told(void **state)
{
	(void)state;
	sampler_note(&result.halted, FIRST, HALT_SIGNAL);
	assert_false(explain());
	assert_string_equal(
		told, "ljspy: warning: It did not run to the end: process 100 is stopped, as by SIGSTOP or "
		      "Ctrl-Z.\nljspy: Let it go on: kill -CONT 100\n");
	options.pid_count = 2;
	assert_false(explain());
	assert_int_equal(told_times("Not all ran to the end: process 100"), 1);
	options.pid_count = 1;
	options.name = "lua";
	result.halted.at[0] = (struct sampler_note){ FIRST, HALT_FREEZER };
	assert_false(explain());
	assert_string_equal(
		told,
		"ljspy: warning: Not all ran to the end: process 100 is in a frozen cgroup, as by `docker "
		"pause`.\nljspy: Let it go on, as by `docker unpause`.\n");
	result.halted.at[0] = (struct sampler_note){ TRACED, HALT_TRACER };
	assert_false(explain());
	assert_non_null(strstr(told, "process 101 is stopped by process 90 (gdb), which traces it.\n"));
	assert_non_null(strstr(told, "Let it go on there, in gdb by `continue`."));
	/* The tracer has left, or has ended. */
	result.halted.at[0].pid = FIRST;
	assert_false(explain());
	assert_non_null(strstr(told, "process 100 is stopped by another one, which traces it.\n"));
	result.halted.at[0].pid = GONE;
	assert_false(explain());
	assert_non_null(strstr(told, "process 102 is stopped by another one, which traces it.\n"));
}

static void of_many_that_could_not_run_some_are_named(void **state)
{
	(void)state;
	for (pid_t i = 0; i < NOTES_TOLD_MAX; i++)
		sampler_note(&result.halted, FIRST + 10 + i, HALT_SIGNAL);
	assert_false(explain());
	assert_int_equal(told_times("is stopped, as by SIGSTOP"), NOTES_TOLD_MAX);
	assert_int_equal(told_times("the same goes for"), 0);
	for (pid_t i = NOTES_TOLD_MAX; i < NOTED_MAX + 2; i++)
		sampler_note(&result.halted, FIRST + 10 + i, HALT_SIGNAL);
	assert_false(explain());
	assert_int_equal(told_times("is stopped, as by SIGSTOP"), NOTES_TOLD_MAX);
	assert_int_equal(told_times("the same goes for 250 more."), 1);
}

/*---- A command ----*/

enum { END_POLLS = 2000, POLL_NS = 10 * 1000 * 1000 };

static pid_t start(int exit_status)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (exit_status >= 0)
			_exit(exit_status);
		pause();
		_exit(99);
	}
	assert_true(pid > 0);
	return pid;
}

/* Before it is waited for, which lasts for ever if it does not end. */
static void assert_ends(pid_t pid)
{
	const struct timespec pause = { .tv_nsec = POLL_NS };
	siginfo_t info = { .si_pid = 0 };

	for (unsigned int i = 0; i < END_POLLS && info.si_pid == 0; i++) {
		assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
		nanosleep(&pause, NULL);
	}
	assert_int_equal(info.si_pid, pid);
}

static void assert_json(const char *expected)
{
	json_t *json = launched_json(&result);
	char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);

	assert_string_equal(text, expected);
	free(text);
	json_decref(json);
}

static void a_command_exits_as_without_ljspy(void **state)
{
	static const struct {
		int own, commands, whole;
	} cases[] = { { 0, 0, 0 }, { 1, 0, 1 }, { 0, 3, 3 }, { 1, 3, 3 } };

	(void)state;
	assert_int_equal(launched_exit_status(&result, EXIT_WITH_ERRORS), EXIT_WITH_ERRORS);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		result = (struct sampler_result){ .launched = true, .pid = start(cases[i].commands) };
		assert_json("{\"exit_status\":null,\"signal\":null}");
		assert_int_equal(launched_exit_status(&result, EXIT_WITH_ERRORS), EXIT_WITH_ERRORS);
		told_begin();
		launched_await(&result, "sh");
		told_end();
		assert_true(result.exit_known);
		assert_int_equal(launched_exit_status(&result, (enum exit_status)cases[i].own),
				 cases[i].whole);
		launched_look(&result); /* it has none any more */
		assert_true(result.exit_known);
	}
	assert_json("{\"exit_status\":3,\"signal\":null}");
	result.launched = false;
	assert_int_equal(launched_exit_status(&result, EXIT_ALL_GOOD), EXIT_ALL_GOOD);
}

/* Of one that a process sends to ljspy; those of a terminal come to the command, too. */
static void a_signal_to_ljspy_is_passed_on(void **state)
{
	int status;

	(void)state;
	result.launched = true;
	result.pid = start(-1);
	result.end = SAMPLER_INTERRUPTED;
	result.interrupted_by = SIGTERM;
	launched_pass_on(&result);
	result.interrupted_by_process = true;
	result.end = SAMPLER_DURATION_OVER;
	launched_pass_on(&result);
	result.end = SAMPLER_INTERRUPTED;
	result.exit_known = true;
	launched_pass_on(&result);
	result.exit_known = false;
	launched_look(&result);
	assert_false(result.exit_known);
	result.interrupted_by = SIGUSR1;
	launched_pass_on(&result);
	assert_ends(result.pid);
	told_begin();
	launched_await(&result, "sh");
	told_end();
	status = result.exit_status;
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
	assert_json("{\"exit_status\":null,\"signal\":10}");
	assert_int_equal(launched_exit_status(&result, EXIT_ALL_GOOD), 128 + SIGUSR1);
}

/*---- What is sampled ----*/

static void a_title_names_what_is_recorded(void **state)
{
	char *launch[] = { (char[]){ "/opt/bin/run" }, (char[]){ "a b" }, NULL };
	pid_t pids[] = { FIRST, FIRST + 1, FIRST + 2 }, pid = -1;
	char name[PROCESS_NAME_MAX] = "";
	char *title;

	(void)state;
	options.pids = pids;
	title = sampling_title(&options, name, &pid);
	assert_non_null(title);
	assert_string_equal(name, "gdb");
	assert_int_equal(pid, FIRST);
	assert_null(strstr(title, "other"));
	free(title);
	options.pid_count = 2;
	title = sampling_title(&options, name, &pid);
	assert_non_null(strstr(title, " and 1 other process asked for"));
	assert_int_equal(pid, 0);
	free(title);
	options.pid_count = 3;
	title = sampling_title(&options, name, &pid);
	assert_non_null(strstr(title, " and 2 other processes asked for"));
	free(title);
	pids[0] = GONE + 1;
	*name = '\0';
	title = sampling_title(&options, name, &pid);
	assert_non_null(strstr(title, " and 2 other processes asked for"));
	assert_string_equal(name, "gdb");
	free(title);
	pids[1] = pids[2] = GONE + 1;
	assert_null(sampling_title(&options, name, &pid));
	options.launch = launch;
	pid = -1;
	title = sampling_title(&options, name, &pid);
	assert_non_null(strstr(title, "/opt/bin/run"));
	assert_string_equal(name, "run");
	assert_int_equal(pid, 0);
	free(title);
	launch[0] = (char[]){ "lua" };
	title = sampling_title(&options, name, &pid);
	assert_string_equal(name, "lua");
	free(title);
}

static void processes_of_a_name_are_followed(void **state)
{
	struct sampler_options sampler = sampling_options(&options);
	regex_t pattern;

	(void)state;
	assert_int_equal(sampling_follow(&options, &pattern, &sampler), 0);
	assert_false(sampler.subprocesses);
	assert_null(sampler.pattern);
	sampling_forget(&sampler, &pattern);
	options.name = "^lua";
	options.subprocesses = true;
	options.command = COMMAND_SERVE;
	sampler = sampling_options(&options);
	assert_true(sampler.awaits);
	assert_int_equal(sampling_follow(&options, &pattern, &sampler), 0);
	assert_true(sampler.subprocesses);
	assert_ptr_equal(sampler.pattern, &pattern);
	assert_int_equal(regexec(&pattern, "luajit", 0, NULL, 0), 0);
	assert_int_not_equal(regexec(&pattern, "my lua", 0, NULL, 0), 0);
	sampling_forget(&sampler, &pattern);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, begin)
	const struct CMUnitTest tests[] = {
		TEST(who_is_refused_is_told_at_the_beginning),
		TEST(who_was_left_out_is_told_once),
		TEST(lua_that_is_not_shown_is_told),
		TEST(an_end_with_the_targets_is_told),
		TEST(a_target_that_could_not_run_is_told),
		TEST(of_many_that_could_not_run_some_are_named),
		TEST(a_command_exits_as_without_ljspy),
		TEST(a_signal_to_ljspy_is_passed_on),
		TEST(a_title_names_what_is_recorded),
		TEST(processes_of_a_name_are_followed),
	};
	sigset_t signals;

	/* As in ljspy, which waits for it. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* What /proc tells of processes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/proc/process.h"
#include "tests/unit/target_process.h"

static void facts_are_read(void **state)
{
	struct target_process target = target_process_start("spinner",
							    (const char *[]){ "1", "two words", "", NULL });
	struct process process;
	char path[8192], *resolved, *title;

	(void)state;
	assert_int_equal(process_read(target.pid, &process), 0);
	assert_int_equal(process.pid, target.pid);
	assert_int_equal(process.own_pid, target.pid);
	assert_int_equal(process.parent_pid, getpid());
	assert_int_equal(process.tracer_pid, 0);
	assert_int_equal(process.uid, getuid());
	assert_int_equal(process.egid, getegid());
	assert_false(process.kernel_thread);
	assert_false(process.is_32bit);
	assert_false(process_is_zombie(&process));
	assert_string_equal(process.name, "spinner");
	resolved = realpath(target_process_path("spinner", path, sizeof(path)), NULL);
	assert_string_equal(process.executable, resolved);
	assert_false(process.executable_deleted);
	assert_memory_equal(process.command,
			    "spinner\0"
			    "1\0two words\0",
			    process.command_length);
	title = process_title(&process);
	assert_string_equal(title, "spinner 1 two words");
	target_process_end(&target);
	process_clear(&process);
	free(title);
	free(resolved);
}

static void names_that_look_like_fields_are_names(void **state)
{
	static const char *const names[] = { "a) R 1 1", ")", "((", "x\n) Z", "Uid:\t0" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		pid_t child = target_process_sleeper(names[i], 0, true);
		struct process process;

		assert_int_equal(process_read(child, &process), 0);
		assert_string_equal(process.name, names[i]);
		assert_int_equal(process.state, 'S');
		assert_int_equal(process.parent_pid, getpid());
		assert_int_equal(process.uid, getuid());
		process_clear(&process);
		target_process_end_sleeper(child);
	}
}

static void zombies_and_missing_processes_are_told(void **state)
{
	pid_t child = fork();
	struct process process;

	(void)state;
	if (child == 0)
		_exit(0);
	target_process_await(child, child, "Z");
	assert_int_equal(process_read(child, &process), 0);
	assert_true(process_is_zombie(&process));
	assert_int_equal(process.command_length, 0);
	process_clear(&process);
	waitpid(child, NULL, 0);
	assert_int_equal(process_read(child, &process), -ESRCH);
	assert_int_equal(process_read(-5, &process), -ESRCH);
}

static void process_whose_first_thread_has_ended_is_no_zombie(void **state)
{
	struct target_process target = target_process_start("zombie_leader", NULL);
	struct process process;

	(void)state;
	target_process_await(target.pid, target.pid, "Z");
	assert_int_equal(process_read(target.pid, &process), 0);
	assert_true(process_thread_is_zombie(&process));
	assert_false(process_is_zombie(&process));
	process_clear(&process);
	target_process_end(&target);
}

static void kernel_threads_are_told(void **state)
{
	struct process process;

	(void)state;
	if (process_read(2, &process) != 0 || strcmp(process.name, "kthreadd") != 0) {
		print_message("skipped: kernel threads cannot be seen here\n");
		skip();
	}
	assert_true(process.kernel_thread);
	assert_int_equal(process.command_length, 0);
	process_clear(&process);
}

static bool is_listed(const char *pattern, pid_t pid)
{
	struct process_list list;
	char *message;
	bool found = false;

	assert_int_equal(process_find(pattern, &list, &message), 0);
	for (size_t i = 0; i < list.count; i++) {
		found |= list.processes[i].pid == pid;
		assert_true(i == 0 || list.processes[i - 1].pid < list.processes[i].pid);
		assert_int_not_equal(list.processes[i].pid, getpid());
	}
	process_list_clear(&list);
	return found;
}

static void processes_are_found_by_name_program_and_script(void **state)
{
	struct target_process target = target_process_start(
		"spinner", (const char *[]){ "-O3", "/srv/app/main.lua", "other.lua", NULL });
	pid_t child = target_process_sleeper("odd name", 0, true);

	(void)state;
	assert_true(is_listed("^spinner$", target.pid));
	assert_true(is_listed("app/(main|test)\\.lua$", target.pid));
	assert_false(is_listed("other\\.lua", target.pid));
	assert_false(is_listed("^-O3", target.pid));
	assert_true(is_listed("^odd name$", child));
	assert_true(is_listed("", target.pid));
	target_process_end_sleeper(child);
	assert_false(is_listed("^odd name$", child));
	target_process_end(&target);
}

static void wrong_pattern_is_explained(void **state)
{
	struct process_list list;
	char *message = NULL;

	(void)state;
	assert_int_equal(process_find("(", &list, &message), -EINVAL);
	assert_non_null(message);
	assert_true(strlen(message) > 0);
	free(message);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(facts_are_read),
		cmocka_unit_test(names_that_look_like_fields_are_names),
		cmocka_unit_test(zombies_and_missing_processes_are_told),
		cmocka_unit_test(process_whose_first_thread_has_ended_is_no_zombie),
		cmocka_unit_test(kernel_threads_are_told),
		cmocka_unit_test(processes_are_found_by_name_program_and_script),
		cmocka_unit_test(wrong_pattern_is_explained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

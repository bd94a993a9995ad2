/* SPDX-License-Identifier: MIT */
/* What is read of a process's files in /proc, whatever they say. The files are made up. */
#include <errno.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/proc/proc_file.h"
#include "src/linux/proc/process.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(proc_file_open);

enum { FILES_MAX = 7, PID = 4242 };

/* The texts of files; those that are not there cannot be opened. */
static struct file {
	const char *name;
	const void *bytes;
	size_t length;
	int error; /* negative; 0: none */
} files[FILES_MAX];
static size_t file_count;

int __wrap_proc_file_open(pid_t pid, const char *name)
{
	if (pid == getpid() && strcmp(name, "statm") == 0)
		name = "own statm";
	else
		assert_int_equal(pid, PID);
	for (size_t i = 0; i < file_count; i++) {
		int fd;

		if (strcmp(files[i].name, name) != 0)
			continue;
		if (files[i].error)
			return files[i].error;
		fd = memfd_create(name, MFD_CLOEXEC);
		assert_true(fd >= 0);
		assert_int_equal(write(fd, files[i].bytes, files[i].length), files[i].length);
		assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
		return fd;
	}
	return -ESRCH;
}

static void put_bytes(const char *name, const void *bytes, size_t length, int error)
{
	size_t i = 0;

	while (i < file_count && strcmp(files[i].name, name) != 0)
		i++;
	assert_in_range(i, 0, FILES_MAX - 1);
	files[i] = (struct file){ name, bytes, length, error };
	file_count += i == file_count;
}

static void put_text(const char *name, const char *text)
{
	put_bytes(name, text, strlen(text), 0);
}

static const char usual_stat[] =
	"4242 (a) b) S 17 4242 4242 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654321 9 10\n";
static const char usual_status[] = "Name:\tUid:\\n1\n"
				   "State:\tS (sleeping)\n"
				   "Tgid:\t4200\n"
				   "PPid:\t17\n"
				   "TracerPid:\t99\n"
				   "Uid:\t1\t2\t3\t4\n"
				   "Gid:\t5\t6\t7\t8\n"
				   "NSpid:\t4242\t77\t5\n"
				   "ShdPnd:\t0000000000000402\n"
				   "CapPrm:\t000001ffffffffff\n";

static int begin(void **state)
{
	static const uint64_t auxv[] = { 33, 0x7fff00000000 };

	(void)state;
	file_count = 0;
	put_text("stat", usual_stat);
	put_text("status", usual_status);
	put_bytes("cmdline", "luajit\0-e\0", 10, 0);
	put_bytes("auxv", auxv, sizeof(auxv), 0);
	return 0;
}

static void all_fields_are_taken(void **state)
{
	struct process process;

	(void)state;
	assert_int_equal(process_read(PID, &process), 0);
	assert_int_equal(process.pid, PID);
	assert_int_equal(process.own_pid, 5);
	assert_int_equal(process.parent_pid, 17);
	assert_int_equal(process.tracer_pid, 99);
	assert_int_equal(process.uid, 1);
	assert_int_equal(process.euid, 2);
	assert_int_equal(process.suid, 3);
	assert_int_equal(process.gid, 5);
	assert_int_equal(process.egid, 6);
	assert_int_equal(process.sgid, 7);
	assert_int_equal(process.state, 'S');
	assert_false(process.kernel_thread);
	assert_false(process.is_32bit);
	assert_true(process.capabilities == UINT64_C(0x1ffffffffff));
	assert_int_equal(process.pending_signals, 0x402);
	assert_int_equal(process.start_ticks, 987654321);
	assert_string_equal(process.name, "a) b");
	assert_int_equal(process.command_length, 10);
	assert_memory_equal(process.command, "luajit\0-e\0", 10);
	process_clear(&process);
	assert_int_equal(process_parent(PID), 17);
	assert_int_equal(process_of_thread(PID), 4200);
	assert_int_equal(process_if_thread(PID), 4200);
}

/* As in the middle of an execve(), when others would have to be waited for. */
static void the_status_is_read_alone(void **state)
{
	struct process process;

	(void)state;
	file_count = 0;
	put_text("status", usual_status);
	assert_int_equal(process_read_status(PID, &process), 0);
	assert_int_equal(process.pid, PID);
	assert_int_equal(process.own_pid, 5);
	assert_int_equal(process.tracer_pid, 99);
	assert_int_equal(process.euid, 2);
	assert_int_equal(process.state, 'S');
	assert_int_equal(process.pending_signals, 0x402);
	assert_false(process_is_stopped(PID));
	put_text("status", "State:\tT (stopped)\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\n");
	assert_true(process_is_stopped(PID));
	put_bytes("status", "", 0, -ESRCH);
	assert_int_equal(process_read_status(PID, &process), -ESRCH);
	assert_int_equal(process.own_pid, 5);
	assert_false(process_is_stopped(PID));
}

static void old_kernels_tell_less(void **state)
{
	struct process process;

	(void)state;
	put_text("status", "Uid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\n");
	put_bytes("auxv", "", 0, -EACCES);
	put_bytes("cmdline", "", 0, -EACCES);
	assert_int_equal(process_read(PID, &process), 0);
	assert_int_equal(process.own_pid, PID);
	assert_int_equal(process.tracer_pid, 0);
	assert_int_equal(process.pending_signals, 0);
	assert_int_equal(process.capabilities, 0);
	assert_int_equal(process.command_length, 0);
	assert_false(process.is_32bit);
	process_clear(&process);
	assert_int_equal(process_of_thread(PID), 0);
	assert_int_equal(process_if_thread(PID), 0);
}

static void texts_of_no_sense_are_no_process(void **state)
{
	static const char *const stats[] = { "", "4242", "4242 )a( S 1",
					     "4242 (a) S 17 4242 4242 0 -1 4194304\n" };
	static const char *const statuses[] = { "", "Uid:\t1\t2\nGid:\t5\t6\t7\n",
						"Uid:\t1\t2\t3\nGid:\t5\t6\n", "Uid:\t1\t2\t3\n",
						"Gid:\t1\t2\t3\n" };
	struct process process = { .pid = 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(stats) / sizeof(stats[0]); i++) {
		put_text("stat", stats[i]);
		assert_int_equal(process_read(PID, &process), i < 3 ? -ESRCH : -EPROTO);
	}
	put_text("stat", usual_stat);
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		put_text("status", statuses[i]);
		assert_int_equal(process_read(PID, &process), -EPROTO);
		assert_int_equal(process_parent(PID), 0);
	}
	put_bytes("status", "", 0, -EACCES);
	assert_int_equal(process_read(PID, &process), -EACCES);
	put_text("status", usual_status);
	put_bytes("cmdline", "", 0, -ESRCH);
	assert_int_equal(process_read(PID, &process), -ESRCH);
	assert_int_equal(process.pid, 1);
	put_bytes("stat", "", 0, -EMFILE);
	assert_int_equal(process_read(PID, &process), -EMFILE);
}

static void kernel_threads_and_32_bits_are_told(void **state)
{
	static const uint64_t auxv[] = { UINT64_C(0x7fff000000000021), 0 }, least[] = { UINT64_C(1) << 32 };
	struct process process;

	(void)state;
	put_text("stat", "4242 (kthreadd) S 0 0 0 0 -1 2129984 1 2 3 4 5 6 7 8 20 0 1 0 5 9 10\n");
	put_bytes("cmdline", "", 0, 0);
	put_bytes("auxv", auxv, sizeof(auxv), 0);
	assert_int_equal(process_read(PID, &process), 0);
	assert_true(process.kernel_thread);
	assert_true(process.is_32bit);
	assert_int_equal(process.command_length, 0);
	assert_null(process.command);
	process_clear(&process);
	put_bytes("auxv", least, sizeof(least), 0);
	assert_int_equal(process_read(PID, &process), 0);
	assert_true(process.is_32bit);
	process_clear(&process);
}

static void an_execve_has_neither_code_nor_arguments(void **state)
{
	static const struct {
		const char *statm, *command;
		bool is_in_exec;
	} processes[] = {
		{ "34 1 0 0 0 34 0\n", "", true },           /* its stack is there */
		{ "1060 548 504 109 0 122 0\n", "", false }, /* it has changed its title to nothing */
		{ "1060 548 0 0 0 0 0\n", "luajit", false }, /* in gVisor */
		{ "0 0 0 0 0 0 0\n", "", false },            /* a kernel thread, or one that has ended */
		{ "", "", false },
		{ "34 1 0", "", false },
	};
	struct process process;
	int kept;

	(void)state;
	for (size_t i = 0; i < sizeof(processes) / sizeof(processes[0]); i++) {
		put_text("statm", processes[i].statm);
		put_text("own statm", "1060 548 504 109 0 122 0\n");
		put_text("cmdline", processes[i].command);
		assert_int_equal(process_is_in_exec(PID), processes[i].is_in_exec);
		assert_int_equal(process_is_in_exec_by(-1, PID), processes[i].is_in_exec);
		kept = proc_file_open(PID, "statm");
		for (int asked = 0; asked < 2; asked++)
			assert_int_equal(process_is_in_exec_by(kept, PID), processes[i].is_in_exec);
		close(kept);
	}
	put_text("statm", processes[2].statm);
	put_text("cmdline", processes[2].command);
	assert_true(process_lacks_code(PID)); /* it asks for nothing that is under the lock */
	put_text("statm", processes[0].statm);
	put_text("cmdline", processes[0].command);
	put_text("own statm", "1060 548 0 0 0 0 0\n"); /* gVisor, and the title is nothing */
	assert_false(process_is_in_exec(PID));
	put_bytes("own statm", "", 0, -ESRCH);
	assert_true(process_is_in_exec(PID));
	assert_int_equal(process_read(PID, &process), -EBUSY);
	put_bytes("cmdline", "", 0, -ESRCH);
	assert_false(process_is_in_exec(PID));
}

/* Arguments that a program has written over may not end. */
static void a_command_line_ends(void **state)
{
	static char endless[PROCESS_COMMAND_MAX + 10];
	struct process process;

	(void)state;
	put_bytes("cmdline", "nginx: worker", 13, 0);
	assert_int_equal(process_read(PID, &process), 0);
	assert_int_equal(process.command_length, 14);
	assert_string_equal(process.command, "nginx: worker");
	process_clear(&process);
	memset(endless, 'x', sizeof(endless));
	put_bytes("cmdline", endless, sizeof(endless), 0);
	assert_int_equal(process_read(PID, &process), 0);
	assert_int_equal(process.command_length, PROCESS_COMMAND_MAX);
	assert_int_equal(strlen(process.command), PROCESS_COMMAND_MAX - 1);
	process_clear(&process);
}

/*---- Titles and patterns ----*/

static void assert_title(const char *command, size_t length, const char *expected)
{
	struct process process = { .name = "name", .command_length = length };
	char *title;

	process.command = malloc(length + 1);
	assert_non_null(process.command);
	memcpy(process.command, command, length);
	title = process_title(&process);
	assert_string_equal(title, expected);
	free(title);
	process_clear(&process);
}

static void a_title_is_the_arguments_with_blanks(void **state)
{
	(void)state;
	assert_title("", 0, "[name]");
	assert_title("a\0", 2, "a");
	assert_title("a\0b c\0\0d\0", 9, "a b c  d");
	assert_title("nginx: worker process \0\0 \0", 25, "nginx: worker process");
	assert_title(" \0", 2, " ");
	assert_title("\0", 1, " ");
}

static bool matches(const char *name, const char *command, size_t length, const char *pattern)
{
	struct process process = { .command_length = length };
	regex_t compiled;
	bool result;

	snprintf(process.name, sizeof(process.name), "%s", name);
	process.command = length ? malloc(length) : NULL;
	if (length)
		memcpy(process.command, command, length);
	assert_int_equal(process_pattern(pattern, &compiled, NULL), 0);
	result = process_matches(&process, &compiled);
	regfree(&compiled);
	process_clear(&process);
	return result;
}

static void a_pattern_is_of_the_name_the_program_or_the_script(void **state)
{
	static const char command[] = "luajit\0-O3\0\0app.lua\0other.lua";
	regex_t compiled;

	(void)state;
	assert_true(matches("name", command, sizeof(command), "^name$"));
	assert_true(matches("name", command, sizeof(command), "^luajit$"));
	assert_true(matches("name", command, sizeof(command), "^app"));
	assert_false(matches("name", command, sizeof(command), "^-O3$"));
	assert_false(matches("name", command, sizeof(command), "^other"));
	assert_false(matches("name", command, sizeof(command), "^$"));
	assert_false(matches("name", "", 0, "luajit"));
	assert_true(matches("name", "", 0, "am"));
	/* Options alone. */
	assert_false(matches("name", "luajit\0-e\0", 10, "-e"));
	assert_int_equal(process_pattern("(", &compiled, NULL), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(all_fields_are_taken, begin),
		cmocka_unit_test_setup(the_status_is_read_alone, begin),
		cmocka_unit_test_setup(old_kernels_tell_less, begin),
		cmocka_unit_test_setup(texts_of_no_sense_are_no_process, begin),
		cmocka_unit_test_setup(kernel_threads_and_32_bits_are_told, begin),
		cmocka_unit_test_setup(an_execve_has_neither_code_nor_arguments, begin),
		cmocka_unit_test_setup(a_command_line_ends, begin),
		cmocka_unit_test(a_title_is_the_arguments_with_blanks),
		cmocka_unit_test(a_pattern_is_of_the_name_the_program_or_the_script),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

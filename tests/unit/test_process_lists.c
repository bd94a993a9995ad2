/* SPDX-License-Identifier: MIT */
/*
 * Which processes are found, which threads have memory, and where programs are. Of a /proc that is made up.
 */
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <regex.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/proc/proc_file.h"
#include "src/linux/proc/process.h"
#include "tests/unit/made_up_listing.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
#include "tests/unit/failing_allocation.h"

INSTEAD_OF(proc_file_open);
INSTEAD_OF(readlink);
INSTEAD_OF(nanosleep);

enum { PROCESSES_MAX = 16, KERNEL_THREAD = 0x00200000, PID = 4000 };

static struct made_up_process {
	pid_t pid;
	char state;
	unsigned int flags;
	unsigned int start, next_start; /* the second: as it is when it is read again, if it is not 0 */
	const char *name, *command;     /* with blanks for NULs */
	const uint64_t *auxv;           /* its first pair; NULL: it cannot be read */
	size_t auxv_bytes;
	const char *statm; /* NULL: it cannot be read */
	bool is_stuck;     /* whoever reads its arguments waits */
} processes[PROCESSES_MAX];
static size_t process_count;
static sem_t end_of_wait;       /* of those */
static _Atomic pid_t reader;    /* who waits; 0: nobody */
static atomic_uint stuck_reads; /* of their arguments */
static atomic_uint waiting;     /* readers */
static unsigned int naps;
static struct made_up_listing *listing;

/* Processes, and threads that are not listed in /proc. */
static struct made_up_process *add_thread(pid_t pid, char state)
{
	struct made_up_process *process = &processes[process_count++];

	assert_in_range(process_count, 1, PROCESSES_MAX);
	*process = (struct made_up_process){
		.pid = pid, .state = state, .start = 7, .name = "sought", .command = ""
	};
	return process;
}

static struct made_up_process *add(pid_t pid)
{
	made_up_listing_add(listing, pid);
	return add_thread(pid, 'S');
}

static int begin(void **state)
{
	(void)state;
	process_count = 0;
	made_up_listings_begin();
	listing = made_up_listing_put("/proc");
	return 0;
}

static int file_of(const char *text, size_t length)
{
	int fd = memfd_create("text", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, text, length, 0), length);
	return fd;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *ret_rest)
{
	const struct timespec less = { .tv_nsec = time->tv_nsec / 10 };

	naps++;
	return __real_nanosleep(&less, ret_rest);
}

static const char reader_status[] = "State:\tD\nUid:\t1 2 3\nGid:\t4 5 6\n";

int __wrap_proc_file_open(pid_t pid, const char *name)
{
	char text[256];
	size_t i = 0, length;

	while (i < process_count && processes[i].pid != pid)
		i++;
	if (i == process_count)
		return pid == reader && strcmp(name, "status") == 0
			       ? file_of(reader_status, sizeof(reader_status) - 1)
			       : -ESRCH;
	if (strcmp(name, "cmdline") == 0 && processes[i].is_stuck) {
		stuck_reads++;
		waiting++;
		reader = gettid();
		while (sem_wait(&end_of_wait))
			;
		reader = 0;
		waiting--;
	}
	if (strcmp(name, "stat") == 0) {
		snprintf(text, sizeof(text), "%d (%s) %c 1 2 3 4 5 %u 1 2 3 4 5 6 7 8 9 10 11 12 %u 13\n",
			 (int)pid, processes[i].name, processes[i].state, processes[i].flags,
			 processes[i].start);
		if (processes[i].next_start)
			processes[i].start = processes[i].next_start;
		return file_of(text, strlen(text));
	}
	if (strcmp(name, "status") == 0) {
		length = (size_t)snprintf(text, sizeof(text),
					  "State:\t%c\nPPid:\t1\nUid:\t1 2 3\nGid:\t4 5 6\n",
					  processes[i].state);
		return file_of(text, length);
	}
	if (strcmp(name, "auxv") == 0 && processes[i].auxv)
		return file_of((const char *)processes[i].auxv, processes[i].auxv_bytes);
	if (strcmp(name, "statm") == 0 && processes[i].statm)
		return file_of(processes[i].statm, strlen(processes[i].statm));
	length = (size_t)snprintf(text, sizeof(text), "%s", processes[i].command);
	for (size_t at = 0; at < length; at++)
		if (text[at] == ' ')
			text[at] = '\0';
	return strcmp(name, "cmdline") == 0 ? file_of(text, length) : -EACCES;
}

static const char *executable; /* NULL: it cannot be read */

ssize_t __wrap_readlink(const char *path, char *target, size_t room)
{
	size_t length = executable ? strlen(executable) : 0;

	assert_non_null(strstr(path, "/exe"));
	memset(target, 'x', room);
	memcpy(target, executable ? executable : "", length < room ? length : room);
	errno = EACCES;
	return executable ? (ssize_t)(length < room ? length : room) : -1;
}

/*---- Lists ----*/

/* These are found, which end with 0, in this order. */
static void assert_found(const char *pattern, const pid_t *expected)
{
	struct process_list list;
	char *message;

	assert_int_equal(process_find(pattern, &list, &message), 0);
	for (size_t i = 0; i < list.count; i++)
		assert_int_equal(list.processes[i].pid, expected[i]);
	assert_int_equal(expected[list.count], 0);
	process_list_clear(&list);
	assert_int_equal(list.count, 0);
	assert_null(list.processes);
}

static void living_processes_of_users_are_found_in_order(void **state)
{
	(void)state;
	assert_found("", (const pid_t[]){ 0 });
	add(4004);
	add(4002);
	add(4003)->name = "other";
	add(4005)->flags = KERNEL_THREAD;
	add(4006)->state = 'Z';
	add(4007)->flags = ~(unsigned int)KERNEL_THREAD;
	add(getpid());
	made_up_listing_add(listing, 4008); /* gone since it was listed */
	add(4001);
	assert_found("^sought$", (const pid_t[]){ 4001, 4002, 4004, 4007, 0 });
	assert_found("", (const pid_t[]){ 4001, 4002, 4003, 4004, 4007, 0 });
	assert_found("nobody", (const pid_t[]){ 0 });
}

static void a_process_matches_by_name_program_or_script(void **state)
{
	struct made_up_process *process = add(PID);

	(void)state;
	process->name = "name";
	process->command = "/bin/luajit -O3 -e  /srv/main.lua other.lua ";
	assert_found("name", (const pid_t[]){ PID, 0 });
	assert_found("luajit$", (const pid_t[]){ PID, 0 });
	assert_found("^/srv/main.lua$", (const pid_t[]){ PID, 0 });
	assert_found("other|-O3|-e", (const pid_t[]){ 0 });
	process->command = "/bin/luajit -O3 -i ";
	assert_found("-O3|-i", (const pid_t[]){ 0 });
	process->command = "/bin/luajit script";
	assert_found("^script$", (const pid_t[]){ PID, 0 });
}

/* Its number is another's now. */
static void a_process_that_is_replaced_while_it_is_read_is_gone(void **state)
{
	struct process process;

	(void)state;
	add(PID)->next_start = 8;
	assert_int_equal(process_read(PID, &process), -ESRCH);
	assert_int_equal(process_read(PID, &process), 0);
	assert_int_equal(process.start_ticks, 8);
	process_clear(&process);
}

static void one_that_keeps_its_reader_waiting_is_told_and_the_others_are_found(void **state)
{
	struct process_list list;
	char *message;

	(void)state;
	sem_init(&end_of_wait, 0, 0);
	stuck_reads = 0;
	add(4001);
	add(4002)->is_stuck = true;
	add(4003);
	assert_int_equal(process_find("sought", &list, &message), 0);
	assert_int_equal(stuck_reads, 1);
	assert_int_equal(list.count, 2);
	assert_int_equal(list.processes[0].pid, 4001);
	assert_int_equal(list.processes[1].pid, 4003);
	assert_int_equal(list.unread_count, 1);
	assert_int_equal(list.unread[0].pid, 4002);
	assert_string_equal(list.unread[0].name, "sought");
	process_list_clear(&list);
	assert_true(process_reader_waits(reader));
	sem_post(&end_of_wait);
	while (reader)
		sched_yield();
}

/* Seconds for each would be minutes for some dozens. */
static void of_many_that_keep_their_reader_waiting_few_are_awaited_for_long(void **state)
{
	enum { STUCK = 12, AWAITED_FOR_LONG = 4, LONG_NAPS = 150 };
	struct process_list list;
	char *message;

	(void)state;
	sem_init(&end_of_wait, 0, 0);
	stuck_reads = 0;
	for (pid_t pid = 4001; pid < 4001 + STUCK; pid++)
		add(pid)->is_stuck = true;
	add(4001 + STUCK);
	naps = 0;
	assert_int_equal(process_find("sought", &list, &message), 0);
	assert_int_equal(stuck_reads, STUCK);
	assert_int_equal(list.unread_count, STUCK);
	assert_int_equal(list.count, 1);
	assert_int_equal(list.processes[0].pid, 4001 + STUCK);
	assert_in_range(naps, AWAITED_FOR_LONG, STUCK * LONG_NAPS / 2);
	process_list_clear(&list);
	for (unsigned int i = 0; i < STUCK; i++)
		sem_post(&end_of_wait);
	while (waiting)
		sched_yield();
}

static void a_title_that_keeps_its_reader_waiting_is_the_name(void **state)
{
	struct process process;
	char *title;

	(void)state;
	sem_init(&end_of_wait, 0, 0);
	add(4002)->is_stuck = true;
	assert_int_equal(process_read_soon(4002, &process), 0);
	title = process_title(&process);
	assert_string_equal(title, "[sought]");
	free(title);
	process_clear(&process);
	sem_post(&end_of_wait);
	while (reader)
		sched_yield();
	process_count = 0;
	add(4003)->command = "/bin/x ";
	assert_int_equal(process_read_soon(4003, &process), 0);
	assert_string_equal(process.command, "/bin/x");
	process_clear(&process);
	assert_int_equal(process_read_soon(4004, &process), -ESRCH);
}

/* Its numbers are known without the lock of its memory. */
static void who_needs_no_arguments_reads_none(void **state)
{
	struct process process;

	(void)state;
	add(4002)->is_stuck = true;
	stuck_reads = 0;
	assert_int_equal(process_read_outside(4002, &process), 0);
	assert_int_equal(process.start_ticks, 7);
	assert_null(process.command);
	assert_int_equal(stuck_reads, 0);
	assert_int_equal(process_read_outside(4003, &process), -ESRCH);
}

static void a_list_that_cannot_be_made_is_none(void **state)
{
	struct process_list list = { .count = 77 };
	unsigned int failures = 0;
	char *message = NULL;
	regex_t pattern;

	(void)state;
	executable = "/bin/x";
	for (pid_t pid = 4001; pid < 4004; pid++)
		add(pid)->command = "x ";
	for (size_t count = 0;; count++) {
		int error;

		allocation_fails_after(count);
		error = process_find("sought", &list, &message);
		if (!allocation_failed()) {
			assert_int_equal(error, 0);
			assert_int_equal(list.count, 3);
			process_list_clear(&list);
			break;
		}
		assert_true(error == 0 || error == -ENOMEM);
		if (!error)
			process_list_clear(&list);
		else
			assert_int_equal(list.count, failures++ ? 0 : 77);
		list.count = failures ? 0 : 77;
	}
	assert_true(failures > 3);
	listing->error = EMFILE;
	assert_int_equal(process_find("sought", &list, &message), -EMFILE);
	listing->error = 0;
	listing->reading_error = ENOMEM;
	assert_int_equal(process_find("sought", &list, &message), -ENOMEM);
	assert_null(message);
	assert_int_equal(process_find("(", &list, &message), -EINVAL);
	assert_non_null(message);
	free(message);
	message = NULL;
	assert_int_equal(process_pattern("(", &pattern, NULL), -EINVAL);
	allocation_fails_after(0);
	assert_int_equal(process_pattern("(", &pattern, &message), -ENOMEM);
	assert_true(allocation_failed());
	assert_null(message);
}

/* Neither those that do not match nor those that did stay in memory. */
static void what_is_found_in_vain_is_freed(void **state)
{
	enum { ROUNDS = 8 };
	const char *const patterns[] = { "nobody", "sought" };
	struct process_list list = { .count = 0 };
	size_t before = 0;

	(void)state;
	executable = "/bin/x";
	for (pid_t pid = 4001; pid < 4004; pid++)
		add(pid)->command = "x ";
	for (int times = 0; times < ROUNDS; times++) {
		/* In the first rounds, the C library keeps some for itself. */
		before = mallinfo2().uordblks;
		for (size_t i = 0; i < 2; i++)
			for (size_t count = 0, failed = 1; failed; count++) {
				allocation_fails_after(count);
				if (process_find(patterns[i], &list, NULL) == 0)
					process_list_clear(&list);
				failed = allocation_failed();
			}
	}
	assert_int_equal(mallinfo2().uordblks, before);
}

/*---- Threads ----*/

static void memory_is_read_through_a_thread_that_lives(void **state)
{
	struct made_up_listing *tasks;
	struct process process;

	(void)state;
	assert_int_equal(process_thread_with_memory(PID), 0);
	tasks = made_up_listing_put("/proc/4000/task");
	add(PID)->state = 'Z';
	made_up_listing_add(tasks, PID);
	assert_int_equal(process_thread_with_memory(PID), 0);
	made_up_listing_add(tasks, 4001);
	add_thread(4001, 'X');
	made_up_listing_add(tasks, 4002); /* it has ended and is gone */
	assert_int_equal(process_thread_with_memory(PID), 0);
	assert_int_equal(process_read(PID, &process), 0);
	assert_true(process_thread_is_zombie(&process));
	assert_true(process_is_zombie(&process));
	made_up_listing_add(tasks, 4003);
	add_thread(4003, 'D')->statm = "0 0 0 0 0 0 0\n"; /* it is about to be a zombie */
	assert_int_equal(process_thread_with_memory(PID), 0);
	processes[process_count - 1].statm = "1060 548 504 109 0 122 0\n";
	made_up_listing_add(tasks, 4004);
	add_thread(4004, 'R');
	assert_int_equal(process_thread_with_memory(PID), 4003);
	assert_true(process_thread_is_zombie(&process));
	assert_false(process_is_zombie(&process));
	process.state = 'X';
	assert_true(process_thread_is_zombie(&process));
	/* Without files, or a listing's end, ljspy knows of none that it has ended. */
	tasks->count -= 2;
	assert_int_equal(process_thread_with_memory(PID), 0);
	tasks->reading_error = ENOMEM;
	assert_int_equal(process_thread_with_memory(PID), PID);
	tasks->error = EMFILE;
	assert_int_equal(process_thread_with_memory(PID), PID);
	process.state = 'S';
	assert_false(process_thread_is_zombie(&process));
	process_clear(&process);
}

static void a_process_that_is_gone_has_no_relatives(void **state)
{
	(void)state;
	add(PID);
	assert_int_equal(process_parent(PID), 1);
	assert_int_equal(process_parent(4001), 0);
	assert_int_equal(process_of_thread(4001), 0);
	assert_int_equal(process_of_thread(PID), 0); /* its status does not tell */
}

/*---- Programs ----*/

static bool is_32bit(const void *auxv, size_t bytes)
{
	struct process process;

	processes[0].auxv = auxv;
	processes[0].auxv_bytes = bytes;
	assert_int_equal(process_read(PID, &process), 0);
	process_clear(&process);
	return process.is_32bit;
}

/* The first pair of a 32-bit program has a type and an address in one word. */
static void a_program_may_have_32_bits(void **state)
{
	const uint64_t wide[] = { 33, 0x7fff12345000 };
	const uint32_t narrow[] = { 32, 0xf7f01550, 33, 0xf7f01000 };

	(void)state;
	add(PID);
	assert_false(is_32bit(NULL, 0));
	assert_false(is_32bit(wide, sizeof(wide)));
	assert_true(is_32bit(narrow, sizeof(narrow)));
	/* A process that has no memory any more has none. */
	assert_false(is_32bit(narrow, 0));
}

static void assert_executable(const char *link, const char *expected, bool deleted)
{
	struct process process;

	executable = link;
	assert_int_equal(process_read(PID, &process), 0);
	if (expected)
		assert_string_equal(process.executable, expected);
	else
		assert_null(process.executable);
	assert_int_equal(process.executable_deleted, deleted);
	process_clear(&process);
	assert_null(process.executable);
}

static void a_program_may_have_been_deleted(void **state)
{
	char longest[PATH_MAX + 2];

	(void)state;
	add(PID);
	assert_executable("/bin/x", "/bin/x", false);
	assert_executable("/bin/x (deleted)", "/bin/x", true);
	assert_executable("x (deleted)", "x", true);
	assert_executable(" (deleted)", " (deleted)", false);
	assert_executable("(deleted)", "(deleted)", false);
	assert_executable("/bin/x (deleted) ", "/bin/x (deleted) ", false);
	assert_executable(NULL, NULL, false);
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	executable = longest;
	longest[PATH_MAX - 1] = '\0';
	assert_executable(longest, longest, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(living_processes_of_users_are_found_in_order, begin),
		cmocka_unit_test_setup(a_process_matches_by_name_program_or_script, begin),
		cmocka_unit_test_setup(a_process_that_is_replaced_while_it_is_read_is_gone, begin),
		cmocka_unit_test_setup(one_that_keeps_its_reader_waiting_is_told_and_the_others_are_found,
				       begin),
		cmocka_unit_test_setup(of_many_that_keep_their_reader_waiting_few_are_awaited_for_long,
				       begin),
		cmocka_unit_test_setup(a_title_that_keeps_its_reader_waiting_is_the_name, begin),
		cmocka_unit_test_setup(who_needs_no_arguments_reads_none, begin),
		cmocka_unit_test_setup(a_list_that_cannot_be_made_is_none, begin),
		cmocka_unit_test_setup(what_is_found_in_vain_is_freed, begin),
		cmocka_unit_test_setup(memory_is_read_through_a_thread_that_lives, begin),
		cmocka_unit_test_setup(a_process_that_is_gone_has_no_relatives, begin),
		cmocka_unit_test_setup(a_program_may_have_32_bits, begin),
		cmocka_unit_test_setup(a_program_may_have_been_deleted, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

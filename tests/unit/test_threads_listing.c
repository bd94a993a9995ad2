/* SPDX-License-Identifier: MIT */
/* Which threads a process has and what they do, by files of /proc that are made up, with a tracer that is. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/linux/threads/threads.h"
#include "src/linux/tracer/tracer_files.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/open_files.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
#include "tests/unit/failing_allocation.h"

INSTEAD_OF(nanosleep);
INSTEAD_OF(opendir);
INSTEAD_OF(readdir);
INSTEAD_OF(rewinddir);
INSTEAD_OF(tracer_seize);
INSTEAD_OF(tracer_seize_late);
INSTEAD_OF(tracer_has_seized);
INSTEAD_OF(tracer_note_end);
INSTEAD_OF(tracer_poll_one);
INSTEAD_OF(tracer_forget);
INSTEAD_OF(tracer_reserve_files);
INSTEAD_OF(tracer_note_opened);
INSTEAD_OF(tracer_release_files);
INSTEAD_OF(tracer_changes);
INSTEAD_OF(tracer_stays_away);

enum { PID = 4000, TIDS = 8, FILES_EACH = 4, FILES_AT_FIRST = 3 * FILES_EACH };
static const uint64_t MS = 1000000, SECOND = 1000000000, begin_ns = UINT64_C(1000000000000);

/*---- The tracer ----*/

static struct {
	struct tracee tracees[TIDS]; /* by number behind PID */
	int errors[TIDS];            /* of tracer_seize() */
	bool is_known[TIDS], is_seized[TIDS];
	unsigned int forgotten;
	bool first_has_gone; /* tracer_poll_one() finds out */
	size_t files_left, files_noted;
	uint64_t changes;
	bool stays_away;
} tracer;
static unsigned int pauses, pauses_enough; /* so many pauses end the errors; 0: none does */
static uint64_t paused_ns;
static bool more_are_listed; /* than those of the tracer: they have ended */

int __wrap_tracer_seize(struct tracer *of, pid_t pid, pid_t tid, struct tracee **ret_tracee)
{
	const int number = tid - PID;

	assert_ptr_equal(of, &tracer);
	assert_int_equal(pid, PID);
	if (more_are_listed && number >= TIDS)
		return -ESRCH;
	assert_in_range(number, 0, TIDS - 1);
	if (tracer.errors[number])
		return tracer.errors[number];
	if (!tracer.is_known[number])
		tracer.tracees[number] = (struct tracee){ .pid = pid, .tid = tid };
	tracer.is_known[number] = true;
	tracer.is_seized[number] = !tracer.stays_away;
	*ret_tracee = &tracer.tracees[number];
	return 0;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
	(void)left;
	paused_ns += (uint64_t)time->tv_sec * SECOND + (uint64_t)time->tv_nsec;
	if (++pauses == pauses_enough)
		memset(tracer.errors, 0, sizeof(tracer.errors));
	return 0;
}

int __wrap_tracer_seize_late(struct tracer *of, pid_t pid, pid_t tid, struct tracee **ret_tracee)
{
	const int number = tid - PID;

	assert_ptr_equal(of, &tracer);
	assert_in_range(number, 0, TIDS - 1);
	assert_false(tracer.is_known[number]);
	tracer.is_known[number] = true;
	tracer.tracees[number] = (struct tracee){ .pid = pid, .tid = tid };
	*ret_tracee = &tracer.tracees[number];
	return 0;
}

bool __wrap_tracer_has_seized(const struct tracee *tracee)
{
	return tracer.is_seized[tracee->tid - PID];
}

void __wrap_tracer_note_end(struct tracer *of, struct tracee *tracee)
{
	assert_ptr_equal(of, &tracer);
	assert_false(tracer.is_seized[tracee->tid - PID]);
	tracee->state = TRACEE_GONE;
	tracer.changes++;
}

void __wrap_tracer_poll_one(struct tracer *of, struct tracee *tracee)
{
	assert_ptr_equal(of, &tracer);
	if (!tracer.first_has_gone || tracee->tid != PID)
		return;
	tracer.first_has_gone = false;
	tracee->state = TRACEE_GONE;
	tracer.changes++;
}

void __wrap_tracer_forget(struct tracer *of, struct tracee *tracee)
{
	assert_ptr_equal(of, &tracer);
	assert_true(tracer.is_known[tracee->tid - PID]);
	tracer.is_known[tracee->tid - PID] = tracer.is_seized[tracee->tid - PID] = false;
	tracer.forgotten++;
}

bool __wrap_tracer_reserve_files(struct tracer *of, size_t count)
{
	assert_ptr_equal(of, &tracer);
	if (count > tracer.files_left)
		return false;
	tracer.files_left -= count;
	return true;
}

void __wrap_tracer_note_opened(struct tracer *of)
{
	assert_ptr_equal(of, &tracer);
	tracer.files_noted++;
}

void __wrap_tracer_release_files(struct tracer *of, size_t count, size_t opened)
{
	assert_ptr_equal(of, &tracer);
	assert_in_range(opened, 0, count);
	tracer.files_left += count;
	tracer.files_noted -= opened;
}

uint64_t __wrap_tracer_changes(const struct tracer *of)
{
	(void)of;
	return tracer.changes;
}

bool __wrap_tracer_stays_away(const struct tracer *of)
{
	(void)of;
	return tracer.stays_away;
}

/*---- /proc/PID/task ----*/

static char folder[] = "/tmp/test_threads_listing.XXXXXX";
static int directory_error;
static unsigned int scans;
static pid_t hidden; /* is not listed */
static pid_t twice;  /* is listed again right behind itself */
static long more;    /* so many ids are listed behind the others */
static int reading_error;
static struct threads *threads;

DIR *__wrap_opendir(const char *path)
{
	assert_string_equal(path, "/proc/4000/task");
	errno = directory_error;
	return directory_error ? NULL : __real_opendir(folder);
}

struct dirent *__wrap_readdir(DIR *directory)
{
	static struct dirent *entry, another;
	static bool is_repeated;

	if (entry && !is_repeated && twice && strtol(entry->d_name, NULL, 10) == twice) {
		is_repeated = true;
		return entry;
	}
	is_repeated = false;
	if (reading_error) {
		errno = reading_error;
		return NULL;
	}
	entry = __real_readdir(directory);
	while (entry && hidden && strtol(entry->d_name, NULL, 10) == hidden)
		entry = __real_readdir(directory);
	if (entry || more == 0)
		return entry;
	snprintf(another.d_name, sizeof(another.d_name), "%ld", PID + TIDS + more--);
	return &another;
}

void __wrap_rewinddir(DIR *directory)
{
	scans++;
	__real_rewinddir(directory);
}

static const char *path_of(int number, const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%d/%s", folder, PID + number, name);
	return path;
}

/* In the same file, if there is one, as it may be open. NULL: there is none. */
static void put_text(int number, const char *name, const char *text)
{
	FILE *file;

	if (!text) {
		unlink(path_of(number, name));
		return;
	}
	file = fopen(path_of(number, name), "w");
	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
	fclose(file);
}

static const char asleep[] = "7 0x1 0x2 0x3 0x4 0x5 0x6 0x7ffc1234 0x401000\n";

static void add(int number)
{
	assert_int_equal(mkdir(path_of(number, ""), 0755), 0);
	put_text(number, "comm", "worker\n");
	put_text(number, "stat", "1 (a) b) S 1\n");
	put_text(number, "schedstat", "100 20 3\n");
	put_text(number, "syscall", asleep);
}

static int unlink_one(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
	(void)status;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void take_away(int number)
{
	assert_int_equal(nftw(path_of(number, ""), unlink_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static int begin(void **state)
{
	(void)state;
	memset(&tracer, 0, sizeof(tracer));
	tracer.files_left = FILES_AT_FIRST;
	directory_error = 0;
	scans = 0;
	hidden = twice = 0;
	more = 0;
	reading_error = 0;
	more_are_listed = false;
	pauses = pauses_enough = 0;
	paused_ns = 0;
	strcpy(strrchr(folder, '.') + 1, "XXXXXX");
	assert_non_null(mkdtemp(folder));
	for (int number = 0; number < 3; number++)
		add(number);
	threads = threads_new((struct tracer *)&tracer, PID);
	return threads ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	threads_free(threads);
	return nftw(folder, unlink_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* The numbers of the threads, as "012". */
static const char *numbers(void)
{
	static char text[TIDS + 1];
	const size_t count = threads_count(threads);

	assert_in_range(count, 0, TIDS);
	for (size_t i = 0; i < count; i++)
		text[i] = (char)('0' + threads_at(threads, i)->tid - PID);
	text[count] = '\0';
	return text;
}

static struct thread *thread_of(int number)
{
	struct thread *thread = threads_find(threads, PID + number);

	assert_non_null(thread);
	return thread;
}

/*---- When threads are looked for ----*/

/* How often the threads are listed for a refresh. */
static unsigned int scans_at(uint64_t ns, uint64_t process_cpu_ns)
{
	scans = 0;
	assert_int_equal(threads_refresh(threads, begin_ns + ns, process_cpu_ns), 0);
	return scans;
}

static void threads_are_listed_at_first_and_each_second(void **state)
{
	(void)state;
	assert_string_equal(numbers(), "");
	assert_int_equal(scans_at(0, 0), 1);
	assert_string_equal(numbers(), "012");
	assert_int_equal(scans_at(1, 0), 0);
	assert_int_equal(scans_at(SECOND - 1, 0), 0);
	assert_int_equal(scans_at(SECOND, 0), 1);
	assert_int_equal(scans_at(2 * SECOND - 1, 0), 0);
	assert_int_equal(scans_at(2 * SECOND, 0), 1);
}

/* One that calls execve() takes over the first one's id. */
static void a_thread_that_changes_its_id_is_awaited(void **state)
{
	(void)state;
	tracer.errors[0] = tracer.errors[1] = tracer.errors[2] = -ESRCH;
	pauses_enough = 3;
	assert_int_equal(threads_refresh(threads, begin_ns, 0), 0);
	assert_string_equal(numbers(), "012");
	assert_int_equal(pauses, 3);
	assert_in_range(paused_ns, 10 * MS, 100 * MS);
}

/* Threads of others that have stopped for a signal would wait with ljspy. */
static void a_thread_that_changes_its_id_later_is_not_awaited_but_looked_for_again(void **state)
{
	(void)state;
	scans_at(0, 0);
	for (int number = 0; number < 3; number++) {
		tracer.tracees[number].state = TRACEE_GONE;
		tracer.errors[number] = -ESRCH;
	}
	tracer.changes++;
	for (uint64_t ns = 1; ns < 3; ns++) {
		assert_int_equal(threads_refresh(threads, begin_ns + ns, 0), -EBUSY);
		assert_int_equal(threads_count(threads), 0);
	}
	assert_int_equal(pauses, 0);
	tracer.errors[0] = 0;
	assert_int_equal(scans_at(3, 0), 1);
	assert_string_equal(numbers(), "0");
}

static void threads_that_have_ended_are_not_awaited(void **state)
{
	(void)state;
	for (int number = 0; number < 3; number++) {
		tracer.errors[number] = -ESRCH;
		put_text(number, "stat", number ? NULL : "1 (a) b) Z 1\n");
	}
	assert_int_equal(threads_refresh(threads, begin_ns, 0), -ESRCH);
	assert_int_equal(pauses, 0);
	/* One that never comes is awaited for a while, and has not ended. */
	put_text(1, "stat", "1 (a) b) S 1\n");
	assert_int_equal(threads_refresh(threads, begin_ns, 0), -EBUSY);
	assert_in_range(paused_ns, 50 * MS, SECOND / 2);
	/* While others are there, nobody is. */
	pauses = 0;
	tracer.errors[0] = 0;
	assert_int_equal(threads_refresh(threads, begin_ns, 0), 0);
	assert_int_equal(pauses, 0);
}

static void a_thread_is_found_by_its_id(void **state)
{
	(void)state;
	assert_null(threads_find(threads, PID));
	scans_at(0, 0);
	add(4);
	scans_at(SECOND, 0);
	assert_string_equal(numbers(), "0124");
	for (int number = 0; number <= 5; number++) {
		const struct thread *thread = threads_find(threads, PID + number);

		assert_int_equal(thread ? thread->tid : 0, number == 3 || number == 5 ? 0 : PID + number);
	}
	assert_null(threads_find(threads, PID - 1));
}

static void another_number_of_threads_is_noticed_at_once(void **state)
{
	struct stat status;
	uint64_t changes;

	(void)state;
	if (stat(folder, &status) || status.st_nlink != 5) {
		print_message("skipped: the filesystem does not count folders\n");
		skip();
	}
	scans_at(0, 0);
	changes = threads_changes(threads);
	add(3);
	assert_int_equal(scans_at(1, 0), 1);
	assert_string_equal(numbers(), "0123");
	assert_int_not_equal(threads_changes(threads), changes);
	assert_int_equal(scans_at(2, 0), 0);
	changes = threads_changes(threads);
	take_away(1);
	assert_int_equal(scans_at(3, 0), 1);
	assert_string_equal(numbers(), "023");
	assert_int_not_equal(threads_changes(threads), changes);
	/* That was no reason to be late with the next one that is due. */
	assert_int_equal(scans_at(SECOND - 1, 0), 0);
	changes = threads_changes(threads);
	assert_int_equal(scans_at(SECOND, 0), 1);
	assert_int_equal(threads_changes(threads), changes);
}

static void time_of_unknown_threads_is_a_reason_to_look(void **state)
{
	(void)state;
	scans_at(0, 0);
	assert_int_equal(threads_unaccounted_ns(threads, 5 * MS), 5 * MS - 300);
	assert_int_equal(threads_unaccounted_ns(threads, 300), 0);
	assert_int_equal(threads_unaccounted_ns(threads, 0), 0);
	assert_int_equal(scans_at(1, 20 * MS + 300), 0);
	assert_int_equal(scans_at(2, 20 * MS + 301), 1);
	/* So much is known now, by threads that came and went. */
	assert_int_equal(scans_at(3, 40 * MS + 301), 0);
	assert_int_equal(scans_at(4, 40 * MS + 302), 1);
}

static void a_death_that_the_tracer_tells_is_a_reason_to_look(void **state)
{
	(void)state;
	scans_at(0, 0);
	tracer.changes++;
	assert_int_equal(scans_at(1, 0), 0); /* another process's */
	tracer.tracees[1].state = TRACEE_GONE;
	assert_int_equal(scans_at(2, 0), 0);
	tracer.changes++;
	assert_false(threads_are_gone(threads));
	/* It is listed until it is waited for, and cannot be seized. */
	tracer.errors[1] = -ESRCH;
	assert_int_equal(scans_at(3, 0), 1);
	assert_int_equal(tracer.forgotten, 1);
	assert_string_equal(numbers(), "02");
	assert_int_equal(scans_at(4, 0), 0);
}

static void all_threads_may_have_ended(void **state)
{
	(void)state;
	scans_at(0, 0);
	for (int number = 0; number < 3; number++) {
		assert_false(threads_are_gone(threads));
		tracer.tracees[number].state = TRACEE_GONE;
	}
	assert_true(threads_are_gone(threads));
	tracer.changes++;
	for (int number = 0; number < 3; number++)
		take_away(number);
	scans = 0;
	assert_int_equal(threads_refresh(threads, begin_ns + 1, 0), -ESRCH);
	assert_in_range(scans, 2, 100); /* others may have come meanwhile */
	assert_int_equal(tracer.forgotten, 3);
	assert_int_equal(tracer.files_left, FILES_AT_FIRST);
	add(5);
	assert_int_equal(scans_at(2, 0), 1);
	assert_string_equal(numbers(), "5");
}

static void what_keeps_ljspy_from_threads_is_told(void **state)
{
	(void)state;
	for (int number = 0; number < 3; number++)
		tracer.errors[number] = -EPERM;
	assert_int_equal(threads_refresh(threads, begin_ns, 0), -EPERM);
	/* One that has ended is no reason, and one that can be seized is enough. */
	tracer.errors[2] = -ESRCH;
	assert_int_equal(threads_refresh(threads, begin_ns, 0), -EPERM);
	tracer.errors[1] = 0;
	assert_int_equal(threads_refresh(threads, begin_ns, 0), 0);
	assert_string_equal(numbers(), "1");
	threads_free(threads);
	for (int number = 0; number < 3; number++)
		tracer.errors[number] = -ESRCH;
	threads = threads_new((struct tracer *)&tracer, PID);
	assert_int_equal(threads_refresh(threads, begin_ns, 0), -EBUSY);
	threads_free(threads);
	directory_error = EACCES;
	threads = threads_new((struct tracer *)&tracer, PID);
	assert_int_equal(threads_refresh(threads, begin_ns, 0), -EACCES);
	threads_free(threads);
	directory_error = ENOENT;
	threads = threads_new((struct tracer *)&tracer, PID);
	assert_int_equal(threads_refresh(threads, begin_ns, 0), -ESRCH);
	threads_free(threads);
	directory_error = 0;
	reading_error = EPERM;
	threads = threads_new((struct tracer *)&tracer, PID);
	assert_int_equal(threads_refresh(threads, begin_ns, 0), -EPERM);
}

static void where_memory_is_short_known_threads_stay(void **state)
{
	(void)state;
	allocation_fails_after(0);
	assert_null(threads_new((struct tracer *)&tracer, PID));
	assert_true(allocation_failed());
	allocation_fails_after(0);
	assert_int_equal(threads_refresh(threads, begin_ns, 0), -ENOMEM);
	assert_true(allocation_failed());
	assert_int_equal(threads_refresh(threads, begin_ns, 0), 0);
	assert_string_equal(numbers(), "012");
	for (size_t count = 0; count < 3; count++) {
		add(3 + (int)count);
		allocation_fails_after(count);
		threads_refresh(threads, begin_ns + (count + 1) * SECOND, 0);
		assert_true(allocation_failed());
		assert_memory_equal(numbers(), "012", 3);
	}
	assert_int_equal(threads_refresh(threads, begin_ns + 9 * SECOND, 0), 0);
	assert_string_equal(numbers(), "012345");
}

/*---- Threads that are not seized before they are to be held ----*/

/* Which threads are seized, as "01". */
static const char *seized(void)
{
	static char text[TIDS + 1];
	size_t count = 0;

	for (int number = 0; number < TIDS; number++)
		if (tracer.is_seized[number])
			text[count++] = (char)('0' + number);
	text[count] = '\0';
	return text;
}

static void one_thread_is_seized_at_once(void **state)
{
	(void)state;
	threads_seize_late(threads);
	for (int number = 0; number < 3; number++)
		tracer.errors[number] = -EPERM;
	assert_int_equal(threads_refresh(threads, begin_ns, 0), -EPERM);
	tracer.errors[0] = 0;
	scans_at(SECOND, 0);
	assert_string_equal(numbers(), "012");
	assert_string_equal(seized(), "0");
	/* Where the first thread has ended, it is another one. */
	threads_free(threads);
	take_away(0);
	memset(&tracer, 0, sizeof(tracer));
	threads = threads_new((struct tracer *)&tracer, PID);
	threads_seize_late(threads);
	scans_at(0, 0);
	assert_string_equal(numbers(), "12");
	assert_string_equal(seized(), "1");
}

/* Another one may have its id by then, and there are as many as before. */
static void the_end_of_a_thread_that_is_not_seized_is_noticed_when_it_is_measured(void **state)
{
	uint64_t used;

	(void)state;
	threads_seize_late(threads);
	scans_at(0, 0);
	for (int number = 0; number < 2; number++)
		put_text(number, "schedstat", "");
	/* The kernel will report the end of one that is seized. */
	assert_int_equal(thread_measure(threads, thread_of(0), &used), -ESRCH);
	assert_int_equal(scans_at(1, 0), 0);
	assert_int_equal(thread_measure(threads, thread_of(1), &used), -ESRCH);
	put_text(1, "schedstat", "7 0 1\n");
	assert_int_equal(scans_at(2, 0), 1);
	assert_int_equal(tracer.forgotten, 1);
	assert_string_equal(numbers(), "012");
	assert_int_equal(thread_measure(threads, thread_of(1), &used), 0);
	assert_int_equal(used, 7);
}

static void a_thread_that_goes_unseen_may_have_called_execve(void **state)
{
	(void)state;
	threads_seize_late(threads);
	scans_at(0, 0);
	take_away(2);
	tracer.first_has_gone = true;
	scans_at(SECOND, 0);
	assert_false(tracer.first_has_gone); /* it was asked for */
	assert_string_equal(numbers(), "01");
	assert_string_equal(seized(), "0");
	assert_true(thread_of(0)->tracee->execed);
	assert_false(thread_of(1)->tracee->execed);
	/* Others just end. */
	thread_of(0)->tracee->execed = false;
	take_away(1);
	scans_at(2 * SECOND, 0);
	assert_string_equal(numbers(), "0");
	assert_false(thread_of(0)->tracee->execed);
}

static void a_first_thread_that_comes_back_has_called_execve(void **state)
{
	(void)state;
	threads_seize_late(threads);
	tracer.errors[0] = -ESRCH;
	scans_at(0, 0);
	assert_string_equal(numbers(), "12");
	scans_at(SECOND, 0);
	assert_string_equal(numbers(), "12");
	tracer.errors[0] = 0;
	take_away(1);
	take_away(2);
	scans_at(2 * SECOND, 0);
	assert_string_equal(numbers(), "0");
	assert_true(thread_of(0)->tracee->execed);
	assert_true(thread_of(0)->tracee->took_id);
}

/* What it used under its other id was told there. */
static void a_thread_that_takes_an_id_begins_anew(void **state)
{
	uint64_t used, serial, unaccounted_ns;

	(void)state;
	put_text(0, "schedstat", "5 0 1\n");
	put_text(1, "schedstat", "30 0 1\n");
	scans_at(0, 0);
	take_away(1);
	scans_at(SECOND, 0);
	serial = thread_of(0)->serial;
	unaccounted_ns = threads_unaccounted_ns(threads, SECOND);
	thread_of(0)->calls.seen_count = 3;
	put_text(0, "schedstat", "32 7 9\n");
	thread_begin_anew(threads, thread_of(0));
	assert_int_not_equal(thread_of(0)->serial, serial);
	assert_int_equal(thread_of(0)->calls.seen_count, 0);
	assert_int_equal(thread_of(0)->cpu_ns, 32);
	assert_int_equal(threads_unaccounted_ns(threads, SECOND), unaccounted_ns);
	put_text(0, "schedstat", "35 7 9\n");
	assert_int_equal(thread_measure(threads, thread_of(0), &used), 0);
	assert_int_equal(used, 3);
	assert_int_equal(threads_unaccounted_ns(threads, SECOND), unaccounted_ns - 3);
}

static void threads_that_are_not_seized_need_not_be_waited_for(void **state)
{
	(void)state;
	threads_seize_late(threads);
	scans_at(0, 0);
	assert_false(threads_are_gone(threads));
	tracer.tracees[0].state = TRACEE_GONE;
	assert_true(threads_are_gone(threads));
	/* They are forgotten; the kernel may report of those that are seized. */
	tracer.tracees[0].state = TRACEE_RUNNING;
	threads_free(threads);
	threads = NULL;
	for (int number = 0; number < 3; number++)
		assert_int_equal(tracer.is_known[number], number == 0);
}

/*---- Which threads ----*/

/* A listing may miss one while others come and go. */
static void a_thread_that_is_not_listed_may_live(void **state)
{
	uint64_t changes;

	(void)state;
	scans_at(0, 0);
	hidden = PID + 1;
	assert_int_equal(scans_at(SECOND, 0), 1);
	assert_string_equal(numbers(), "012");
	assert_int_equal(tracer.forgotten, 0);
	/* Without files it is gone; and another one that comes just then does not make up for it. */
	hidden = 0;
	changes = threads_changes(threads);
	take_away(1);
	add(7);
	assert_int_equal(scans_at(2 * SECOND, 0), 1);
	assert_string_equal(numbers(), "027");
	assert_int_not_equal(threads_changes(threads), changes);
	assert_int_equal(tracer.forgotten, 1);
	assert_false(tracer.is_known[1]);
}

/* As one may be while others come and go. */
static void a_thread_that_is_listed_twice_is_one(void **state)
{
	(void)state;
	for (twice = PID; twice < PID + 3; twice++) {
		scans_at((uint64_t)(twice - PID) * SECOND, 0);
		assert_string_equal(numbers(), "012");
	}
	assert_int_equal(tracer.forgotten, 0);
}

/* The ids behind those of the three threads are of none. */
static void no_more_ids_than_a_limit_are_listed(void **state)
{
	(void)state;
	more = THREADS_MAX;
	more_are_listed = true;
	scans_at(0, 0);
	assert_int_equal(more, 3);
	assert_string_equal(numbers(), "012");
}

/* The first thread ends without a report only if another one has called execve(). */
static void a_program_that_a_stranger_has_begun_is_noticed(void **state)
{
	(void)state;
	scans_at(0, 0);
	assert_false(thread_of(0)->tracee->execed);
	tracer.tracees[0].state = TRACEE_GONE;
	tracer.changes++;
	assert_int_equal(scans_at(1, 0), 1);
	assert_int_equal(scans_at(SECOND, 0), 1);
	assert_string_equal(numbers(), "012");
	assert_true(thread_of(0)->tracee->execed);
	/* If its end is known, that was no execve(). */
	tracer.tracees[0].state = TRACEE_GONE;
	tracer.tracees[0].execed = false;
	tracer.tracees[0].exit_known = true;
	tracer.changes++;
	assert_int_equal(scans_at(SECOND + 1, 0), 1);
	assert_int_equal(scans_at(2 * SECOND, 0), 1);
	assert_string_equal(numbers(), "012");
	assert_false(thread_of(0)->tracee->execed);
	/* Nor is it one if another than the first has gone. */
	tracer.tracees[1].state = TRACEE_GONE;
	tracer.changes++;
	scans_at(2 * SECOND + 1, 0);
	scans_at(3 * SECOND, 0);
	assert_string_equal(numbers(), "012");
	assert_false(thread_of(0)->tracee->execed);
	assert_false(thread_of(1)->tracee->execed);
}

/* Nothing is reported of threads that are left alone: their files tell. */
static void from_afar_the_files_tell_who_has_ended(void **state)
{
	(void)state;
	tracer.stays_away = true;
	put_text(2, "stat", "1 (a) X 1\n");
	scans_at(0, 0);
	assert_string_equal(numbers(), "01");
	assert_true(threads_are_gone(threads));
	put_text(0, "stat", "1 (a) Z 1\n");
	put_text(2, "stat", "1 (a) D 1\n");
	scans_at(SECOND, 0);
	assert_string_equal(numbers(), "12");
	assert_int_equal(tracer.forgotten, 1);
	put_text(1, "stat", NULL);
	put_text(0, "stat", "1 (a) S 1\n");
	scans_at(2 * SECOND, 0);
	assert_string_equal(numbers(), "02");
	assert_false(thread_of(0)->tracee->execed);
	for (int number = 0; number < 3; number++)
		put_text(number, "stat", "1 (a) Z 1\n");
	assert_int_equal(threads_refresh(threads, begin_ns + 3 * SECOND, 0), -ESRCH);
	assert_string_equal(numbers(), "");
}

static void names_are_read_again_each_second(void **state)
{
	struct thread *thread;

	(void)state;
	put_text(1, "comm", "a name\n\n");
	put_text(2, "comm", "of many more letters\n");
	scans_at(0, 0);
	/* At once it is not read again. */
	put_text(0, "comm", "new\n");
	thread_refresh_name(threads, thread_of(0));
	assert_string_equal(thread_of(0)->name, "worker");
	assert_string_equal(thread_of(1)->name, "a name\n");
	assert_string_equal(thread_of(2)->name, "of many more le");
	thread = thread_of(0);
	thread_refresh_name(threads, thread);
	put_text(0, "comm", "other");
	thread_refresh_name(threads, thread);
	assert_string_equal(thread->name, "worker");
	scans_at(SECOND, 0);
	thread_refresh_name(threads, thread);
	assert_string_equal(thread->name, "other");
	put_text(0, "comm", "third\n");
	thread_refresh_name(threads, thread);
	assert_string_equal(thread->name, "other");
	thread_read_name(threads, thread);
	assert_string_equal(thread->name, "third");
	put_text(0, "comm", NULL);
	thread_read_name(threads, thread);
	assert_string_equal(thread->name, "third");
	put_text(0, "comm", "\n");
	thread_read_name(threads, thread);
	assert_string_equal(thread->name, "");
}

static void the_name_of_a_new_thread_is_as_old_as_its_listing(void **state)
{
	(void)state;
	scans_at(0, 0);
	add(3);
	scans_at(SECOND, 0);
	put_text(3, "comm", "other\n");
	thread_refresh_name(threads, thread_of(3));
	assert_string_equal(thread_of(3)->name, "worker");
	scans_at(2 * SECOND, 0);
	thread_refresh_name(threads, thread_of(3));
	assert_string_equal(thread_of(3)->name, "other");
}

/*---- What they do ----*/

static void time_counts_from_the_first_look_or_a_threads_start(void **state)
{
	uint64_t used, runs;

	(void)state;
	scans_at(0, 0);
	assert_int_equal(thread_measure(threads, thread_of(0), &used), 0);
	assert_int_equal(used, 0);
	put_text(0, "schedstat", "150 25 4\n");
	assert_int_equal(thread_measure(threads, thread_of(0), &used), 0);
	assert_int_equal(used, 50);
	assert_int_equal(thread_of(0)->cpu_ns, 150);
	assert_int_equal(thread_of(0)->waited_ns, 25);
	assert_int_equal(thread_of(0)->runs, 4);
	assert_int_equal(threads_unaccounted_ns(threads, 1000), 650);
	/* It never runs backwards. */
	put_text(0, "schedstat", "140 25 5\n");
	assert_int_equal(thread_measure(threads, thread_of(0), &used), 0);
	assert_int_equal(used, 0);
	assert_int_equal(threads_unaccounted_ns(threads, 1000), 660);
	add(3);
	scans_at(SECOND, 0);
	assert_int_equal(thread_measure(threads, thread_of(3), &used), 0);
	assert_int_equal(used, 100);
	assert_int_equal(threads_unaccounted_ns(threads, 1000), 560);
	put_text(3, "schedstat", "150 25 9\n");
	assert_int_equal(thread_count_runs(threads, thread_of(3), &runs), 0);
	assert_int_equal(runs, 9);
	assert_int_equal(thread_of(3)->runs, 3);
	put_text(3, "schedstat", "");
	used = runs = 77;
	assert_int_equal(thread_measure(threads, thread_of(3), &used), -ESRCH);
	assert_int_equal(thread_count_runs(threads, thread_of(3), &runs), -ESRCH);
	assert_int_equal(used, 77);
	assert_int_equal(runs, 77);
}

/* Those of a thread that has ended are closed, and all at the end. */
static void no_file_stays_open(void **state)
{
	const unsigned int without = open_files_count();
	struct switches switches;
	struct thread_call call;
	enum thread_state found;

	(void)state;
	scans_at(0, 0);
	for (int number = 0; number < 3; number++) {
		put_text(number, "sched", "nr_switches : 20\nnr_voluntary_switches : 9\n");
		assert_int_equal(thread_read_state(threads, thread_of(number), &found, &call), 0);
		thread_count_switches(threads, thread_of(number), &switches);
	}
	assert_int_equal(open_files_count(), without + 3 * FILES_EACH);
	take_away(1);
	scans_at(SECOND, 0);
	assert_int_equal(open_files_count(), without + 2 * FILES_EACH);
	threads_free(threads);
	threads_free(NULL);
	/* The folder was open before. */
	assert_int_equal(open_files_count(), without - 1);
	threads = NULL;
}

/* Of the threads for which there are enough files, what is read often is kept open. */
static void files_are_kept_open_as_far_as_there_are_some(void **state)
{
	uint64_t used;

	(void)state;
	add(3);
	scans_at(0, 0);
	assert_int_equal(tracer.files_left, 0);
	for (int number = 0; number < 4; number++) {
		assert_int_equal(thread_measure(threads, thread_of(number), &used), 0);
		/* Another file of that name. */
		put_text(number, "schedstat", NULL);
		put_text(number, "schedstat", "300 20 3\n");
		assert_int_equal(thread_measure(threads, thread_of(number), &used), 0);
		assert_int_equal(used, number < 3 ? 0 : 200);
	}
	assert_int_equal(tracer.files_noted, 3);
	take_away(1);
	scans_at(SECOND, 0);
	assert_int_equal(tracer.files_left, FILES_EACH);
	threads_free(threads);
	assert_int_equal(tracer.files_left, FILES_AT_FIRST);
	assert_int_equal(tracer.files_noted, 0);
	assert_int_equal(tracer.forgotten, 1); /* the others stay seized */
	threads = NULL;
}

static enum thread_state state_of_0(struct thread_call *ret_call)
{
	enum thread_state state = THREAD_IDLE;

	memset(ret_call, 0xff, sizeof(*ret_call));
	assert_int_equal(thread_read_state(threads, thread_of(0), &state, ret_call), 0);
	assert_int_equal(thread_is_running(threads, thread_of(0)), state == THREAD_RUNNING);
	return state;
}

static void a_sleeping_thread_tells_its_call(void **state)
{
	struct thread_call call;
	enum thread_state found;

	(void)state;
	scans_at(0, 0);
	assert_int_equal(state_of_0(&call), THREAD_BLOCKED);
	assert_true(call.known);
	assert_int_equal(call.number, 7);
	for (uint64_t i = 0; i < 6; i++)
		assert_int_equal(call.arguments[i], i + 1);
	assert_int_equal(call.sp, 0x7ffc1234);
	assert_int_equal(call.pc, 0x401000);
	put_text(0, "syscall", "-1 0x7ffc1234 0x401000\n");
	assert_int_equal(state_of_0(&call), THREAD_BLOCKED);
	assert_true(call.known);
	assert_int_equal(call.number, -1);
	assert_int_equal(call.sp, 0x7ffc1234);
	assert_int_equal(call.pc, 0x401000);
	put_text(0, "stat", "1 (a) D 1\n");
	assert_int_equal(state_of_0(&call), THREAD_UNINTERRUPTIBLE);
	assert_true(call.known);
	put_text(0, "syscall", "running\n");
	assert_int_equal(state_of_0(&call), THREAD_RUNNING);
	assert_false(call.known);
	assert_int_equal(thread_read_state(threads, thread_of(0), &found, NULL), 0);
	assert_int_equal(found, THREAD_RUNNING);
}

static void what_is_no_call_is_unknown(void **state)
{
	static const char *const texts[] = { "?\n", "7 0x1 0x2 0x3 0x4 0x5 0x6 0x7\n",
					     "7 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8 0x9\n", "-1 0x1 0x2",
					     "-1 0x1 0x2 0x3\n" };
	struct thread_call call;

	(void)state;
	scans_at(0, 0);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		put_text(0, "syscall", texts[i]);
		put_text(0, "stat", "1 (a) S 1\n");
		if (i == 1)
			continue; /* the newline stands where a number does: the last is 0 */
		assert_int_equal(state_of_0(&call), THREAD_BLOCKED);
		assert_false(call.known);
		put_text(0, "stat", "1 (a) R 1\n");
		assert_int_equal(state_of_0(&call), THREAD_RUNNING);
	}
}

static void without_calls_states_are_letters(void **state)
{
	static const struct {
		char letter;
		enum tracee_state tracee;
		enum thread_state state;
	} letters[] = {
		{ 'R', TRACEE_RUNNING, THREAD_RUNNING },         { 'S', TRACEE_RUNNING, THREAD_BLOCKED },
		{ 'D', TRACEE_RUNNING, THREAD_UNINTERRUPTIBLE }, { 'T', TRACEE_RUNNING, THREAD_BLOCKED },
		{ 't', TRACEE_RUNNING, THREAD_RUNNING }, /* a signal is being passed on */
		{ 't', TRACEE_JOB_STOPPED, THREAD_BLOCKED },     { 'I', TRACEE_RUNNING, THREAD_BLOCKED }
	};
	struct thread_call call;
	enum thread_state found = THREAD_IDLE;

	(void)state;
	scans_at(0, 0);
	put_text(0, "syscall", "");
	assert_int_equal(thread_read_state(threads, thread_of(0), &found, &call), -ESRCH);
	take_away(0);
	assert_int_equal(mkdir(path_of(0, ""), 0755), 0);
	threads_free(threads);
	tracer.is_known[0] = false;
	tracer.files_left = 0;
	put_text(0, "stat", "1 (a) S 1\n");
	threads = threads_new((struct tracer *)&tracer, PID);
	assert_int_equal(threads_refresh(threads, begin_ns, 0), 0);
	/* A folder in the place of the file cannot be read. */
	assert_int_equal(mkdir(path_of(0, "syscall"), 0755), 0);
	for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++) {
		char text[] = "1 (a) ? 1\n";

		*strchr(text, '?') = letters[i].letter;
		put_text(0, "stat", text);
		tracer.tracees[0].state = letters[i].tracee;
		assert_int_equal(state_of_0(&call), letters[i].state);
		assert_false(call.known);
		assert_int_equal(thread_of(0)->is_job_stopped,
				 letters[i].letter == 'T' || letters[i].tracee == TRACEE_JOB_STOPPED);
	}
	for (size_t i = 0; i < 3; i++) {
		put_text(0, "stat", (const char *const[]){ "1 (a) Z 1\n", "1 (a) X 1\n", "1 (a)\n" }[i]);
		found = THREAD_IDLE;
		assert_int_equal(thread_read_state(threads, thread_of(0), &found, &call), -ESRCH);
		assert_int_equal(found, THREAD_IDLE);
		assert_false(thread_is_running(threads, thread_of(0)));
	}
}

static void calls_are_the_same_if_all_of_them_is(void **state)
{
	const struct thread_call call = {
		.known = true, .number = 1, .arguments = { 1, 2, 3, 4, 5, 6 }, .sp = 7, .pc = 8
	};
	struct thread_call other = call;

	(void)state;
	assert_true(thread_call_is_same(&call, &other));
	other.known = false;
	assert_false(thread_call_is_same(&call, &other));
	other = call;
	other.number++;
	assert_false(thread_call_is_same(&call, &other));
	other = call;
	other.sp++;
	assert_false(thread_call_is_same(&call, &other));
	other = call;
	other.pc++;
	assert_false(thread_call_is_same(&call, &other));
	for (size_t i = 0; i < 6; i++) {
		other = call;
		other.arguments[i]++;
		assert_false(thread_call_is_same(&call, &other));
	}
}

/* Not every kernel has sched. */
static void switches_are_counted_by_sched_or_status(void **state)
{
	struct switches switches;
	uint64_t count = 77;

	(void)state;
	scans_at(0, 0);
	assert_int_equal(thread_count_switches(threads, thread_of(0), &switches), -ESRCH);
	assert_int_equal(thread_count_sleeps(threads, thread_of(0), &count), -ESRCH);
	assert_int_equal(count, 77);
	put_text(0, "status", "Name:\ta\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t8\n");
	assert_int_equal(thread_count_switches(threads, thread_of(0), &switches), 0);
	assert_int_equal(switches.count, 13);
	assert_int_equal(switches.sleeps, 5);
	assert_int_equal(thread_of(0)->sleeps, 5);
	assert_int_equal(thread_count_sleeps(threads, thread_of(0), &count), 0);
	assert_int_equal(count, 5);
	put_text(0, "sched",
		 "a (1, #threads: 1)\nse.exec_start : 12.5\nnr_switches : 20\n"
		 "nr_voluntary_switches : 9\nnr_involuntary_switches : 11\n");
	assert_int_equal(thread_count_switches(threads, thread_of(0), &switches), 0);
	assert_int_equal(switches.count, 20);
	assert_int_equal(thread_of(0)->sleeps, 9);
	put_text(0, "sched", "?\n");
	put_text(0, "status", "Name:\ta\n");
	assert_int_equal(thread_count_switches(threads, thread_of(0), &switches), -ESRCH);
	assert_int_equal(thread_count_sleeps(threads, thread_of(0), &count), -ESRCH);
	assert_int_equal(thread_of(0)->sleeps, 9);
	assert_int_equal(count, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(threads_are_listed_at_first_and_each_second, begin, end),
		cmocka_unit_test_setup_teardown(a_thread_is_found_by_its_id, begin, end),
		cmocka_unit_test_setup_teardown(another_number_of_threads_is_noticed_at_once, begin, end),
		cmocka_unit_test_setup_teardown(time_of_unknown_threads_is_a_reason_to_look, begin, end),
		cmocka_unit_test_setup_teardown(a_death_that_the_tracer_tells_is_a_reason_to_look, begin,
						end),
		cmocka_unit_test_setup_teardown(all_threads_may_have_ended, begin, end),
		cmocka_unit_test_setup_teardown(what_keeps_ljspy_from_threads_is_told, begin, end),
		cmocka_unit_test_setup_teardown(where_memory_is_short_known_threads_stay, begin, end),
		cmocka_unit_test_setup_teardown(a_thread_that_changes_its_id_is_awaited, begin, end),
		cmocka_unit_test_setup_teardown(
			a_thread_that_changes_its_id_later_is_not_awaited_but_looked_for_again, begin, end),
		cmocka_unit_test_setup_teardown(threads_that_have_ended_are_not_awaited, begin, end),
		cmocka_unit_test_setup_teardown(one_thread_is_seized_at_once, begin, end),
		cmocka_unit_test_setup_teardown(
			the_end_of_a_thread_that_is_not_seized_is_noticed_when_it_is_measured, begin, end),
		cmocka_unit_test_setup_teardown(a_thread_that_goes_unseen_may_have_called_execve, begin, end),
		cmocka_unit_test_setup_teardown(a_first_thread_that_comes_back_has_called_execve, begin, end),
		cmocka_unit_test_setup_teardown(a_thread_that_takes_an_id_begins_anew, begin, end),
		cmocka_unit_test_setup_teardown(threads_that_are_not_seized_need_not_be_waited_for, begin,
						end),
		cmocka_unit_test_setup_teardown(a_thread_that_is_not_listed_may_live, begin, end),
		cmocka_unit_test_setup_teardown(a_program_that_a_stranger_has_begun_is_noticed, begin, end),
		cmocka_unit_test_setup_teardown(from_afar_the_files_tell_who_has_ended, begin, end),
		cmocka_unit_test_setup_teardown(names_are_read_again_each_second, begin, end),
		cmocka_unit_test_setup_teardown(time_counts_from_the_first_look_or_a_threads_start, begin,
						end),
		cmocka_unit_test_setup_teardown(files_are_kept_open_as_far_as_there_are_some, begin, end),
		cmocka_unit_test_setup_teardown(the_name_of_a_new_thread_is_as_old_as_its_listing, begin,
						end),
		cmocka_unit_test_setup_teardown(a_thread_that_is_listed_twice_is_one, begin, end),
		cmocka_unit_test_setup_teardown(no_more_ids_than_a_limit_are_listed, begin, end),
		cmocka_unit_test_setup_teardown(no_file_stays_open, begin, end),
		cmocka_unit_test_setup_teardown(a_sleeping_thread_tells_its_call, begin, end),
		cmocka_unit_test_setup_teardown(what_is_no_call_is_unknown, begin, end),
		cmocka_unit_test_setup_teardown(without_calls_states_are_letters, begin, end),
		cmocka_unit_test_setup_teardown(calls_are_the_same_if_all_of_them_is, begin, end),
		cmocka_unit_test_setup_teardown(switches_are_counted_by_sched_or_status, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

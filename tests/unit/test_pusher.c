/* SPDX-License-Identifier: MIT */
/* Pushing goes on where processes, files and memory are short. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/push/backoff.h"
#include "src/push/pusher.h"
#include "src/push/sending.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/told.h"

/* Of calls in this process and those before it: the first makes the one that keeps pushing going. */
static unsigned int forks, forks_failing, beginnings_failing, kills;

INSTEAD_OF(fork);
pid_t __wrap_fork(void)
{
	if (forks++ > kills && forks_failing > 0) {
		forks_failing--;
		errno = EAGAIN;
		return -1;
	}
	return __real_fork();
}

INSTEAD_OF(sending_new);
struct sending *__wrap_sending_new(const struct sending_options *options)
{
	if (forks <= 1 + kills)
		raise(SIGKILL);
	return forks <= 1 + kills + beginnings_failing ? NULL : __real_sending_new(options);
}

/* Is each pause told, and none made? */
static bool pauses_told;

INSTEAD_OF(backoff_ns);
uint64_t __wrap_backoff_ns(unsigned int failures, unsigned int retry_after_s, uint32_t random)
{
	if (!pauses_told)
		return __real_backoff_ns(failures, retry_after_s, random);
	fprintf(stderr, "[%u in a row]", failures);
	return 0;
}

/* 0, or the errno with which recordings cannot be opened. */
static int opening_error;

INSTEAD_OF(fdopen);
FILE *__wrap_fdopen(int fd, const char *mode)
{
	errno = opening_error;
	return opening_error ? NULL : __real_fdopen(fd, mode);
}

/* Push what there is, which is nothing, and end; what is said meanwhile is told. Was all pushed? */
static bool push_all(void)
{
	char directory[] = "/tmp/ljspy-test-XXXXXX";
	struct pusher_options options = { .url = "http://127.0.0.1:1", .path = directory };
	struct pusher pusher;
	bool good;

	forks = 0;
	assert_non_null(mkdtemp(directory));
	told_begin();
	assert_int_equal(pusher_start(&options, &pusher), 0);
	good = pusher_end(&pusher);
	told_end();
	/* Nothing is left where nothing was recorded. */
	assert_int_equal(rmdir(directory), 0);
	return good;
}

static void test_a_process_that_cannot_be_had_is_tried_again(void **state)
{
	(void)state;
	forks_failing = 1;
	assert_true(push_all());
	forks_failing = 0;
	assert_int_equal(told_times("no process to push with (Resource temporarily unavailable)"), 1);
	assert_int_equal(told_times("Pushed 0 profiles"), 1);
}

static void test_a_process_that_cannot_begin_has_a_successor(void **state)
{
	(void)state;
	beginnings_failing = 1;
	assert_true(push_all());
	beginnings_failing = 0;
	assert_int_equal(told_times("could not begin (Cannot allocate memory); another one tries again"), 1);
	assert_int_equal(told_times("Pushed 0 profiles"), 1);
}

static void test_a_loss_of_another_kind_is_told_too(void **state)
{
	(void)state;
	pauses_told = true;
	kills = 2;
	forks_failing = 3;
	assert_true(push_all());
	pauses_told = false;
	kills = forks_failing = 0;
	assert_int_equal(told_times("was killed; another one goes on"), 1);
	assert_int_equal(told_times("no process to push with"), 1);
	assert_int_equal(told_times("Pushed 0 profiles"), 1);
	/* Who was killed has run: the losses before it do not count. */
	assert_int_equal(told_times("[1 in a row]"), 2);
	assert_int_equal(told_times("[2 in a row]"), 1);
	assert_int_equal(told_times("[4 in a row]"), 1);
}

/* The directory goes before pushing from it begins. */
static void test_why_it_cannot_begin_is_told(void **state)
{
	struct pusher_options options = { .url = "http://127.0.0.1:1", .path = "/nonexistent" };
	struct pusher pusher;

	(void)state;
	told_begin();
	assert_int_equal(pusher_start(&options, &pusher), 0);
	assert_false(pusher_end(&pusher));
	told_end();
	assert_int_equal(told_times("could not begin (No such file or directory)"), 1);
}

static bool goes_on(void *context)
{
	(void)context;
	return false;
}

static void test_a_recording_that_cannot_be_opened_for_now_is_not_left_out(void **state)
{
	static const char name[] = "20261123T140200Z-000001.ljspy";
	char directory[] = "/tmp/ljspy-test-XXXXXX";
	struct sending_options options = { .url = "http://127.0.0.1:1",
					   .path = directory,
					   .gives_up = goes_on };
	struct sending *sending;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(directory));
	options.directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = openat(options.directory, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "none", 4), 4);
	close(fd);
	forks = 2;
	sending = sending_new(&options);
	assert_non_null(sending);
	opening_error = ENFILE;
	assert_true(sending_step(sending, true) > 0);
	opening_error = 0;
	/* It is no recording, which shows once it is opened. */
	told_begin();
	assert_int_equal(sending_step(sending, true), 0);
	told_end();
	assert_int_equal(told_times("cannot be pushed"), 1);
	sending_free(sending);
	assert_int_equal(unlinkat(options.directory, name, 0), 0);
	assert_int_equal(unlinkat(options.directory, "pushed", 0), 0);
	close(options.directory);
	assert_int_equal(rmdir(directory), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_process_that_cannot_be_had_is_tried_again),
		cmocka_unit_test(test_a_process_that_cannot_begin_has_a_successor),
		cmocka_unit_test(test_a_loss_of_another_kind_is_told_too),
		cmocka_unit_test(test_why_it_cannot_begin_is_told),
		cmocka_unit_test(test_a_recording_that_cannot_be_opened_for_now_is_not_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

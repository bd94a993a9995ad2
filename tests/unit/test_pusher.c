/* SPDX-License-Identifier: MIT */
/* Pushing goes on where processes, files and memory are short. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/push/pusher.h"
#include "src/push/sending.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/told.h"

/* Of calls in this process and those before it: the first makes the one that keeps pushing going. */
static unsigned int forks, forks_failing, beginnings_failing;

INSTEAD_OF(fork);
pid_t __wrap_fork(void)
{
	if (forks++ > 0 && forks_failing > 0) {
		forks_failing--;
		errno = EAGAIN;
		return -1;
	}
	return __real_fork();
}

INSTEAD_OF(sending_new);
struct sending *__wrap_sending_new(const struct sending_options *options)
{
	return forks <= 1 + beginnings_failing ? NULL : __real_sending_new(options);
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
	char directory[] = "/tmp/ljspy-test-XXXXXX", mark[sizeof(directory) + sizeof("/pushed")];
	struct pusher_options options = { .url = "http://127.0.0.1:1", .path = directory };
	struct pusher pusher;
	bool good;

	forks = 0;
	assert_non_null(mkdtemp(directory));
	told_begin();
	assert_int_equal(pusher_start(&options, &pusher), 0);
	good = pusher_end(&pusher);
	told_end();
	snprintf(mark, sizeof(mark), "%s/pushed", directory);
	unlink(mark);
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
	assert_int_equal(told_times("could not begin; another one tries again"), 1);
	assert_int_equal(told_times("Pushed 0 profiles"), 1);
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
		cmocka_unit_test(test_a_recording_that_cannot_be_opened_for_now_is_not_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* By what two mappings are of one file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/made_up_memory.h"
#include "unwind/elf/file_identity.h"

enum { AT = MADE_UP_AT + 0x100, SECONDS = 1234567890, NANOSECONDS = 987654321 };

static char path[] = "/tmp/test_file_identity.XXXXXX";
static struct module module;
static struct memory *live;

static int begin(void **state)
{
	const struct timespec times[] = { { .tv_nsec = UTIME_OMIT }, { SECONDS, NANOSECONDS } };
	int fd;

	(void)state;
	strcpy(strrchr(path, '.') + 1, "XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(futimens(fd, times), 0);
	close(fd);
	live = made_up_memory_begin();
	for (size_t i = 0; i < MADE_UP_BYTES; i++)
		put(MADE_UP_AT + i, i * 7, 1);
	module = (struct module){
		.begin = AT - 0x80, .end = AT + 0x2000, .base = AT, .device = 5, .inode = 6, .file = path
	};
	return 0;
}

static int end(void **state)
{
	(void)state;
	return unlink(path);
}

static struct file_identity identity(void)
{
	struct file_identity found;

	memset(&found, 0xff, sizeof(found));
	assert_true(file_identity_read(&module, live, NULL, &found));
	return found;
}

static void a_file_is_known_by_all_that_is_seen_of_it(void **state)
{
	const struct file_identity found = identity();

	(void)state;
	assert_int_equal(found.device, 5);
	assert_int_equal(found.inode, 6);
	assert_int_equal(found.extent, 0x2080);
	assert_true(found.changed_ns == UINT64_C(1000000000) * SECONDS + NANOSECONDS);
	assert_memory_equal(found.head, made_up_memory.bytes + (AT - MADE_UP_AT), FILE_HEAD_BYTES);
	/* They are compared as bytes. */
	assert_int_equal(sizeof(found), 4 * sizeof(uint64_t) + FILE_HEAD_BYTES);
}

static void a_file_that_cannot_be_seen_has_no_time(void **state)
{
	char nowhere[] = "/no/such/file";

	(void)state;
	module.file = nowhere;
	assert_int_equal(identity().changed_ns, 0);
	module.file = NULL;
	assert_int_equal(identity().changed_ns, 0);
	assert_int_equal(identity().inode, 6);
}

static void what_cannot_be_read_is_no_file(void **state)
{
	struct file_identity found = { .device = 1 };

	(void)state;
	module.base = MADE_UP_AT + MADE_UP_BYTES - FILE_HEAD_BYTES;
	assert_true(file_identity_read(&module, live, NULL, &found));
	found.device = 1;
	module.base++;
	assert_false(file_identity_read(&module, live, NULL, &found));
	assert_int_equal(found.device, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_file_is_known_by_all_that_is_seen_of_it, begin, end),
		cmocka_unit_test_setup_teardown(a_file_that_cannot_be_seen_has_no_time, begin, end),
		cmocka_unit_test_setup_teardown(what_cannot_be_read_is_no_file, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

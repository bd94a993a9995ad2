/* SPDX-License-Identifier: MIT */
/* An archive that cannot be opened leaves nothing behind. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/archive/archive.h"
#include "tests/unit/instead_of.h"

/* 0, or the errno of one of the steps. */
static int locking_error, listing_error;

INSTEAD_OF(flock);
int __wrap_flock(int fd, int operation)
{
	(void)fd;
	(void)operation;
	errno = locking_error;
	return locking_error ? -1 : 0;
}

INSTEAD_OF(archive_list_read);
int __wrap_archive_list_read(int directory, struct archive_list *ret_list)
{
	return listing_error ? -listing_error : __real_archive_list_read(directory, ret_list);
}

static char parent[] = "/tmp/ljspy-test-XXXXXX", path[sizeof(parent) + sizeof("/made")];

static int begin(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(parent));
	snprintf(path, sizeof(path), "%s/made", parent);
	return 0;
}

static int end(void **state)
{
	(void)state;
	return rmdir(parent);
}

static int open_it(void)
{
	const struct archive_bounds bounds = { .every_ns = 1 };
	struct archive archive;
	int error = archive_open(path, &bounds, &archive);

	if (!error)
		archive_close(&archive);
	return error;
}

static bool is_there(void)
{
	return access(path, F_OK) == 0;
}

static void a_directory_that_was_made_goes(void **state)
{
	(void)state;
	listing_error = ENOMEM;
	assert_int_equal(open_it(), -ENOMEM);
	assert_false(is_there());
	listing_error = 0;
	locking_error = ENOLCK;
	assert_int_equal(open_it(), -ENOLCK);
	assert_false(is_there());
	locking_error = 0;
	assert_int_equal(open_it(), 0);
	assert_false(is_there());
}

/* Some servers' file systems have no locks: each has its own error for that. */
static void a_directory_that_cannot_be_locked_is_refused(void **state)
{
	static const int errors[] = { ENOLCK, ENOSYS, EOPNOTSUPP, EINVAL };

	(void)state;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		locking_error = errors[i];
		assert_int_equal(open_it(), -ENOLCK);
		assert_false(is_there());
	}
	locking_error = 0;
}

static void a_directory_that_another_uses_stays(void **state)
{
	(void)state;
	locking_error = EWOULDBLOCK;
	assert_int_equal(open_it(), -EBUSY);
	locking_error = 0;
	assert_true(is_there());
	/* It was not made for this archive. */
	listing_error = ENOMEM;
	assert_int_equal(open_it(), -ENOMEM);
	listing_error = 0;
	assert_int_equal(rmdir(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_directory_that_was_made_goes),
		cmocka_unit_test(a_directory_that_cannot_be_locked_is_refused),
		cmocka_unit_test(a_directory_that_another_uses_stays),
	};

	return cmocka_run_group_tests(tests, begin, end);
}

/* SPDX-License-Identifier: MIT */
/* The recordings in a directory: which files are some, in which order, and that there may be very many. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "src/archive/archive_list.h"
#include "tests/unit/instead_of.h"

enum {
	MANY = 14 * 24 * 360, /* two weeks of recordings of ten seconds */
	BEGIN_S = 1800000000,
	EVERY_S = 10,
	BYTES = 5000,
};

static uint32_t count, told;
static const char *strange;          /* one more name, before the others; NULL for none */
static int list_error, status_error; /* 0, or the errno of the list's end and of all files */

INSTEAD_OF(readdir);
struct dirent *__wrap_readdir(DIR *stream)
{
	static struct dirent found;
	struct archive_entry entry;

	(void)stream;
	if (strange) {
		snprintf(found.d_name, sizeof(found.d_name), "%s", strange);
		strange = NULL;
		return &found;
	}
	if (told == count) {
		errno = list_error ? list_error : errno;
		return NULL;
	}
	told++;
	/* The newest first: the directory is in any order. */
	entry = (struct archive_entry){ .number = count - told + 1,
					.begin_s = BEGIN_S + (int64_t)EVERY_S * (count - told) };
	archive_name(&entry, found.d_name);
	return &found;
}

INSTEAD_OF(fstatat);
int __wrap_fstatat(int directory, const char *name, struct stat *ret_status, int flags)
{
	(void)directory;
	(void)name;
	(void)flags;
	*ret_status = (struct stat){ .st_size = BYTES };
	errno = status_error;
	return status_error ? -1 : 0;
}

static struct archive_list list_of(uint32_t files, const char *other)
{
	struct archive_list list;

	count = files;
	told = 0;
	strange = other;
	assert_int_equal(archive_list_read(AT_FDCWD, &list), 0);
	return list;
}

static void test_all_of_very_many_count(void **state)
{
	struct archive_list list = list_of(MANY, NULL);

	(void)state;
	assert_int_equal(list.count, MANY);
	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(list.entries[i].number, i + 1);
		assert_int_equal(list.entries[i].begin_s, BEGIN_S + (int64_t)EVERY_S * i);
		assert_int_equal(list.entries[i].bytes, BYTES);
	}
	archive_list_clear(&list);
	assert_int_equal(list.count, 0);
}

static void test_other_files_do_not_count(void **state)
{
	static const char *const others[] = {
		".",
		"profile.ljspy",
		"20261123T140200Z-17.ljspy",
		"20261123T140200Z-000017.ljspy~",
		"20261123T140200Z-0000000017.ljspy", /* another spelling of a number */
		"20261123T140200Z-4294967296.ljspy",
		"20261123 140200Z-000017.ljspy",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		struct archive_list list = list_of(2, others[i]);

		assert_int_equal(list.count, 2);
		archive_list_clear(&list);
	}
	for (uint32_t files = 0; files < 2; files++) {
		struct archive_list list = list_of(files, "20261123T140200Z-000017.ljspy");

		assert_int_equal(list.count, files + 1);
		assert_int_equal(list.entries[files].number, 17);
		archive_list_clear(&list);
	}
}

/* As of a disk or a server that fails. */
static void test_a_part_is_no_list(void **state)
{
	struct archive_list list = { 0 };

	(void)state;
	for (count = 0; count < 3; count++) {
		told = 0;
		list_error = EIO;
		assert_int_equal(archive_list_read(AT_FDCWD, &list), -EIO);
		list_error = 0;
	}
	told = 0;
	status_error = ESTALE;
	assert_int_equal(archive_list_read(AT_FDCWD, &list), -ESTALE);
	assert_null(list.entries);
	status_error = ENOENT;
	list = list_of(2, NULL);
	status_error = 0;
	assert_int_equal(list.count, 2);
	assert_int_equal(list.entries[1].bytes, 0);
	archive_list_clear(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_of_very_many_count),
		cmocka_unit_test(test_other_files_do_not_count),
		cmocka_unit_test(test_a_part_is_no_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

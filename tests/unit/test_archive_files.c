/* SPDX-License-Identifier: MIT */
/* Which recordings of an archive are those of the times that a user names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "src/archive/archive_files.h"
#include "src/archive/archive_list.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/told.h"

/* 2026-11-23 14:00:00 UTC. There is one recording for each minute from then on. */
enum { BEGIN_S = 1795442400, RECORDINGS = 3, RECORDINGS_MAX = 4 };

static struct archive_entry entries[RECORDINGS_MAX];
static size_t count;

INSTEAD_OF(archive_list_read);
int __wrap_archive_list_read(int directory, struct archive_list *ret_list)
{
	assert_true(directory >= 0);
	*ret_list = (struct archive_list){ .entries = calloc(RECORDINGS_MAX, sizeof(entries[0])),
					   .count = count };
	assert_non_null(ret_list->entries);
	memcpy(ret_list->entries, entries, sizeof(entries));
	return 0;
}

static char archive[] = "/", file[] = "one.ljspy";
static char *named[3];
static struct options options;

static int begin(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < RECORDINGS_MAX; i++)
		entries[i] = (struct archive_entry){ .number = i + 1,
						     .begin_s = BEGIN_S + 60 * (int64_t)i,
						     .end_s = BEGIN_S + 60 * (int64_t)(i + 1),
						     .bytes = 100 };
	count = RECORDINGS;
	named[0] = archive;
	named[1] = named[2] = NULL;
	options = (struct options){ .recordings = named };
	return 0;
}

static void forget(void)
{
	for (char **path = options.archived; path && *path; path++)
		free(*path);
	free(options.archived);
	options = (struct options){ .recordings = named };
}

static int end(void **state)
{
	(void)state;
	forget();
	return 0;
}

static bool find(const char *since, const char *until)
{
	bool is_found;

	forget();
	if (since)
		assert_true(clock_time_read(since, &options.since));
	if (until)
		assert_true(clock_time_read(until, &options.until));
	told_begin();
	is_found = archive_files_find(&options);
	told_end();
	return is_found;
}

/* The recordings from first on, as their numbers are. */
static void assert_found(uint32_t first, uint32_t last)
{
	char **path = options.recordings;

	assert_string_equal(told, "");
	for (uint32_t number = first; number <= last; number++) {
		char name[ARCHIVE_NAME_SIZE];

		assert_non_null(*path);
		archive_name(&entries[number - 1], name);
		assert_string_equal(*path + 1, name);
		path++;
	}
	assert_null(*path);
}

static void without_times_all_recordings_are_taken(void **state)
{
	(void)state;
	assert_true(find(NULL, NULL));
	assert_found(1, 3);
	assert_ptr_equal(options.named, named);
	/* ljspy ended before there was anything in it. */
	entries[2].bytes = 0;
	assert_true(find(NULL, NULL));
	assert_found(1, 2);
}

static void a_recording_ends_when_the_next_one_begins(void **state)
{
	static const struct {
		const char *since, *until;
		uint32_t first, last;
	} cases[] = {
		{ "14:01:10", "14:01:50", 2, 2 },
		{ "14:00:59", NULL, 1, 3 },
		{ "14:01:00", NULL, 2, 3 },
		{ "14:01:00.5", NULL, 1, 3 }, /* that second may be of both: names have no fractions */
		{ NULL, "14:01:00", 1, 1 },
		{ NULL, "14:01:00.5", 1, 2 },
		{ NULL, "14:01:01", 1, 2 },
		{ "14:03:00", NULL, 3, 3 },
		{ "2026-11-23 14:01:10", "2026-11-23 14:02:10", 2, 3 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(find(cases[i].since, cases[i].until));
		assert_found(cases[i].first, cases[i].last);
	}
	/* Copies may have lost the times of the files. */
	for (size_t i = 0; i < RECORDINGS; i++)
		entries[i].end_s = entries[i].begin_s;
	assert_true(find("14:01:10", "14:01:50"));
	assert_found(2, 2);
}

/* ljspy was not there for a while. */
static void a_gap_is_of_no_recording(void **state)
{
	(void)state;
	entries[0].end_s = BEGIN_S + 20;
	assert_true(find("14:00:30", "14:01:30"));
	assert_found(2, 2);
	assert_false(find("14:00:30", "14:00:40"));
	assert_string_equal(told, "ljspy: / has no recording of that time.\n"
				  "ljspy: Its recordings are from 2026-11-23 14:00:00 to 2026-11-23 "
				  "14:03:00.\n");
}

static void times_get_the_date_of_the_archive(void **state)
{
	(void)state;
	assert_true(find("14:01:10.25", "14:01:50"));
	assert_true(options.since.has_date && options.until.has_date);
	assert_int_equal(clock_time_near(&options.since, 0, 0), BEGIN_S + 70);
	assert_int_equal(options.since.fraction_ns, 250000000);
	assert_int_equal(clock_time_near(&options.until, 0, 0), BEGIN_S + 110);
	/* The end is the first such time after the beginning. */
	assert_true(find("14:01:10", "14:01:05"));
	assert_int_equal(clock_time_near(&options.until, 0, 0), BEGIN_S + 65 + 24 * 3600);
	assert_found(2, 3);
}

static void times_may_count_from_the_beginning(void **state)
{
	(void)state;
	forget();
	options.since_ns = UINT64_C(70500000000);
	options.until_ns = UINT64_C(80000000000);
	told_begin();
	assert_true(archive_files_find(&options));
	told_end();
	assert_found(2, 2);
	assert_int_equal(options.since_ns + options.until_ns, 0);
	assert_int_equal(clock_time_near(&options.since, 0, 0), BEGIN_S + 70);
	assert_int_equal(options.since.fraction_ns, 500000000);
	assert_int_equal(clock_time_near(&options.until, 0, 0), BEGIN_S + 80);
}

static void files_stay_beside_archives(void **state)
{
	(void)state;
	named[0] = file;
	assert_true(find(NULL, NULL));
	assert_ptr_equal(options.recordings, named);
	assert_null(options.archived);
	named[1] = archive;
	assert_true(find("14:02:30", NULL));
	assert_string_equal(options.recordings[0], file);
	options.recordings++;
	assert_found(3, 3);
}

static void an_archive_without_recordings_is_told(void **state)
{
	(void)state;
	count = 0;
	assert_false(find(NULL, NULL));
	assert_string_equal(told, "ljspy: / has no recordings.\n"
				  "ljspy: `ljspy record --every 1m -o /` makes them.\n");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(without_times_all_recordings_are_taken),
		TEST(a_recording_ends_when_the_next_one_begins),
		TEST(a_gap_is_of_no_recording),
		TEST(times_get_the_date_of_the_archive),
		TEST(times_may_count_from_the_beginning),
		TEST(files_stay_beside_archives),
		TEST(an_archive_without_recordings_is_told),
	};

	setenv("TZ", "UTC0", 1);
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
#include "src/archive/archive_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "memory/array.h"
#include "output/recording/recording_reader.h"
#include "output/sample/functions.h"
#include "src/archive/archive_list.h"
#include "src/program/message.h"

static const uint64_t second_ns = 1000000000u;

/* Files that ljspy opens besides recordings. */
enum { OTHER_FILES = 64, DATE_SIZE = 32 };

struct paths {
	char **all; /* up to NULL */
	size_t count, size;
};

/* What is wanted, in seconds since 1970. */
struct extent {
	int64_t since_s, until_s;
	bool splits_second; /* it begins within the second since_s */
};

static bool is_directory(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* Takes over the path; NULL means that memory is short. */
static int add(struct paths *paths, char *path)
{
	char **all = path ? array_grow(paths->all, &paths->size, paths->count + 2, sizeof(*all)) : NULL;

	if (!all) {
		free(path);
		return -ENOMEM;
	}
	paths->all = all;
	all[paths->count++] = path;
	all[paths->count] = NULL;
	return 0;
}

static void clear(struct paths *paths)
{
	for (size_t i = 0; i < paths->count; i++)
		free(paths->all[i]);
	free(paths->all);
}

static void date(int64_t unix_s, char ret_text[static DATE_SIZE])
{
	const time_t seconds = (time_t)unix_s;
	struct tm fields;

	localtime_r(&seconds, &fields);
	strftime(ret_text, DATE_SIZE, "%Y-%m-%d %H:%M:%S", &fields);
}

/* The archive's own beginning and end. */
static struct extent extent_of(const struct archive_list *list)
{
	struct extent extent = { .since_s = INT64_MAX, .until_s = INT64_MIN };

	for (size_t i = 0; i < list->count; i++) {
		if (list->entries[i].begin_s < extent.since_s)
			extent.since_s = list->entries[i].begin_s;
		if (list->entries[i].end_s > extent.until_s)
			extent.until_s = list->entries[i].end_s;
	}
	return extent;
}

static char *path_of(const char *directory, const struct archive_entry *entry)
{
	const size_t length = strlen(directory);
	const char *slash = length && directory[length - 1] == '/' ? "" : "/";
	char name[ARCHIVE_NAME_SIZE], *path;

	archive_name(entry, name);
	return asprintf(&path, "%s%s%s", directory, slash, name) < 0 ? NULL : path;
}

/* When a recording begins, by itself. False if it cannot be read. */
static bool read_begin(const char *path, uint64_t *ret_unix_ns)
{
	FILE *stream = path ? fopen(path, "re") : NULL;
	struct functions *functions = stream ? functions_new() : NULL;
	struct recording_reader *reader = NULL;

	if (functions && recording_reader_open(stream, functions, &reader) == 0)
		*ret_unix_ns = recording_reader_session(reader)->start_unix_ns;
	recording_reader_close(reader);
	functions_free(functions);
	if (stream)
		fclose(stream);
	return reader != NULL;
}

/* When the archive begins, in ns since 1970: names have no fractions. */
static uint64_t find_begin(const char *directory, const struct archive_list *list, int64_t begin_s)
{
	uint64_t begin_ns = (uint64_t)begin_s * second_ns;

	for (size_t i = 0; i < list->count; i++) {
		char *path = list->entries[i].begin_s == begin_s ? path_of(directory, &list->entries[i])
								 : NULL;
		uint64_t exact_ns = 0;
		bool is_read = read_begin(path, &exact_ns);

		free(path);
		/* Somebody may have given it another name. */
		if (is_read && exact_ns - begin_ns < second_ns)
			return exact_ns;
	}
	return begin_ns;
}

static struct clock_time time_at(uint64_t unix_ns)
{
	struct clock_time time = clock_time_at((int64_t)(unix_ns / second_ns));

	time.fraction_ns = (uint32_t)(unix_ns % second_ns);
	return time;
}

/* Give a time its date. */
static void fix_date(struct clock_time *time, int64_t unix_s)
{
	const uint32_t fraction_ns = time->fraction_ns;

	*time = clock_time_at(unix_s);
	time->fraction_ns = fraction_ns;
}

/* Give the options dates. */
static void fix_times(struct options *options, const char *directory, const struct archive_list *list,
		      const struct extent *whole)
{
	const uint64_t begin_ns = options->since_ns || options->until_ns
					  ? find_begin(directory, list, whole->since_s)
					  : 0;

	if (options->since_ns)
		options->since = time_at(begin_ns + options->since_ns);
	else if (options->since.given)
		fix_date(&options->since, clock_time_near(&options->since, whole->since_s, whole->until_s));
	if (options->until_ns)
		options->until = time_at(begin_ns + options->until_ns);
	else if (options->until.given)
		fix_date(&options->until,
			 options->since.given
				 ? clock_time_after(&options->until, clock_time_near(&options->since, 0, 0),
						    options->since.fraction_ns)
				 : clock_time_near(&options->until, whole->since_s, whole->until_s));
	options->since_ns = options->until_ns = 0;
}

static struct extent wanted_of(const struct options *options)
{
	struct extent wanted = { .since_s = INT64_MIN, .until_s = INT64_MAX };

	if (options->since.given)
		wanted.since_s = clock_time_near(&options->since, 0, 0);
	wanted.splits_second = options->since.fraction_ns > 0;
	if (options->until.given)
		wanted.until_s = clock_time_near(&options->until, 0, 0) +
				 (options->until.fraction_ns > 0 ? 1 : 0);
	return wanted;
}

/*
 * A recording ends when the next one begins, if its file was written to until about then.
 * Names have no fractions, so that may be anywhere within a second.
 */
static bool overlaps(const struct archive_list *list, size_t index, const struct extent *wanted)
{
	const struct archive_entry *entry = &list->entries[index];
	int64_t end_s = entry->end_s + 1;

	if (index + 1 < list->count) {
		int64_t next_s = list->entries[index + 1].begin_s;

		/* Copies may have lost the times of the files. */
		if (next_s >= entry->begin_s && (entry->end_s == entry->begin_s || next_s <= end_s))
			end_s = next_s + (wanted->splits_second ? 1 : 0);
	}
	return entry->begin_s < wanted->until_s && end_s > wanted->since_s;
}

static void explain_none(const char *path, const struct extent *whole)
{
	char begin[DATE_SIZE], end[DATE_SIZE];

	date(whole->since_s, begin);
	date(whole->until_s, end);
	message_error("%s has no recording of that time.", path);
	message_note("Its recordings are from %s to %s.", begin, end);
}

static int add_recordings(struct paths *paths, const char *directory, const struct archive_list *list,
			  const struct extent *wanted)
{
	int error = 0;

	for (size_t i = 0; i < list->count && !error; i++)
		if (list->entries[i].bytes && overlaps(list, i, wanted))
			error = add(paths, path_of(directory, &list->entries[i]));
	return error;
}

static int read_directory(const char *path, struct archive_list *ret_list)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), error;

	if (fd < 0)
		return -errno;
	error = archive_list_read(fd, ret_list);
	close(fd);
	return error;
}

static bool add_archive(struct paths *paths, const char *path, struct options *options)
{
	struct archive_list list;
	struct extent whole, wanted;
	const size_t before = paths->count;
	int error = read_directory(path, &list);

	if (error) {
		message_error_errno(-error, "%s", path);
		return false;
	}
	if (list.count == 0) {
		message_error("%s has no recordings.", path);
		message_note("`ljspy record --every 1m -o %s` makes them.", path);
		archive_list_clear(&list);
		return false;
	}
	whole = extent_of(&list);
	fix_times(options, path, &list, &whole);
	wanted = wanted_of(options);
	error = add_recordings(paths, path, &list, &wanted);
	if (error)
		message_error_errno(-error, "%s", path);
	else if (paths->count == before)
		explain_none(path, &whole);
	archive_list_clear(&list);
	return !error && paths->count > before;
}

/* Each recording is open while all are read. */
static void raise_file_limit(size_t count)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= count + OTHER_FILES)
		return;
	limit.rlim_cur = limit.rlim_max < count + OTHER_FILES ? limit.rlim_max : count + OTHER_FILES;
	setrlimit(RLIMIT_NOFILE, &limit);
}

bool archive_files_find(struct options *options)
{
	struct paths paths = { 0 };
	bool any = false, good = true;

	for (char **path = options->recordings; *path; path++)
		any |= is_directory(*path);
	if (!any)
		return true;
	for (char **path = options->recordings; *path && good; path++)
		if (is_directory(*path)) {
			good = add_archive(&paths, *path, options);
		} else if (add(&paths, strdup(*path))) {
			message_error_errno(ENOMEM, "%s", *path);
			good = false;
		}
	if (!good) {
		clear(&paths);
		return false;
	}
	raise_file_limit(paths.count);
	options->named = options->recordings;
	options->archived = options->recordings = paths.all;
	return true;
}

/* SPDX-License-Identifier: MIT */
#include "src/archive/archive_list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "memory/array.h"

/* What a name is like: d stands for a digit. At least so many digits of the number follow. */
static const char pattern[] = "ddddddddTddddddZ-";
static const char suffix[] = ".ljspy";
enum { NUMBER_DIGITS = 6, NUMBER_DIGITS_MAX = 10 };

/* Years that the names can hold. */
static const int64_t time_max_s = INT64_C(253402300799);

void archive_name(const struct archive_entry *entry, char ret_name[static ARCHIVE_NAME_SIZE])
{
	int64_t begin_s = entry->begin_s < 0 ? 0 : entry->begin_s > time_max_s ? time_max_s : entry->begin_s;
	time_t time = (time_t)begin_s;
	struct tm fields;
	size_t length;

	gmtime_r(&time, &fields);
	length = strftime(ret_name, ARCHIVE_NAME_SIZE, "%Y%m%dT%H%M%SZ", &fields);
	snprintf(ret_name + length, ARCHIVE_NAME_SIZE - length, "-%0*lu%s", NUMBER_DIGITS,
		 (unsigned long)entry->number, suffix);
}

static bool is_digit(char character)
{
	return character >= '0' && character <= '9';
}

static int number_at(const char *text, int digits)
{
	int value = 0;

	for (int i = 0; i < digits; i++)
		value = value * 10 + (text[i] - '0');
	return value;
}

static int64_t time_of(const char *name)
{
	struct tm fields = {
		.tm_year = number_at(name, 4) - 1900,
		.tm_mon = number_at(name + 4, 2) - 1,
		.tm_mday = number_at(name + 6, 2),
		.tm_hour = number_at(name + 9, 2),
		.tm_min = number_at(name + 11, 2),
		.tm_sec = number_at(name + 13, 2),
	};

	return timegm(&fields);
}

/* Set number and times from a name; false if it is not that of a recording in an archive. */
static bool read_name(const char *name, struct archive_entry *ret_entry)
{
	const char *at = name;
	uint64_t number = 0;
	int digits = 0;

	for (const char *wanted = pattern; *wanted; wanted++, at++)
		if (*wanted == 'd' ? !is_digit(*at) : *at != *wanted)
			return false;
	for (; is_digit(*at) && digits < NUMBER_DIGITS_MAX; at++, digits++)
		number = number * 10 + (uint64_t)(*at - '0');
	if (digits < NUMBER_DIGITS || number > UINT32_MAX || strcmp(at, suffix) != 0)
		return false;
	*ret_entry = (struct archive_entry){ .number = (uint32_t)number, .begin_s = time_of(name) };
	ret_entry->end_s = ret_entry->begin_s;
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct archive_entry *one = a, *other = b;

	return (one->number > other->number) - (one->number < other->number);
}

/* One that is gone meanwhile stays empty. 0 or a negative errno. */
static int fill(int directory, const char *name, struct archive_entry *entry)
{
	struct stat status;

	if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -errno;
	entry->bytes = (uint64_t)status.st_size;
	if (status.st_mtim.tv_sec > entry->begin_s)
		entry->end_s = status.st_mtim.tv_sec;
	return 0;
}

/* The next name; NULL at the end, with errno 0, or on failure. */
static const struct dirent *next_name(DIR *stream)
{
	errno = 0;
	return readdir(stream);
}

static int add_all(int directory, DIR *stream, struct archive_list *list)
{
	const struct dirent *found;
	size_t size = 0;
	int error;

	while ((found = next_name(stream))) {
		struct archive_entry entry, *entries;
		char name[ARCHIVE_NAME_SIZE];

		/* One number, two names: the shorter spelling is the archive's own. */
		if (!read_name(found->d_name, &entry) ||
		    (archive_name(&entry, name), strcmp(name, found->d_name) != 0))
			continue;
		entries = array_grow(list->entries, &size, list->count + 1, sizeof(*entries));
		if (!entries)
			return -ENOMEM;
		list->entries = entries;
		error = fill(directory, name, &entry);
		if (error)
			return error;
		list->entries[list->count++] = entry;
	}
	return -errno;
}

int archive_list_read(int directory, struct archive_list *ret_list)
{
	struct archive_list list = { 0 };
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), error;
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);

	if (!stream) {
		error = -errno;
		if (fd >= 0)
			close(fd);
		return error;
	}
	error = add_all(fd, stream, &list);
	closedir(stream);
	if (error) {
		archive_list_clear(&list);
		return error;
	}
	if (list.count)
		qsort(list.entries, list.count, sizeof(*list.entries), compare);
	*ret_list = list;
	return 0;
}

void archive_list_clear(struct archive_list *list)
{
	free(list->entries);
	*list = (struct archive_list){ 0 };
}

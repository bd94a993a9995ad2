/* SPDX-License-Identifier: MIT */
#include "src/archive/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory/array.h"
#include "src/linux/files/same_file.h"

static const uint64_t second_ns = 1000000000u;

/* Open, lock and read the directory, which is there. 0 or a negative errno. */
static int open_directory(struct archive *archive)
{
	int error;

	archive->directory = open(archive->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (archive->directory < 0)
		return -errno;
	error = flock(archive->directory, LOCK_EX | LOCK_NB) ? errno == EWOULDBLOCK ? -EBUSY : -ENOLCK : 0;
	if (!error)
		error = archive_list_read(archive->directory, &archive->list);
	if (error)
		close(archive->directory);
	return error;
}

int archive_open(const char *path, const struct archive_bounds *bounds, struct archive *ret_archive)
{
	struct archive archive = { .path = path, .bounds = *bounds };
	int error;

	archive.is_made = mkdir(path, 0777) == 0;
	if (!archive.is_made && errno != EEXIST)
		return -errno;
	error = open_directory(&archive);
	/* Another ljspy that was quicker uses it. */
	if (archive.is_made && error && error != -EBUSY)
		rmdir(path);
	if (error)
		return error;
	archive.size = archive.list.count;
	if (archive.list.count)
		archive.last_number = archive.list.entries[archive.list.count - 1].number;
	archive.first_own = archive.last_number + 1;
	*ret_archive = archive;
	return 0;
}

/* Has somebody moved the directory away, or removed it? */
static bool is_elsewhere(const struct archive *archive)
{
	struct stat here, named;

	if (fstat(archive->directory, &here))
		return false;
	if (stat(archive->path, &named))
		return errno == ENOENT;
	return !same_file(&named, &here);
}

void archive_close(struct archive *archive)
{
	archive_end(archive);
	archive_list_clear(&archive->list);
	if (archive->is_made && !is_elsewhere(archive))
		rmdir(archive->path); /* fails unless it is empty */
	close(archive->directory);
	archive->directory = -1;
}

static FILE *create(const struct archive *archive, const struct archive_entry *entry)
{
	char name[ARCHIVE_NAME_SIZE];
	FILE *stream;
	int fd, error;

	archive_name(entry, name);
	fd = openat(archive->directory, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0)
		return NULL;
	stream = fdopen(fd, "w+");
	if (!stream) {
		error = errno;
		unlinkat(archive->directory, name, 0);
		close(fd);
		errno = error;
	}
	return stream;
}

/* What is under the directory's name now takes its place. */
static int reopen(struct archive *archive)
{
	const uint32_t last_number = archive->last_number;
	struct archive again;
	int error = archive_open(archive->path, &archive->bounds, &again);

	if (error)
		return error;
	archive_close(archive);
	*archive = again;
	/* Numbers say what is newer, and what was pushed. */
	if (archive->last_number < last_number)
		archive->last_number = last_number;
	archive->first_own = archive->last_number + 1;
	return 0;
}

static int begin(struct archive *archive, uint64_t start_unix_ns)
{
	struct archive_list *list = &archive->list;
	struct archive_entry entry = { .begin_s = (int64_t)(start_unix_ns / second_ns) };
	struct archive_entry *entries = array_grow(list->entries, &archive->size, list->count + 1,
						   sizeof(*entries));

	if (!entries)
		return -ENOMEM;
	list->entries = entries;
	entry.end_s = entry.begin_s;
	entry.number = archive->last_number + 1;
	archive->stream = create(archive, &entry);
	if (!archive->stream)
		return -errno;
	list->entries[list->count++] = entry;
	archive->last_number = entry.number;
	return 0;
}

int archive_begin(struct archive *archive, uint64_t start_unix_ns)
{
	int error = is_elsewhere(archive) ? reopen(archive) : 0;

	return error ? error : begin(archive, start_unix_ns);
}

int archive_end(struct archive *archive)
{
	struct archive_entry *entry;
	struct stat status;
	int error = 0;

	if (!archive->stream)
		return 0;
	entry = &archive->list.entries[archive->list.count - 1];
	if (fstat(fileno(archive->stream), &status) == 0) {
		entry->bytes = (uint64_t)status.st_size;
		if (status.st_mtim.tv_sec > entry->begin_s)
			entry->end_s = status.st_mtim.tv_sec;
	}
	if (fclose(archive->stream))
		error = -errno;
	archive->stream = NULL;
	return error;
}

uint64_t archive_written(const struct archive *archive)
{
	struct stat status;

	return archive->stream && fstat(fileno(archive->stream), &status) == 0 ? (uint64_t)status.st_size : 0;
}

/* How long it recorded, as far as the clock can be believed; in ns. */
static uint64_t length_of(const struct archive *archive, const struct archive_entry *entry)
{
	const uint64_t most = 2 * archive->bounds.every_ns;
	uint64_t seconds = (uint64_t)(entry->end_s - entry->begin_s);

	return seconds > most / second_ns ? most : seconds * second_ns;
}

/* How many of the oldest recordings exceed the bounds? */
static size_t excess(const struct archive *archive)
{
	size_t finished = archive->list.count - (archive->stream ? 1 : 0);
	uint64_t bytes = archive_written(archive), recorded_ns = 0;

	while (finished > 0) {
		const struct archive_entry *entry = &archive->list.entries[finished - 1];

		if (recorded_ns >= archive->bounds.keep_ns || entry->bytes > archive->bounds.bytes ||
		    bytes > archive->bounds.bytes - entry->bytes)
			break;
		bytes += entry->bytes;
		recorded_ns += length_of(archive, entry);
		finished--;
	}
	return finished;
}

/* Nothing could be written to it. */
static void drop_empty(struct archive *archive)
{
	struct archive_list *list = &archive->list;
	char name[ARCHIVE_NAME_SIZE];

	if (archive->stream || list->count == 0 || list->entries[list->count - 1].bytes)
		return;
	archive_name(&list->entries[list->count - 1], name);
	if (unlinkat(archive->directory, name, 0) == 0)
		list->count--;
}

int archive_prune(struct archive *archive)
{
	struct archive_list *list = &archive->list;
	size_t count, gone = 0;
	int error = 0;

	if (is_elsewhere(archive))
		return 0;
	drop_empty(archive);
	count = excess(archive);
	for (; gone < count && !error; gone++) {
		char name[ARCHIVE_NAME_SIZE];

		archive_name(&list->entries[gone], name);
		if (unlinkat(archive->directory, name, 0) && errno != ENOENT)
			error = -errno;
	}
	if (error)
		gone--;
	memmove(list->entries, list->entries + gone, (list->count - gone) * sizeof(*list->entries));
	list->count -= gone;
	return error;
}

int archive_drop_own(struct archive *archive)
{
	struct archive_list *list = &archive->list;
	char name[ARCHIVE_NAME_SIZE];

	if (is_elsewhere(archive))
		return 0;
	while (list->count && list->entries[list->count - 1].number >= archive->first_own) {
		archive_name(&list->entries[list->count - 1], name);
		if (unlinkat(archive->directory, name, 0) && errno != ENOENT)
			return -errno;
		list->count--;
	}
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include "src/program/kept_recording.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/program/message.h"

enum {
	NAMES_TRIED = 100,
	COPY_SIZE = 1 << 16,
	PLACES = 2, /* directories for temporary files */
};

static const char suffix[] = ".unfinished";

static const char *place(int number)
{
	const char *given = getenv("TMPDIR");

	return number == 0 ? (given && *given ? given : NULL) : "/tmp";
}

static void clear(struct kept_recording *kept)
{
	if (kept->stream)
		fclose(kept->stream);
	new_file_close(&kept->file);
	free(kept->directory);
	free(kept->base);
	free(kept->name);
	free(kept->path);
	*kept = (struct kept_recording){ .file = new_file_none };
}

/* "profile.svg.unfinished.ljspy", "profile.svg.unfinished-2.ljspy" and so on. NULL when memory is short. */
static char *numbered_name(const char *base, int number)
{
	char *name;
	int length = number == 1 ? asprintf(&name, "%s%s.ljspy", base, suffix)
				 : asprintf(&name, "%s%s-%d.ljspy", base, suffix, number);

	return length < 0 ? NULL : name;
}

/* 0 or a negative errno. */
static int open_in(const char *directory, const char *base, struct kept_recording *ret_kept)
{
	struct kept_recording kept = { .file = new_file_none };
	char *name = numbered_name(base, 1);
	int error = -ENOMEM;

	kept.directory = strdup(directory);
	kept.base = strdup(base);
	if (kept.directory && kept.base && name)
		error = new_file_open(directory, name, 0600, &kept.file);
	if (!error)
		error = new_file_stream(&kept.file, &kept.stream);
	free(name);
	if (error)
		clear(&kept);
	else
		*ret_kept = kept;
	return error;
}

/* The last resort: this file can have no name. */
static int open_in_memory(struct kept_recording *ret_kept)
{
	struct kept_recording kept = { .file = new_file_none };
	int error;

	kept.file.fd = memfd_create("ljspy", MFD_CLOEXEC);
	error = kept.file.fd < 0 ? -errno : new_file_stream(&kept.file, &kept.stream);
	if (error)
		clear(&kept);
	else
		*ret_kept = kept;
	return error;
}

int kept_recording_open(const struct output_file *output, const char *base, struct kept_recording *ret_kept)
{
	char *directory = output->name ? output_file_directory(output->path) : NULL;
	int error = directory ? open_in(directory, output->name, ret_kept) : -ENOENT;

	free(directory);
	if (!error) {
		ret_kept->beside = true;
		return 0;
	}
	for (int i = 0; error && i < PLACES; i++)
		if (place(i))
			error = open_in(place(i), output->name ? output->name : base, ret_kept);
	return error ? open_in_memory(ret_kept) : 0;
}

/* A name that begins with a dash keeps its "./": it stands in commands, too. */
static char *join(const char *directory, const char *name)
{
	const bool is_here = strcmp(directory, ".") == 0 && *name != '-';
	char *path;
	int length = is_here                       ? asprintf(&path, "%s", name)
		     : strcmp(directory, "/") == 0 ? asprintf(&path, "/%s", name)
						   : asprintf(&path, "%s/%s", directory, name);

	return length < 0 ? NULL : path;
}

char *kept_recording_path(const char *output)
{
	return numbered_name(output, 1);
}

/* 0 or a negative errno. */
static int claim(struct kept_recording *kept, const char *name, bool *ret_replaced)
{
	char *path = join(kept->directory, name);
	int error = path ? new_file_claim(&kept->file, name, ret_replaced) : -ENOMEM;

	if (error)
		free(path);
	else
		kept->path = path;
	return error;
}

static bool give_name(struct kept_recording *kept)
{
	bool replaced = false;
	int error = -EEXIST;

	for (int number = 1; error == -EEXIST && number <= NAMES_TRIED; number++) {
		free(kept->name);
		kept->name = numbered_name(kept->base, number);
		error = kept->name ? claim(kept, kept->name, &replaced) : -ENOMEM;
	}
	if (error) {
		free(kept->name);
		kept->name = NULL;
		return false;
	}
	if (replaced)
		message_note("%s, which a recording that was not finished had left, has been replaced.",
			     kept->path);
	return true;
}

bool kept_recording_name(struct kept_recording *kept)
{
	if (kept->path)
		return true;
	if (!kept->base || !give_name(kept))
		return false;
	if (!kept->beside)
		message_note("Until the output is written, what it is made of is in %s.", kept->path);
	return true;
}

/* Copy a whole file into an empty one. */
static bool copy(int from, int to)
{
	char buffer[COPY_SIZE];
	off_t offset = 0;
	ssize_t length;

	while ((length = pread(from, buffer, sizeof(buffer), offset)) > 0) {
		if (pwrite(to, buffer, (size_t)length, offset) != length)
			return false;
		offset += length;
	}
	return length == 0;
}

static bool is_elsewhere(const struct kept_recording *kept, const struct kept_recording *other)
{
	struct stat here, there;

	return fstat(kept->file.fd, &here) == 0 && fstat(other->file.fd, &there) == 0 &&
	       here.st_dev != there.st_dev;
}

bool kept_recording_move(struct kept_recording *kept, struct kept_recording *ret_behind)
{
	const bool has_name = kept->path != NULL;

	for (int i = 0; kept->base && i < PLACES; i++) {
		struct kept_recording other;

		if (!place(i) || open_in(place(i), kept->base, &other))
			continue;
		if (is_elsewhere(kept, &other) && copy(kept->file.fd, other.file.fd) &&
		    fseeko(other.stream, 0, SEEK_END) == 0 && (!has_name || kept_recording_name(&other))) {
			*ret_behind = *kept;
			*kept = other;
			return true;
		}
		clear(&other);
	}
	return false;
}

bool kept_recording_is_empty(const struct kept_recording *kept)
{
	struct stat status;

	return fstat(fileno(kept->stream), &status) == 0 && status.st_size == 0;
}

void kept_recording_remove(struct kept_recording *kept)
{
	if (!kept->stream)
		return;
	if (kept->name && unlinkat(kept->file.directory, kept->name, 0) && errno != ENOENT)
		message_warn("%s, which is needed no more, cannot be removed: %s", kept->path,
			     strerror(errno));
	clear(kept);
}

void kept_recording_close(struct kept_recording *kept)
{
	if (kept->stream)
		clear(kept);
}

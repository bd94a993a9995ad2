/* SPDX-License-Identifier: MIT */
#include "src/program/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/linux/files/same_file.h"
#include "src/linux/proc/permission.h"
#include "src/program/interruption.h"
#include "src/program/message.h"

static int open_stream(int fd, const char *mode, FILE **ret_stream)
{
	int error;

	*ret_stream = fdopen(fd, mode);
	if (*ret_stream)
		return 0;
	error = errno == EINVAL ? -EBADF : -errno; /* standard output may be closed, or open only to read */
	close(fd);
	return error;
}

/* Opening a FIFO waits until somebody reads it. Ctrl-C ends that wait, and ljspy with it. */
static int open_waiting(const char *path)
{
	const int flags = O_WRONLY | O_CLOEXEC | O_NOCTTY;
	int fd = open(path, flags | O_NONBLOCK), error;
	sigset_t signals, before;
	struct stat status;

	if (fd >= 0) {
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
		return fd;
	}
	if (errno != ENXIO)
		return -1;
	/* Sockets fail so, too, and devices that are not there. */
	if (stat(path, &status) || !S_ISFIFO(status.st_mode)) {
		errno = ENXIO;
		return -1;
	}
	message_note("Nobody reads %s yet: ljspy waits for that.", path);
	interruption_signals(&signals);
	pthread_sigmask(SIG_UNBLOCK, &signals, &before);
	fd = open(path, flags);
	error = errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = error;
	return fd;
}

static int open_directly(const char *path, struct output_file *file)
{
	int fd = strcmp(path, "-") == 0 ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0) : open_waiting(path);

	return fd < 0 ? -errno : open_stream(fd, "w", &file->stream);
}

char *output_file_directory(const char *path)
{
	char *copy = strdup(path), *directory = copy ? strdup(dirname(copy)) : NULL;

	free(copy);
	return directory;
}

static char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strdup(slash ? slash + 1 : path);
}

bool output_file_may_replace(const char *path, const char *directory)
{
	const uid_t user = geteuid();
	struct stat file, around;

	return lstat(path, &file) || user == file.st_uid || stat(directory, &around) ||
	       !(around.st_mode & S_ISVTX) || user == around.st_uid || permission_has_capability(CAP_FOWNER);
}

static int open_in_directory(const char *path, mode_t mode, struct output_file *file)
{
	char *directory = output_file_directory(path);
	int error = -ENOMEM;

	file->name = name_of(path);
	if (file->name && !*file->name)
		error = -EISDIR; /* "missing/" */
	else if (directory && !output_file_may_replace(path, directory))
		error = -EPERM;
	else if (directory && file->name)
		error = new_file_open(directory, file->name, mode, &file->file);
	if (!error)
		error = new_file_stream(&file->file, &file->stream);
	free(directory);
	return error;
}

static void clear(struct output_file *file)
{
	new_file_close(&file->file);
	free(file->name);
	file->name = NULL;
}

int output_file_open(const char *path, struct output_file *ret_file)
{
	struct output_file file = { .path = path, .file = new_file_none };
	struct stat status;
	mode_t mask = umask(0);
	int error;

	umask(mask);
	if (strcmp(path, "-") == 0)
		error = open_directly(path, &file);
	else if (stat(path, &status) == 0)
		error = S_ISDIR(status.st_mode)                         ? -EISDIR
			: S_ISREG(status.st_mode) && access(path, W_OK) ? -errno
			: S_ISREG(status.st_mode) ? open_in_directory(path, status.st_mode & 07777, &file)
						  : open_directly(path, &file);
	else if (errno == ENOENT)
		error = open_in_directory(path, 0666 & ~mask, &file);
	else
		error = -errno;
	if (error)
		clear(&file);
	else
		*ret_file = file;
	return error;
}

/* Devices do not count: two streams to one do not overwrite each other. */
static bool is_same_stream(const struct stat *a, const struct stat *b)
{
	return same_file(a, b) && !S_ISCHR(a->st_mode) && !S_ISBLK(a->st_mode);
}

bool output_file_is_same(const struct output_file *a, const struct output_file *b)
{
	struct stat in_a, in_b;

	if (strcmp(a->path, b->path) == 0 && strcmp(a->path, "-") == 0)
		return true;
	if (!a->name != !b->name || (a->name && strcmp(a->name, b->name) != 0))
		return false;
	if (fstat(a->name ? a->file.directory : fileno(a->stream), &in_a) ||
	    fstat(b->name ? b->file.directory : fileno(b->stream), &in_b))
		return false;
	return is_same_stream(&in_a, &in_b);
}

/* Errors may show only when data is flushed or the file is closed. 0 or a negative errno. */
static int close_stream(struct output_file *file)
{
	bool had_error = ferror(file->stream) != 0;
	int error = 0;

	errno = 0;
	if (fflush(file->stream))
		error = -errno;
	if (fclose(file->stream) && !error)
		error = -errno;
	file->stream = NULL;
	return error ? error : had_error ? -EIO : 0;
}

int output_file_commit(struct output_file *file)
{
	int error = close_stream(file);

	if (file->name && !error)
		error = new_file_link(&file->file, file->name);
	clear(file);
	return error;
}

int output_file_publish(struct output_file *file)
{
	int error = file->name ? new_file_link(&file->file, file->name) : 0;

	if (!error)
		clear(file);
	return error;
}

void output_file_abandon(struct output_file *file)
{
	if (!file->stream)
		return;
	fclose(file->stream);
	file->stream = NULL;
	clear(file);
}

/* A file in that directory without a name, or whose name is removed; -1 on failure. */
static int open_nameless(const char *directory)
{
	int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char *path;

	if (fd >= 0 || asprintf(&path, "%s/ljspy.XXXXXX", directory) < 0)
		return fd;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	free(path);
	return fd;
}

int output_file_scratch(FILE **ret_stream)
{
	const char *given = getenv("TMPDIR");
	int fd = given && *given ? open_nameless(given) : -1;

	if (fd < 0)
		fd = open_nameless("/tmp");
	if (fd < 0)
		fd = memfd_create("ljspy", MFD_CLOEXEC);
	return fd < 0 ? -errno : open_stream(fd, "w+", ret_stream);
}

int output_file_error(int error)
{
	return error == -EIO && errno ? -errno : error;
}

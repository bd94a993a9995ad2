/* SPDX-License-Identifier: MIT */
#include "src/program/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/linux/files/same_file.h"

enum {
	NAMES_TRIED = 100, /* other processes may be writing to some */
	LINKS_TRIED = 10,
	FD_PATH_SIZE = sizeof("/proc/self/fd/") + 3 * sizeof(int),
};

const struct new_file new_file_none = { .fd = -1, .directory = -1 };

/* "profile.svg.ljspy-new", "profile.svg.ljspy-new2" and so on. NULL when memory is short. */
static char *temporary_name(const char *name, int number)
{
	char *text;
	int length = number == 1 ? asprintf(&text, "%s.ljspy-new", name)
				 : asprintf(&text, "%s.ljspy-new%d", name, number);

	return length < 0 ? NULL : text;
}

static void fd_path(int fd, char path[static FD_PATH_SIZE])
{
	snprintf(path, FD_PATH_SIZE, "/proc/self/fd/%d", fd);
}

/* Can linkat() name it later? /proc may be another pid namespace's, or missing. */
static bool can_be_linked(int fd)
{
	char path[FD_PATH_SIZE];
	struct stat by_path, status;

	fd_path(fd, path);
	return stat(path, &by_path) == 0 && fstat(fd, &status) == 0 && same_file(&by_path, &status);
}

static int open_nameless(int directory)
{
	int fd = openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0 && !can_be_linked(fd)) {
		close(fd);
		return -1;
	}
	return fd;
}

/*
 * Is this the regular file that has the name, and does no other ljspy use it? Every
 * running ljspy locks its files. Locks the file.
 */
static bool is_free(int fd, int directory, const char *name)
{
	struct stat status, named;

	if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		return false;
	return fstat(fd, &status) == 0 && fstatat(directory, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       same_file(&status, &named) && S_ISREG(status.st_mode);
}

/* A descriptor or a negative errno; *ret_temporary is allocated. */
static int open_named(int directory, const char *name, char **ret_temporary)
{
	for (int number = 1; number <= NAMES_TRIED; number++) {
		char *temporary = temporary_name(name, number);
		int fd, error;

		if (!temporary)
			return -ENOMEM;
		fd = openat(directory, temporary, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
			    0600);
		error = -errno;
		if (fd >= 0 && is_free(fd, directory, temporary) && ftruncate(fd, 0) == 0) {
			*ret_temporary = temporary;
			return fd;
		}
		free(temporary);
		if (fd >= 0)
			close(fd);
		else if (error != -EACCES || number == NAMES_TRIED)
			return error;
	}
	return -EEXIST;
}

int new_file_open(const char *directory, const char *name, mode_t mode, struct new_file *ret_file)
{
	struct new_file file = new_file_none;
	int error = 0;

	file.directory = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (file.directory < 0)
		return -errno;
	file.fd = open_nameless(file.directory);
	if (file.fd < 0)
		file.fd = open_named(file.directory, name, &file.temporary);
	if (file.fd < 0)
		error = file.fd;
	else if (fchmod(file.fd, mode))
		error = -errno;
	if (error) {
		new_file_close(&file);
		return error;
	}
	flock(file.fd, LOCK_EX | LOCK_NB); /* see is_free() */
	*ret_file = file;
	return 0;
}

int new_file_stream(const struct new_file *file, FILE **ret_stream)
{
	int fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
	FILE *stream = fd < 0 ? NULL : fdopen(fd, "w+");

	if (!stream) {
		if (fd >= 0)
			close(fd);
		return fd < 0 ? -errno : -ENOMEM;
	}
	*ret_stream = stream;
	return 0;
}

static int link_as(const struct new_file *file, const char *name)
{
	char path[FD_PATH_SIZE];

	if (file->temporary)
		return renameat(file->directory, file->temporary, file->directory, name) ? -errno : 0;
	fd_path(file->fd, path);
	return linkat(AT_FDCWD, path, file->directory, name, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

/* linkat() replaces no file, renameat() does: link to a temporary name, then rename. */
static int link_in_place(struct new_file *file, const char *name)
{
	char *temporary = temporary_name(name, 1);
	int error = -ENOMEM;

	/* Another ljspy may do the same at the same moment. */
	for (int i = 0; temporary && i < LINKS_TRIED; i++) {
		unlinkat(file->directory, temporary, 0);
		error = link_as(file, temporary);
		if (!error && renameat(file->directory, temporary, file->directory, name)) {
			error = -errno;
			unlinkat(file->directory, temporary, 0);
		}
		if (error != -EEXIST && error != -ENOENT)
			break;
	}
	free(temporary);
	return error;
}

int new_file_link(struct new_file *file, const char *name)
{
	int error = link_as(file, name);

	if (error == -EEXIST)
		error = link_in_place(file, name);
	if (!error) {
		free(file->temporary);
		file->temporary = NULL;
	}
	return error;
}

int new_file_claim(struct new_file *file, const char *name, bool *ret_replaced)
{
	int fd = openat(file->directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int error;

	if (fd < 0 && errno != ENOENT)
		return -EEXIST;
	if (fd >= 0 && !is_free(fd, file->directory, name)) {
		close(fd);
		return -EEXIST;
	}
	error = new_file_link(file, name);
	if (fd >= 0)
		close(fd);
	*ret_replaced = fd >= 0;
	return error == -EPERM || error == -EACCES ? -EEXIST : error;
}

void new_file_close(struct new_file *file)
{
	if (file->temporary)
		unlinkat(file->directory, file->temporary, 0);
	free(file->temporary);
	if (file->fd >= 0)
		close(file->fd);
	if (file->directory >= 0)
		close(file->directory);
	*file = new_file_none;
}

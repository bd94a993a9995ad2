/* SPDX-License-Identifier: MIT */
#include "src/linux/files/root_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/linux/proc/call_numbers.h"

static const uint64_t second_ns = 1000000000;

struct request {
	char root[PATH_MAX], path[PATH_MAX];
	size_t size_max;
	int error; /* a negative errno */
	struct root_file file;
};

/* A descriptor that can only be asked about, or a negative errno. */
static int open_below(const char *root, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };
	int directory = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC), fd, error;

	if (directory < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, directory, path, &how, sizeof(how));
	if (fd < 0 && errno == ENOSYS && strcmp(root, "/") == 0)
		fd = open(path, O_PATH | O_CLOEXEC);
	error = fd < 0 ? -errno : 0;
	close(directory);
	return error ? error : fd;
}

static bool may_read(const struct stat *status)
{
	return geteuid() != 0 || (status->st_mode & S_IROTH);
}

static uint64_t time_ns(const struct timespec *time)
{
	return time->tv_sec < 0 ? 0 : (uint64_t)time->tv_sec * second_ns + (uint64_t)time->tv_nsec;
}

static uint64_t changed_ns(const struct stat *status)
{
	uint64_t contents_ns = time_ns(&status->st_mtim), inode_ns = time_ns(&status->st_ctim);

	return contents_ns > inode_ns ? contents_ns : inode_ns;
}

/* Read up to the end or size_max. The file may change meanwhile. */
static int read_bytes(int fd, const struct stat *status, size_t size_max, struct root_file *ret_file)
{
	struct root_file file = { .changed_unix_ns = changed_ns(status) };
	ssize_t length;

	if (status->st_size < 0 || (uint64_t)status->st_size > size_max)
		return -EFBIG;
	file.bytes = malloc((size_t)status->st_size + 1);
	if (!file.bytes)
		return -ENOMEM;
	do {
		length = read(fd, file.bytes + file.length, (size_t)status->st_size - file.length);
		if (length > 0)
			file.length += (size_t)length;
	} while (length > 0 || (length < 0 && errno == EINTR));
	if (length < 0) {
		free(file.bytes);
		return -errno;
	}
	file.bytes[file.length] = '\0';
	*ret_file = file;
	return 0;
}

static int read_opened(int path_fd, struct request *request)
{
	char path[sizeof("/proc/self/fd/") + 3 * sizeof(int)];
	struct stat status;
	int fd, error;

	if (fstat(path_fd, &status))
		return -errno;
	if (!S_ISREG(status.st_mode))
		return -EINVAL;
	if (!may_read(&status))
		return -EACCES;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	error = read_bytes(fd, &status, request->size_max, &request->file);
	close(fd);
	return error;
}

static void work(void *arguments)
{
	struct request *request = arguments;
	int fd = open_below(request->root, request->path);

	request->error = fd < 0 ? fd : read_opened(fd, request);
	if (fd >= 0)
		close(fd);
}

static void undo(void *arguments)
{
	struct request *request = arguments;

	if (request->error == 0)
		free(request->file.bytes);
}

static bool give(char room[static PATH_MAX], const char *text)
{
	size_t length = strlen(text);

	if (length >= PATH_MAX)
		return false;
	memcpy(room, text, length + 1);
	return true;
}

int root_file_read(struct errands *errands, const struct root_file_wanted *wanted, struct root_file *ret_file)
{
	struct request *request = calloc(1, sizeof(*request));
	int error;

	if (!request)
		return -ENOMEM;
	request->size_max = wanted->size_max;
	if (!give(request->root, wanted->root) || !give(request->path, wanted->path))
		error = -ENAMETOOLONG;
	else if (!errands_run(errands, work, undo, request, sizeof(*request)))
		error = -ETIMEDOUT;
	else
		error = request->error;
	if (!error)
		*ret_file = request->file;
	free(request);
	return error;
}

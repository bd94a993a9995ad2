/* SPDX-License-Identifier: MIT */
#include "memory/slow_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The arguments and results of all these calls. */
struct request {
	char path[PATH_MAX];
	int fd;
	int error; /* 0: success */
	struct stat status;
};

static bool run(struct errands *errands, errand_work *work, errand_work *undo, struct request *request)
{
	request->error = ETIMEDOUT;
	errands_run(errands, work, undo, request, sizeof(*request));
	errno = request->error;
	return request->error == 0;
}

/* False with errno if the path is too long. */
static bool give_path(struct request *request, const char *path)
{
	size_t length = strlen(path);

	if (length >= sizeof(request->path)) {
		errno = ENAMETOOLONG;
		return false;
	}
	memcpy(request->path, path, length + 1);
	return true;
}

static void work_stat(void *arguments)
{
	struct request *request = arguments;

	request->error = stat(request->path, &request->status) ? errno : 0;
}

bool slow_stat(struct errands *errands, const char *path, struct stat *ret_status)
{
	struct request request;

	if (!give_path(&request, path) || !run(errands, work_stat, NULL, &request))
		return false;
	*ret_status = request.status;
	return true;
}

static void work_fstat(void *arguments)
{
	struct request *request = arguments;

	request->error = fstat(request->fd, &request->status) ? errno : 0;
}

bool slow_fstat(struct errands *errands, int fd, struct stat *ret_status)
{
	struct request request = { .fd = fd };

	if (!run(errands, work_fstat, NULL, &request))
		return false;
	*ret_status = request.status;
	return true;
}

static int open_to_read(const char *path)
{
	return open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

static void work_open(void *arguments)
{
	struct request *request = arguments;

	request->fd = open_to_read(request->path);
	request->error = request->fd < 0 ? errno : 0;
}

static void work_close(void *arguments)
{
	struct request *request = arguments;

	if (request->fd >= 0)
		close(request->fd);
	request->error = 0;
}

int slow_open(struct errands *errands, const char *path)
{
	struct request request;

	return give_path(&request, path) && run(errands, work_open, work_close, &request) ? request.fd : -1;
}

void slow_close(struct errands *errands, int fd)
{
	struct request request = { .fd = fd };

	errands_finish(errands, work_close, &request, sizeof(request));
}

struct reading {
	int fd;
	uint64_t offset;
	size_t length;
	bool whole;
	unsigned char bytes[];
};

static void work_pread(void *arguments)
{
	struct reading *reading = arguments;

	reading->whole = pread(reading->fd, reading->bytes, reading->length, (off_t)reading->offset) ==
			 (ssize_t)reading->length;
}

bool slow_pread(struct errands *errands, int fd, void *bytes, size_t length, uint64_t offset)
{
	struct reading *reading = length <= SLOW_READ_MAX ? malloc(sizeof(*reading) + length) : NULL;
	bool whole;

	if (!reading)
		return false;
	*reading = (struct reading){ .fd = fd, .offset = offset, .length = length };
	whole = errands_run(errands, work_pread, NULL, reading, sizeof(*reading) + length) && reading->whole;
	if (whole)
		memcpy(bytes, reading->bytes, length);
	free(reading);
	return whole;
}

struct head {
	struct request request;
	size_t length;
	unsigned char bytes[SLOW_HEAD_MAX];
};

static void work_head(void *arguments)
{
	struct head *head = arguments;
	int fd = open_to_read(head->request.path);
	ssize_t count;

	if (fd < 0) {
		head->request.error = errno;
		return;
	}
	count = pread(fd, head->bytes, head->length, 0);
	head->request.error = count < 0 ? errno : (size_t)count < head->length ? EIO : 0;
	close(fd);
}

bool slow_head(struct errands *errands, const char *path, void *bytes, size_t length)
{
	struct head head = { .request.error = ETIMEDOUT, .length = length };

	if (length > sizeof(head.bytes)) {
		errno = EINVAL;
		return false;
	}
	if (!give_path(&head.request, path))
		return false;
	errands_run(errands, work_head, NULL, &head, sizeof(head));
	errno = head.request.error;
	if (head.request.error)
		return false;
	memcpy(bytes, head.bytes, length);
	return true;
}

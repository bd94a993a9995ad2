/* SPDX-License-Identifier: MIT */
#include "src/push/mark.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIGITS = 10 };

static const char prefix[] = "ljspy pushed";

void mark_write_text(const struct mark *mark, char ret_text[static MARK_TEXT_SIZE])
{
	snprintf(ret_text, MARK_TEXT_SIZE, "%s %0*" PRIu32 " %0*" PRIu32 " %0*" PRIu32 "\n", prefix, DIGITS,
		 mark->done, DIGITS, mark->current, DIGITS, mark->parts);
}

static bool take_number(const char **text, uint32_t *ret_number)
{
	uint64_t number = 0;

	if (*(*text)++ != ' ')
		return false;
	for (int i = 0; i < DIGITS; i++, (*text)++) {
		if (**text < '0' || **text > '9')
			return false;
		number = number * 10 + (uint64_t)(**text - '0');
	}
	*ret_number = (uint32_t)number;
	return number <= UINT32_MAX;
}

bool mark_read_text(const char *text, size_t length, struct mark *ret_mark)
{
	const char *at = text + strlen(prefix);
	struct mark mark;

	if (length != MARK_TEXT_SIZE - 1 || memcmp(text, prefix, strlen(prefix)) != 0 ||
	    !take_number(&at, &mark.done) || !take_number(&at, &mark.current) ||
	    !take_number(&at, &mark.parts) || *at != '\n')
		return false;
	*ret_mark = mark;
	return true;
}

int mark_open(int directory)
{
	int fd = openat(directory, "pushed", O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
	struct stat status;
	int error = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &status) || flock(fd, LOCK_EX | LOCK_NB))
		error = -errno;
	else if (!S_ISREG(status.st_mode))
		error = -EINVAL;
	if (error)
		close(fd);
	return error ? error : fd;
}

int mark_read(int fd, struct mark *ret_mark)
{
	char text[MARK_TEXT_SIZE];
	ssize_t length = pread(fd, text, sizeof(text), 0);

	if (length < 0)
		return -errno;
	if (length == 0)
		return -ENODATA;
	return mark_read_text(text, (size_t)length, ret_mark) ? 0 : -EILSEQ;
}

int mark_write(int fd, const struct mark *mark)
{
	char text[MARK_TEXT_SIZE];
	ssize_t written;

	mark_write_text(mark, text);
	written = pwrite(fd, text, MARK_TEXT_SIZE - 1, 0);
	if (written < 0)
		return -errno;
	if (written != MARK_TEXT_SIZE - 1)
		return -ENOSPC;
	return ftruncate(fd, MARK_TEXT_SIZE - 1) ? -errno : 0;
}

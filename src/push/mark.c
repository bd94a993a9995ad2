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

void mark_finish(struct mark *mark, uint32_t number)
{
	size_t count = 0;

	for (size_t i = 0; i < mark->ahead_count; i++)
		if (mark->ahead[i] > number)
			mark->ahead[count++] = mark->ahead[i];
	mark->ahead_count = count;
	mark->done = number;
	mark->current = mark->parts = 0;
}

bool mark_is_ahead(const struct mark *mark, uint32_t number)
{
	for (size_t i = 0; i < mark->ahead_count; i++)
		if (mark->ahead[i] == number)
			return true;
	return false;
}

void mark_write_text(const struct mark *mark, char ret_text[static MARK_TEXT_SIZE])
{
	char *at = ret_text;

	at += snprintf(at, MARK_LINE_LENGTH + 1, "%s %0*" PRIu32 " %0*" PRIu32 " %0*" PRIu32 "\n", prefix,
		       DIGITS, mark->done, DIGITS, mark->current, DIGITS, mark->parts);
	for (size_t i = 0; i < mark->ahead_count; i++)
		at += snprintf(at, MARK_AHEAD_LENGTH + 1, " %0*" PRIu32 "\n", DIGITS, mark->ahead[i]);
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
	const char *at = text + strlen(prefix), *end = text + length;
	struct mark mark = { .ahead_count = 0 };

	if (length < MARK_LINE_LENGTH || memcmp(text, prefix, strlen(prefix)) != 0 ||
	    !take_number(&at, &mark.done) || !take_number(&at, &mark.current) ||
	    !take_number(&at, &mark.parts) || *at++ != '\n')
		return false;
	while (end - at >= MARK_AHEAD_LENGTH && mark.ahead_count < MARK_AHEAD_MAX &&
	       take_number(&at, &mark.ahead[mark.ahead_count]) && *at++ == '\n')
		mark.ahead_count++;
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
	ssize_t length, written;

	mark_write_text(mark, text);
	length = (ssize_t)strlen(text);
	written = pwrite(fd, text, (size_t)length, 0);
	if (written < 0)
		return -errno;
	if (written != length)
		return -ENOSPC;
	return ftruncate(fd, length) ? -errno : 0;
}

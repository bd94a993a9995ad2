/* SPDX-License-Identifier: MIT */
#include "src/linux/proc/proc_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PROC_PATH_MAX = 64 };

int proc_file_open(pid_t pid, const char *name)
{
	char path[PROC_PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	return errno == ENOENT ? -ESRCH : -errno;
}

ssize_t proc_file_fill(int fd, char *bytes, size_t room)
{
	size_t length = 0;

	while (length < room) {
		ssize_t n = read(fd, bytes + length, room - length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		length += (size_t)n;
	}
	return (ssize_t)length;
}

char *proc_file_stat_fields(char *text)
{
	char *name_end = strrchr(text, ')');

	return name_end && name_end[1] == ' ' ? name_end + 2 : NULL;
}

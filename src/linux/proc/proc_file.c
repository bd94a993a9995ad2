/* SPDX-License-Identifier: MIT */
#include "src/linux/proc/proc_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROC_PATH_MAX = 64, TEXT_BYTES_MAX = 4096 };

static int open_path(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	return errno == ENOENT ? -ESRCH : -errno;
}

int proc_file_open(pid_t pid, const char *name)
{
	char path[PROC_PATH_MAX];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return open_path(path);
}

int proc_file_open_thread(pid_t pid, pid_t tid, const char *name)
{
	char path[PROC_PATH_MAX];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
	return open_path(path);
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

bool proc_file_number(pid_t pid, const char *name, const char *label, int base, uint64_t *ret_number)
{
	char text[TEXT_BYTES_MAX];
	const char *found;
	ssize_t length;
	int fd = proc_file_open(pid, name);

	if (fd < 0)
		return false;
	length = proc_file_fill(fd, text, sizeof(text) - 1);
	close(fd);
	text[length > 0 ? length : 0] = '\0';
	found = strstr(text, label);
	if (found)
		*ret_number = strtoull(found + strlen(label), NULL, base);
	return found;
}

char *proc_file_stat_fields(char *text)
{
	char *name_end = strrchr(text, ')');

	return name_end && name_end[1] == ' ' ? name_end + 2 : NULL;
}

int proc_file_next_id(DIR *directory, pid_t *ret_id)
{
	const struct dirent *entry;
	pid_t id = 0;

	do {
		errno = 0; /* strtol() may set it, too */
		entry = readdir(directory);
		if (entry)
			id = (pid_t)strtol(entry->d_name, NULL, 10); /* 0 for what is no id */
	} while (entry && id <= 0);
	if (!entry && errno)
		return -errno;
	*ret_id = entry ? id : 0;
	return 0;
}

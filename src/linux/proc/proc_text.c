/* SPDX-License-Identifier: MIT */
#include "src/linux/proc/proc_text.h"

#include <unistd.h>

#include "src/linux/proc/proc_file.h"

ssize_t proc_text_read(pid_t pid, const char *name, char *text, size_t room)
{
	int fd = proc_file_open(pid, name);
	ssize_t length;

	if (fd < 0)
		return fd;
	length = proc_file_fill(fd, text, room - 1);
	close(fd);
	if (length >= 0)
		text[length] = '\0';
	return length;
}

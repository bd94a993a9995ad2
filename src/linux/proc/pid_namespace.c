/* SPDX-License-Identifier: MIT */
#include "src/linux/proc/pid_namespace.h"

#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { LINK_SIZE = 64 };

static bool read_link(const char *path, char ret_text[static LINK_SIZE])
{
	ssize_t length = readlink(path, ret_text, LINK_SIZE - 1);

	if (length < 0)
		return false;
	ret_text[length] = '\0';
	return true;
}

bool pid_namespace_is_that_of_proc(void)
{
	char text[LINK_SIZE];

	return read_link("/proc/self", text) && strtol(text, NULL, 10) == getpid();
}

/* The link alone does not tell: a process without a number in the namespace of that /proc has none there. */
bool pid_namespace_has_proc(void)
{
	struct statfs file_system;

	return statfs("/proc", &file_system) == 0 && file_system.f_type == PROC_SUPER_MAGIC;
}

bool pid_namespace_is_first(void)
{
	char text[LINK_SIZE];

	/* A fixed number: PROC_PID_INIT_INO of Linux's include/linux/proc_ns.h. */
	return read_link("/proc/self/ns/pid", text) && strcmp(text, "pid:[4026531836]") == 0;
}

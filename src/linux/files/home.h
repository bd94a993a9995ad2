/* SPDX-License-Identifier: MIT */
/*
 * home: which directories a process has, and how to find them again later.
 */
#ifndef LJSPY_HOME_H
#define LJSPY_HOME_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { HOME_BOOT_SIZE = 40 };

struct home {
	pid_t pid;
	uint64_t start_ticks;      /* see struct process */
	uint64_t began_unix_ns;    /* when the process began */
	char boot[HOME_BOOT_SIZE]; /* the kernel's id of the time since the machine started; "": unknown */
	char root[PATH_MAX];       /* its root directory; "" if ljspy has no path to it */
	char directory[PATH_MAX];  /* its current directory, below its root; "": unknown */
};

/* 0 or a negative errno. */
int home_read(pid_t pid, struct home *ret_home);

/* The boot id of this machine; "" if it has none. */
void home_boot(char ret_boot[static HOME_BOOT_SIZE]);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * inherited_files: files that ljspy was started with, and that a command it starts inherits.
 *
 * Those from 3 on without FD_CLOEXEC: ljspy's own all have it. Pipes of a shell (<(...)), sockets of
 * systemd and listeners of nginx come that way.
 */
#ifndef LJSPY_INHERITED_FILES_H
#define LJSPY_INHERITED_FILES_H

#include <stddef.h>

struct inherited_files {
	int *fds; /* ascending; owned */
	size_t count;
};

/* 0, -ENOMEM, or another negative errno if /proc cannot be read. */
int inherited_files_find(struct inherited_files *ret_files);

/* Close all other files from 3 on. For a process of one thread. */
void inherited_files_close_others(const struct inherited_files *files);

/* Close them, and forget them. */
void inherited_files_close(struct inherited_files *files);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * proc_text: read a file of /proc/PID as a text.
 */
#ifndef LJSPY_PROC_TEXT_H
#define LJSPY_PROC_TEXT_H

#include <stddef.h>
#include <sys/types.h>

/* The first room - 1 bytes of /proc/PID/NAME, NUL-terminated; the length or a negative errno. */
ssize_t proc_text_read(pid_t pid, const char *name, char *text, size_t room);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * proc_file: files of /proc/PID, read whole.
 */
#ifndef LJSPY_PROC_FILE_H
#define LJSPY_PROC_FILE_H

#include <stddef.h>
#include <sys/types.h>

/* Open /proc/PID/NAME for reading: a descriptor or a negative errno, -ESRCH without the process. */
int proc_file_open(pid_t pid, const char *name);

/* Read until the room is filled or the file ends: how many bytes, or a negative errno. */
ssize_t proc_file_fill(int fd, char *bytes, size_t room);

/*
 * In the text of a stat file: the fields from the state on, behind the name, which may
 * hold anything. NULL if there are none.
 */
char *proc_file_stat_fields(char *text);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * proc_file: read files of /proc/PID, and the ids that directories of /proc list.
 */
#ifndef LJSPY_PROC_FILE_H
#define LJSPY_PROC_FILE_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Open /proc/PID/NAME for reading: a descriptor to be closed, or a negative errno, -ESRCH if there is none.
 */
int proc_file_open(pid_t pid, const char *name);

/* The same for /proc/PID/task/TID/NAME. */
int proc_file_open_thread(pid_t pid, pid_t tid, const char *name);

/* Read until the room is full or the file ends: how many bytes, or a negative errno. */
ssize_t proc_file_fill(int fd, char *bytes, size_t room);

/*
 * The number, in this base, behind the first label in /proc/PID/NAME. False if it is not in the first 4 KiB,
 * or the file cannot be read.
 */
bool proc_file_number(pid_t pid, const char *name, const char *label, int base, uint64_t *ret_number);

/*
 * The fields of a stat file's text from the state on. They follow the name, which may
 * contain anything. NULL if there are none.
 */
char *proc_file_stat_fields(char *text);

/*
 * The next process or thread that the directory lists; *ret_id is 0 behind the last one. 0 or a negative
 * errno: then others may be there, too.
 */
int proc_file_next_id(DIR *directory, pid_t *ret_id);

#endif

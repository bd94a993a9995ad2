/* SPDX-License-Identifier: MIT */
/*
 * new_file: a file that gets its name only when it is ready.
 *
 * Nothing is left behind, however ljspy ends. If O_TMPFILE or linking by /proc does
 * not work, the file has a temporary name derived from its final one; the next ljspy
 * takes over what a killed one left there. Everything goes by the directory's
 * descriptor and needs write permission there each time.
 */
#ifndef LJSPY_NEW_FILE_H
#define LJSPY_NEW_FILE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

struct new_file {
	int fd;          /* -1 if not open */
	int directory;   /* -1 if not open */
	char *temporary; /* its temporary name there; NULL if it has none, or its final name */
};

extern const struct new_file new_file_none;

/*
 * Create a file in this directory that will get this name. 0, or a negative errno
 * with nothing created.
 */
int new_file_open(const char *directory, const char *name, mode_t mode, struct new_file *ret_file);

/* Give it a name in its directory, replacing a file of that name. 0 or a negative errno. */
int new_file_link(struct new_file *file, const char *name);

/*
 * Give it a name in its directory that no running process uses. Replaces a file of
 * that name if the process that made it has ended; *ret_replaced says so. 0 or a
 * negative errno; -EEXIST if the name is in use.
 */
int new_file_claim(struct new_file *file, const char *name, bool *ret_replaced);

/*
 * Open another stream to write and read it. The caller closes it before the file gets
 * its name, to learn whether everything was written. 0 or a negative errno.
 */
int new_file_stream(const struct new_file *file, FILE **ret_stream);

/* Close it; it is gone unless it has its name. No effect if it is not open. */
void new_file_close(struct new_file *file);

#endif

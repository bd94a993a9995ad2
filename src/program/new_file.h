/* SPDX-License-Identifier: MIT */
/*
 * new_file: a file that has no name until it is given one.
 *
 * So nothing is left behind, whatever ends ljspy. Where the file system, or
 * the way to it, knows no such files, it has a name that is derived from the
 * one it is to have: what a killed ljspy has left there is taken over by the
 * next. Everything is done by the directory's descriptor, and needs the right
 * to write there each time.
 */
#ifndef LJSPY_NEW_FILE_H
#define LJSPY_NEW_FILE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

struct new_file {
	int fd;			/* -1 if not open */
	int directory;		/* -1 if not open */
	char *temporary;	/* its name there; NULL if it has none, or its own */
};

extern const struct new_file new_file_none;

/*
 * In this directory, and to be called so. 0, or a negative errno and nothing
 * has been made.
 */
int new_file_open(const char *directory, const char *name, mode_t mode, struct new_file *ret_file);

/* Give it a name in its directory, in place of what has it. 0 or a negative errno. */
int new_file_link(struct new_file *file, const char *name);

/*
 * Give it a name in its directory that nobody uses: a file of that name may be
 * there if the process that made it has ended. -EEXIST if one is in use; *ret_replaced tells
 * whether there was one.
 */
int new_file_claim(struct new_file *file, const char *name, bool *ret_replaced);

/*
 * Another stream to write to it and read from it, which the caller closes: so it
 * is known whether all could be written before it gets its name. 0 or a negative errno.
 */
int new_file_stream(const struct new_file *file, FILE **ret_stream);

/* Close it; it is gone unless it was given its name. No effect on one that is not open. */
void new_file_close(struct new_file *file);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * output_file: a file that ljspy knows to be writable before it needs it.
 *
 * A regular file appears, whole, when it is committed; until then an older file of
 * that name stays as it is. Devices, pipes and standard output are written directly. Opening a FIFO waits for
 * its reader, and says so; the signals of interruption_signals() end ljspy meanwhile.
 */
#ifndef LJSPY_OUTPUT_FILE_H
#define LJSPY_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "src/program/new_file.h"

struct output_file {
	FILE *stream;         /* NULL if not open */
	const char *path;     /* as given; "-" for standard output */
	char *name;           /* in its directory; NULL if written directly */
	struct new_file file; /* will get the name */
};

/* path is borrowed. 0, or a negative errno with nothing created. */
int output_file_open(const char *path, struct output_file *ret_file);

/*
 * In a directory like /tmp, which has the sticky bit, a user may write to another's file and yet not put a
 * new one in its place. False if that is so of this path in its directory.
 */
bool output_file_may_replace(const char *path, const char *directory);

/* Would one overwrite the other? */
bool output_file_is_same(const struct output_file *a, const struct output_file *b);

/* The directory that a path is in; the caller frees it. NULL when memory is short. */
char *output_file_directory(const char *path);

/* Close the stream and give the file its name. 0, or a negative errno with nothing left behind. */
int output_file_commit(struct output_file *file);

/*
 * Give a file its name before it is whole, for files that can be read as they grow.
 * A regular file replaces one of that name, and stays whatever follows. 0 or a
 * negative errno.
 */
int output_file_publish(struct output_file *file);

/* Close the file and leave nothing behind. No effect if it is not open. */
void output_file_abandon(struct output_file *file);

/*
 * A file without a name, to write and read: in $TMPDIR or /tmp, else in memory.
 * The caller closes the stream. 0 or a negative errno.
 */
int output_file_scratch(FILE **ret_stream);

/*
 * What a writer fails with that says -EIO of any error of its stream: the negative of errno, to be 0 before
 * it writes, where that tells more.
 */
int output_file_error(int error);

#endif

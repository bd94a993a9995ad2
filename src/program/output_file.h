/* SPDX-License-Identifier: MIT */
/*
 * output_file: a file that is known to be writable before it is needed.
 *
 * A regular file comes into being, whole, when it is committed; until then
 * what had that name stays as it is. Devices, pipes and standard output are
 * written directly.
 */
#ifndef LJSPY_OUTPUT_FILE_H
#define LJSPY_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "src/program/new_file.h"

struct output_file {
	FILE *stream;		/* NULL if not open */
	const char *path;	/* as given; "-" for standard output */
	char *name;		/* in its directory; NULL if it is written directly */
	struct new_file file;	/* what is to have the name */
};

/* path is borrowed. 0, or a negative errno and nothing has been created. */
int output_file_open(const char *path, struct output_file *ret_file);

/* Would one be written over the other? */
bool output_file_is_same(const struct output_file *a, const struct output_file *b);

/* The directory that a path is in; the caller frees it. NULL when memory is short. */
char *output_file_directory(const char *path);

/* Put everything in place: 0 or a negative errno, in which case nothing is left behind. */
int output_file_commit(struct output_file *file);

/*
 * Give a file its name before it is whole, for it can be used as it grows. A
 * regular file takes the place of what had the name; it stays, whatever
 * follows. 0 or a negative errno.
 */
int output_file_publish(struct output_file *file);

/* Leave no trace. No effect on a file that is not open. */
void output_file_abandon(struct output_file *file);

/*
 * A file without a name, to write to and read from: where temporary files are
 * kept, else in memory. 0 or a negative errno.
 */
int output_file_scratch(FILE **ret_stream);

#endif

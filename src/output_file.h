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

struct output_file {
	FILE *stream;		/* NULL if not open */
	const char *path;	/* as given; "-" for standard output */
	char *temporary;	/* what is to be renamed; NULL if written directly */
};

/* path is borrowed. 0, or a negative errno and nothing has been created. */
int output_file_open(const char *path, struct output_file *ret_file);

/* Put everything in place: 0 or a negative errno, in which case nothing is left behind. */
int output_file_commit(struct output_file *file);

/*
 * Give a file its name before it is whole, for it can be used as it grows. A
 * regular file takes the place of what had the name; it stays, whatever
 * follows. 0 or a negative errno.
 */
int output_file_publish(struct output_file *file);

/*
 * A file without a name, to write to and read from: on the disk of the output
 * if that is a regular file, else where temporary files are kept, else in
 * memory. 0 or a negative errno.
 */
int output_file_scratch(const struct output_file *output, FILE **ret_stream);

/* Leave no trace. No effect on a file that is not open. */
void output_file_abandon(struct output_file *file);

#endif

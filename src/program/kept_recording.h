/* SPDX-License-Identifier: MIT */
/*
 * kept_recording: the recording that ljspy renders an output from at the end.
 *
 * The file is beside the output, named after it with ".unfinished.ljspy" appended,
 * or else in a directory for temporary files. It has its name from the moment there
 * is something to lose until the output is whole. If the output is never finished,
 * `ljspy report` can read it. It replaces what an earlier recording left under that
 * name, but not a file that another ljspy is writing.
 */
#ifndef LJSPY_KEPT_RECORDING_H
#define LJSPY_KEPT_RECORDING_H

#include <stdbool.h>
#include <stdio.h>

#include "src/program/new_file.h"
#include "src/program/output_file.h"

struct kept_recording {
	FILE *stream; /* to write and read; NULL if not open */
	struct new_file file;
	char *directory, *base; /* where it is, and the name it is derived from; NULL in memory */
	char *name;             /* in the directory; NULL until it has one */
	char *path;             /* directory and name; NULL until it has one */
	bool beside;            /* it is in the output's directory */
};

/* base is the file name to derive its name from if the output has none. 0 or a negative errno. */
int kept_recording_open(const struct output_file *output, const char *base, struct kept_recording *ret_kept);

/* Give it its name; tell the user if it is not beside the output. False if it can have none. */
bool kept_recording_name(struct kept_recording *kept);

/*
 * Move it to another file system, because this one has no room. Replaces the stream. What is left behind is
 * for the caller to remove, once nobody is told to find it there.
 * False, with nothing changed, if no place will do.
 */
bool kept_recording_move(struct kept_recording *kept, struct kept_recording *ret_behind);

/* Is nothing in it, as on a disk that was full from the start? */
bool kept_recording_is_empty(const struct kept_recording *kept);

/* Delete it, or tell the user that it stays, and close it. No effect if it is not open. */
void kept_recording_remove(struct kept_recording *kept);

/*
 * The path that the kept recording of this output gets first. The caller frees it;
 * NULL when memory is short.
 */
char *kept_recording_path(const char *output);

/* Close it; it stays if it has a name. No effect if it is not open. */
void kept_recording_close(struct kept_recording *kept);

#endif

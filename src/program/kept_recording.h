/* SPDX-License-Identifier: MIT */
/*
 * kept_recording: the recording that an output is rendered from at the end.
 *
 * It is in a file beside the output, whose name has ".unfinished.ljspy" behind
 * it, or else where temporary files are kept. It has its name from when there
 * is something to lose until the output is whole: should that never be, it is
 * what `ljspy report` takes. What an earlier recording has left under that
 * name, it replaces; what another one writes to just now, it does not.
 */
#ifndef LJSPY_KEPT_RECORDING_H
#define LJSPY_KEPT_RECORDING_H

#include <stdbool.h>
#include <stdio.h>

#include "src/program/new_file.h"
#include "src/program/output_file.h"

struct kept_recording {
	FILE *stream;		/* to write to and read from; NULL if there is none */
	struct new_file file;
	char *directory, *base;	/* where it is, and its name without a number */
	char *name;		/* there; NULL as long as it has none */
	char *path;		/* to it; NULL likewise */
	bool beside;		/* the output */
};

/* base: what is to be made, as a file's name, where the output has none. 0 or a negative errno. */
int kept_recording_open(const struct output_file *output, const char *base, struct kept_recording *ret_kept);

/* Give it its name, and tell the user if it is not beside the output. False if it can have none. */
bool kept_recording_name(struct kept_recording *kept);

/*
 * Have all of it elsewhere, since there is no room where it is. The stream is
 * another one then. False, and nothing has changed, if there is no such place.
 */
bool kept_recording_move(struct kept_recording *kept);

/* It is no longer needed. */
void kept_recording_remove(struct kept_recording *kept);

/* What an output to this path may have left, as far as its name tells. NULL when memory is short. */
char *kept_recording_path(const char *output);

/* Close it, and leave it where it is if it has a name. No effect if there is none. */
void kept_recording_close(struct kept_recording *kept);

#endif

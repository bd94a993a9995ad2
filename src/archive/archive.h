/* SPDX-License-Identifier: MIT */
/*
 * archive: a directory of recordings that one ljspy adds to, and keeps within bounds.
 *
 * The oldest recordings go first, by their order and not by the clock, so a clock that is
 * set does not empty the archive. The one that is being written never goes.
 */
#ifndef LJSPY_ARCHIVE_H
#define LJSPY_ARCHIVE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "src/archive/archive_list.h"

struct archive_bounds {
	uint64_t keep_ns;  /* recorded time to keep */
	uint64_t bytes;    /* of all files together */
	uint64_t every_ns; /* no recording counts as longer than twice that */
};

struct archive {
	const char *path;
	int directory;            /* locked */
	bool is_made;             /* it was not there before */
	struct archive_list list; /* the last one is being written while there is a stream */
	FILE *stream;             /* NULL if none is being written */
	size_t size;              /* of the list's array */
	uint32_t last_number;     /* of all that were begun */
	uint32_t first_own;       /* the first number of those begun since it was opened */
	struct archive_bounds bounds;
};

/*
 * Open the directory, and make it if its parent exists. 0, or a negative errno;
 * -EBUSY if another ljspy adds to it, -ENOLCK if it cannot be locked. path must outlive the archive. Closing
 * removes a directory that was made and is empty, and so does an error.
 */
int archive_open(const char *path, const struct archive_bounds *bounds, struct archive *ret_archive);
void archive_close(struct archive *archive);

/*
 * Begin a recording, which has its name at once; sets stream. A directory that was moved away or removed
 * is made again, or what has its name now is taken. 0 or a negative errno.
 */
int archive_begin(struct archive *archive, uint64_t start_unix_ns);

/* Close the stream. 0 or a negative errno. */
int archive_end(struct archive *archive);

/* Bytes of the recording that is being written. */
uint64_t archive_written(const struct archive *archive);

/*
 * Delete what exceeds the bounds; nothing of a directory that was moved away. 0 or a negative errno, from the
 * first file that cannot be deleted.
 */
int archive_prune(struct archive *archive);

/*
 * Delete all recordings that were begun in this directory, while none is being written; nothing of a
 * directory that was moved away. 0 or a negative errno.
 */
int archive_drop_own(struct archive *archive);

#endif

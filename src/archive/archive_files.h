/* SPDX-License-Identifier: MIT */
/*
 * archive_files: the recordings of archives, by time.
 */
#ifndef LJSPY_ARCHIVE_FILES_H
#define LJSPY_ARCHIVE_FILES_H

#include <stdbool.h>

#include "src/options/options.h"

/*
 * Replace each directory among options->recordings with its recordings of the times that
 * --since and --until give; options->named keeps what was given. A time without a date, or after the
 * beginning, becomes one with a date. No effect without a directory. False after telling the user what is
 * wrong.
 */
bool archive_files_find(struct options *options);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * heap_files: `ljspy report` and `ljspy diff` of heap files.
 */
#ifndef LJSPY_HEAP_FILES_H
#define LJSPY_HEAP_FILES_H

#include <stdbool.h>

#include "src/commands/commands.h"
#include "src/options/options.h"

/* Is the first file a heap? It has to be a regular file: a pipe could not be read again. */
bool heap_files_are_given(const struct options *options);

/* Report one heap, or several as a series; or compare two. Returns the exit status. */
enum exit_status heap_files_run(const struct invocation *invocation);

#endif

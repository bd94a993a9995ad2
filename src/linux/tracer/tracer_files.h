/* SPDX-License-Identifier: MIT */
/*
 * tracer_files: how many files ljspy keeps open for the threads that it looks at.
 */
#ifndef LJSPY_TRACER_FILES_H
#define LJSPY_TRACER_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "src/linux/tracer/tracer.h"

enum { FILES_OPEN_DEFAULT = 512 };

/*
 * Keeping files open for each thread saves much time, but there may be more threads than
 * ljspy can open files. So reserve files before keeping them open: false if they are too
 * many. At first FILES_OPEN_DEFAULT are allowed. Say of each reserved file that it has been
 * opened, and close all before they are released.
 */
void tracer_allow_files(struct tracer *tracer, size_t count);
bool tracer_reserve_files(struct tracer *tracer, size_t count);
void tracer_note_opened(struct tracer *tracer);
void tracer_release_files(struct tracer *tracer, size_t count, size_t opened);

/*
 * Leave room for so many other files: 0, or -EMFILE if those open, or reserved and to be opened, are too
 * many.
 */
int tracer_leave_files(struct tracer *tracer, size_t count);

#endif

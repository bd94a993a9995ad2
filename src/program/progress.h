/* SPDX-License-Identifier: MIT */
/*
 * progress: one line on the terminal that shows how far a recording is.
 *
 * Shows nothing if standard error is not a terminal, and nothing while that takes no text, as after Ctrl-S:
 * recording must not wait.
 */
#ifndef LJSPY_PROGRESS_H
#define LJSPY_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "output/sample/figures.h"

struct progress {
	bool wanted;
	bool shown;
	uint64_t start_ns;
	uint64_t duration_ns; /* 0 if unknown */
};

void progress_begin(struct progress *progress, uint64_t duration_ns);
void progress_show(struct progress *progress, const struct figures *so_far);
/* Remove the line, before any other message. */
void progress_end(struct progress *progress);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * progress: how a long piece of work goes on, in one line of the terminal.
 *
 * Nothing is shown where standard error is not a terminal.
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
	uint64_t duration_ns;	/* 0 if it is not known */
};

void progress_begin(struct progress *progress, uint64_t duration_ns);
void progress_show(struct progress *progress, const struct figures *so_far);
/* Take it away, before anything else is said. */
void progress_end(struct progress *progress);

#endif

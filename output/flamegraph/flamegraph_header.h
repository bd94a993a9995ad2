/* SPDX-License-Identifier: MIT */
/*
 * flamegraph_header: the text above the picture on the recording.
 */
#ifndef LJSPY_FLAMEGRAPH_HEADER_H
#define LJSPY_FLAMEGRAPH_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/sample/figures.h"
#include "output/sample/session.h"

enum { FLAMEGRAPH_HEADER_LINES_MAX = 10, FLAMEGRAPH_HEADER_LINE_SIZE = 2048 };

/* Lines are escaped as ESCAPE_PLAIN. The first is the title. */
struct flamegraph_header {
	char lines[FLAMEGRAPH_HEADER_LINES_MAX][FLAMEGRAPH_HEADER_LINE_SIZE];
	size_t count;
};

/* Replace all lines by those on a session and its figures. */
void flamegraph_header_fill(struct flamegraph_header *header, const struct session *session,
			    const struct figures *figures);

/* Add a line on what is uncertain or missing. baseline: of the baseline. NULL or "" adds none. */
void flamegraph_header_add_uncertain(struct flamegraph_header *header, const char *text, bool baseline);

/* Add a line on the baseline of the comparison. name may be NULL. */
void flamegraph_header_add_baseline(struct flamegraph_header *header, const struct session *session,
				    const char *name, uint64_t samples);

/* Add a line on the number of frames left out, each of less than this part (0 to 1) of all weight. */
void flamegraph_header_add_left_out(struct flamegraph_header *header, size_t frames, double part);

#endif

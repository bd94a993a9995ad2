/* SPDX-License-Identifier: MIT */
/*
 * view: how samples are to be shown, in whichever format.
 */
#ifndef LJSPY_VIEW_H
#define LJSPY_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "output/sample/weight.h"

/* The time to show, after the beginning of the session; until_ns 0 for up to the last sample. */
struct time_span {
	uint64_t since_ns, until_ns;
};

/* What does not apply to a format has no effect. */
struct view {
	enum weight_kind weight;
	bool by_line;		/* a frame is a function and line, not a function */
	bool annotate;		/* mark compiled Lua functions with _[j] */
	bool inverted;		/* callees at the root */
	bool heatmap;		/* of a picture: with a map of time, of which parts can be chosen */
	struct time_span span;	/* the time that it shows */
	double min_percent;	/* what has a smaller share is left out */
	const char *group;	/* what the outermost frame tells of each stack, "module"; NULL: nothing */
};

#endif

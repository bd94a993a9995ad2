/* SPDX-License-Identifier: MIT */
/*
 * view: how to show samples, in any format.
 */
#ifndef LJSPY_VIEW_H
#define LJSPY_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "output/sample/weight.h"

struct source_reader;

/* Texts leave out smaller shares, in percent, unless the user gives another one. */
#define VIEW_TEXT_MIN_PERCENT 0.5

/* The time to show, from the beginning of the session; until_ns 0 means up to the last sample. */
struct time_span {
	uint64_t since_ns, until_ns;
};

/* A format ignores members that do not apply to it. */
struct view {
	enum weight_kind weight;
	bool by_line;          /* frames differ by line, not only by function */
	bool few_labels;       /* of samples: for services that keep a series for each combination */
	bool annotate;         /* mark compiled Lua functions with _[j] */
	bool inverted;         /* callees at the root */
	bool heatmap;          /* add a heat map of time, in which the user selects a range, to a picture */
	struct time_span span; /* of the heat map */
	bool by_clock;         /* name times by the clock: of several recordings each has its own beginning */
	double min_percent;    /* leave out smaller shares */
	struct source_reader *source; /* show the lines of source files, which this reads; NULL: do not */
	const char *group;            /* the kind of the added outermost frame, "module"; NULL: none */
};

#endif

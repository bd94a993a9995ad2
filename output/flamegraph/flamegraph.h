/* SPDX-License-Identifier: MIT */
/*
 * flamegraph: a profile as an interactive picture in one file.
 *
 * The file is self-contained. If scripts run (any browser, also from file://),
 * it is an application: the scripts of output/flamegraph/ draw the frames from
 * the data in the file, at any width and in every view. If they do not (image
 * viewers, previews, mail), the plain shapes in the file show one view at a
 * fixed width (flamegraph_static.h).
 *
 * The data, each in a <metadata> of that id, one line each:
 *
 *	functions  kind function			kind: a letter, see color.h
 *	lines      index in functions, function and line
 *	frames     depth line [mark [own_samples [left_out_ns [state...]]]]
 *	baseline   the same, of the other profile; only in a comparison
 *	changed    index in functions; only if no others count as changed
 *
 *	files, source-N	the sources of functions, see output/source/source_data.h
 *
 * A tab in place of a space ends a function's name, and another one the package
 * root at the beginning of its file. functions and lines are in alphabetical order. frames has callers before
 * callees; line is an index in lines. mark is 1 for compiled code, plus 2 if
 * the line is the nearest known one, plus 4 if only the function is known.
 * left_out_ns is the weight of callees too small to be listed. Each state is a
 * letter for the VM's state (color.h) and the weight of its samples in
 * nanoseconds; their sum is the frame's own weight. Zeros at the end of a line
 * are not written. flamegraph_samples.h describes the samples behind the
 * frames.
 */
#ifndef LJSPY_FLAMEGRAPH_H
#define LJSPY_FLAMEGRAPH_H

#include <stdbool.h>
#include <stdio.h>

#include "output/flamegraph/flamegraph_samples.h"
#include "output/sample/figures.h"
#include "output/sample/session.h"
#include "output/views/changed.h"
#include "output/views/profile.h"

enum {
	/*
	 * The data leaves out frames with less than 1 / SMALLEST_PART of all
	 * weight. The limit rises until at most FRAMES_MAX frames remain. The
	 * picture says how many are left out.
	 */
	FLAMEGRAPH_SMALLEST_PART = 100000,
	FLAMEGRAPH_FRAMES_MAX = 200000,
};

/* The options for a profile for flamegraph_write(): frames differ in all ways, and the viewer merges them. */
struct profile_options flamegraph_profile_options(enum weight_kind weight);

struct source_reader;

struct flamegraph_options {
	/* The first view; the user can switch. */
	bool by_line;  /* frames differ by line, not only by function */
	bool inverted; /* callees at the root, with their callers on top */

	double min_percent; /* leave out frames with a smaller share, too */

	/*
	 * The profile to compare with: colours show how a frame's share of all
	 * weight changed since. It has the same options, and functions interned
	 * in the same table. NULL for no comparison.
	 */
	const struct profile *baseline;
	const struct changed *changed; /* the only functions to show as changed; NULL: all may be */
	const char *baseline_name;     /* for example its file; NULL if it has none */

	/* Lines on what is uncertain or missing of the profile and of the baseline; NULL or "": nothing. */
	const char *uncertain, *baseline_uncertain;

	const struct flamegraph_samples *samples; /* of this profile; NULL for none */
	uint64_t begin_unix_ns; /* when its times begin, to name them by the clock; 0: do not */
	bool heatmap;           /* show the times of the samples at first */

	struct source_reader *source; /* show the lines of source files at first; NULL: they are left out */

	bool page; /* write HTML, which small screens show better; else SVG */
};

/* Write the picture. All pointers are borrowed. 0, -ENOMEM or -EIO (the stream's own error is in errno). */
int flamegraph_write(FILE *out, const struct profile *profile, const struct session *session,
		     const struct figures *figures, const struct flamegraph_options *options);

#endif

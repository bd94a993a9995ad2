/* SPDX-License-Identifier: MIT */
/*
 * flamegraph: a profile as an interactive picture in one file.
 *
 * The file needs nothing but itself. Where scripts run (any browser, also
 * from file://) it is an application: output/flamegraph/ draws the frames from
 * the data in the file, at any width and in every view. Where they do not
 * (image viewers, previews, mail) the plain shapes in the file show the
 * picture that was asked for at a fixed width (flamegraph_static.h).
 *
 * The data, each in a <metadata> of that id, one line each:
 *
 *	functions  kind function			kind: a letter, see look.h
 *	lines      index in functions, function and line
 *	frames     depth line [mark [own_samples [left_out_ns [state...]]]]
 *	baseline   the same, of the other profile; only in a comparison
 *
 * functions and lines are in alphabetical order. frames has callers before
 * callees; line is an index in lines. mark is 1 for compiled code, plus 2
 * where the line is the nearest known one, plus 4 where only the function is
 * known. left_out_ns is the weight of callees too small to be listed. Each
 * state is a letter for what the VM was doing (look.h) and the weight of such
 * samples in nanoseconds; their sum is the frame's own weight. What is zero
 * at the end of a line is not written. With a heat map there is the time of
 * each sample, too: see heatmap.h.
 */
#ifndef LJSPY_FLAMEGRAPH_H
#define LJSPY_FLAMEGRAPH_H

#include <stdbool.h>
#include <stdio.h>

#include "output/flamegraph/heatmap.h"
#include "output/sample/figures.h"
#include "output/sample/session.h"
#include "output/views/profile.h"

enum {
	/*
	 * A frame with less than this part of all weight is left out of the
	 * data. The limit rises until at most so many frames remain. The
	 * picture says how many were left out.
	 */
	FLAMEGRAPH_SMALLEST_PART = 100000,
	FLAMEGRAPH_FRAMES_MAX = 200000,
};

/* How a profile for flamegraph_write() must have been made: a viewer merges it as is wanted. */
struct profile_options flamegraph_profile_options(enum weight_kind weight);

struct flamegraph_options {
	/* Shown first; a viewer can switch. */
	bool by_line;		/* lines apart, not only functions */
	bool inverted;		/* callees at the root: their callers lie on them */

	double min_percent;	/* frames with a smaller share are left out, too */

	/*
	 * What it is compared with: colours tell how a frame's share of all
	 * weight changed since. Made as the profile was, with functions
	 * interned in the same table. NULL for no comparison.
	 */
	const struct profile *baseline;
	const char *baseline_name;	/* a file, say; NULL if it has none */

	const struct heatmap *heatmap;	/* of this profile, to be shown above it; NULL for none */

	bool page;		/* HTML, which small screens show better; else SVG */
};

/* 0, -ENOMEM or -EIO (the stream's own error is in errno). */
int flamegraph_write(FILE *out, const struct profile *profile, const struct session *session,
		     const struct figures *figures, const struct flamegraph_options *options);

#endif

/*
 * flamegraph: a profile as an interactive picture in one SVG file.
 *
 * The file needs nothing but itself. Where scripts run (any browser, also
 * from file://) it is an application: output/flamegraph.js draws the frames
 * from the data in the file's <metadata>, at any width, with zoom and search.
 * Where they do not (image viewers, previews, mail) the plain shapes in the
 * file show the same picture at a fixed width.
 *
 * <metadata id="labels"> holds one line a label, in alphabetical order: a
 * letter for its kind (see flamegraph.c) and the label. <metadata id="frames">
 * holds one line a frame, callers before callees: depth, label, total_ns,
 * own_ns, total_samples, own_samples, compiled_ns.
 */
#ifndef LJSPY_FLAMEGRAPH_H
#define LJSPY_FLAMEGRAPH_H

#include <stdbool.h>
#include <stdio.h>

#include "output/figures.h"
#include "output/profile.h"
#include "output/session.h"

enum {
	/*
	 * A frame with less than this part of all weight is left out; its
	 * weight stays in its callers. The limit rises until at most so many
	 * frames remain. The picture says how many were left out.
	 */
	FLAMEGRAPH_SMALLEST_PART = 100000,
	FLAMEGRAPH_FRAMES_MAX = 200000,
	/* Deeper frames are only seen where scripts run. */
	FLAMEGRAPH_STATIC_ROWS_MAX = 500,
};

struct flamegraph_options {
	bool inverted;		/* root at the top; a viewer can turn it over */
};

/* 0, -ENOMEM or -EIO (the stream's own error is in errno). */
int flamegraph_write(FILE *out, const struct profile *profile, const struct session *session,
		     const struct figures *figures, const struct flamegraph_options *options);

#endif

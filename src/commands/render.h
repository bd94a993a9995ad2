/* SPDX-License-Identifier: MIT */
/*
 * render: samples into a file, in any format, for all commands that do so.
 */
#ifndef LJSPY_RENDER_H
#define LJSPY_RENDER_H

#include <stdbool.h>

#include "output/formats/format.h"
#include "src/options/options.h"
#include "src/program/output_file.h"

/* Open a file to write to, named by that option; false if the user had to be told that it cannot be. */
bool render_open(struct output_file *file, const char *path, const char *option);

/*
 * Commit the file, or abandon it if what was to write it has failed with this
 * negative errno (for -EIO, the stream's own error is in errno). False if the
 * user had to be told that it failed.
 */
bool render_finish(struct output_file *file, int error);

/* How the options want it shown. */
struct view render_view(const struct options *options, const struct session *session);

/* Write the file whole, and finish it. */
bool render(struct output_file *file, const struct options *options, struct sample_source *source,
	    const struct session *session, const struct figures *figures);

/* Tell where it is. */
void render_tell(const char *path, const struct format *format);

#endif

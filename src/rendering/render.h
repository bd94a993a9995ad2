/* SPDX-License-Identifier: MIT */
/*
 * render: write samples to a file, in any format.
 */
#ifndef LJSPY_RENDER_H
#define LJSPY_RENDER_H

#include <stdbool.h>

#include "output/formats/format.h"
#include "output/views/view.h"
#include "src/options/options.h"
#include "src/program/output_file.h"

/* Open a file to write to; option names its option in a message. False after telling the user what failed. */
bool render_open(struct output_file *file, const char *path, const char *option);

/*
 * Commit the file, or abandon it if error is not 0. error is the writer's negative errno;
 * for -EIO, errno holds the stream's error. False after telling the user what failed.
 */
bool render_finish(struct output_file *file, int error);

/* The same in parts: commit or abandon it without a word, 0 or a negative errno; and tell what failed. */
int render_end(struct output_file *file, int error);
void render_explain_open(const char *path, const char *option, int error);
void render_explain_write(const char *path, int error);

/* The view that the options ask for, of the time that was chosen. */
struct view render_view(const struct options *options, const struct session *session, struct time_span span);

/* Write the whole file and finish it, as render_finish() does. */
bool render(struct output_file *file, const struct options *options, struct sample_source *source,
	    const struct session *session, const struct figures *figures, struct time_span span);

/* Tell where the output is, unless it is standard output. */
void render_tell(const char *path, bool is_picture);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * format: the ways in which samples can be written, one table.
 *
 * Every format is a view of a recording: `record` writes it at once, `report`
 * later, by the same function.
 */
#ifndef LJSPY_FORMAT_H
#define LJSPY_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "output/recording/sample_source.h"
#include "output/sample/figures.h"
#include "output/sample/session.h"
#include "output/views/comparison.h"
#include "output/views/view.h"

struct format {
	const char *name;	/* as -f has it */
	const char *suffix;	/* of files, without the dot */
	const char *summary;	/* for the manual: what reads it */
	bool picture;		/* to be opened in a browser */
	bool recording;		/* the samples themselves: can be written as they come */
	/* 0, -ENOMEM, -EIO (the stream's own error is in errno), or what the source had. */
	int (*write)(FILE *out, struct sample_source *source, const struct session *session,
		     const struct figures *figures, const struct view *view);
	/* How the second differs from the first; NULL if it cannot show that. */
	int (*compare)(FILE *out, const struct side *before, const struct side *after,
		       const struct view *view);
};

extern const struct format formats[];
extern const size_t format_count;

/* NULL if there is none. */
const struct format *format_by_name(const char *name);
/* By the suffix of a file's name; NULL if it tells none. */
const struct format *format_by_path(const char *path);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * format: a table of all output formats.
 *
 * Every format is a view of a recording. `record` writes it at once, `report`
 * later, with the same function.
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
	const char *name;    /* the argument of -f */
	const char *suffix;  /* of files, without the dot */
	const char *summary; /* for the manual: what reads the format */
	unsigned int heeds;  /* the options that it heeds, of enum heeds */
	bool picture;        /* a browser opens it */
	bool recording;      /* holds the samples themselves; ljspy can write it while sampling */
	/* Write all samples. 0, -ENOMEM, -EIO (the stream's own error is in errno), or the source's error. */
	int (*write)(FILE *out, struct sample_source *source, const struct session *session,
		     const struct figures *figures, const struct view *view);
	/* Write how after differs from before; same results. NULL if the format cannot show that. */
	int (*compare)(FILE *out, const struct side *before, const struct side *after,
		       const struct view *view);
};

extern const struct format formats[];
extern const size_t format_count;

/* The format with this name; NULL if there is none. */
const struct format *format_by_name(const char *name);
/* The format of a file by the suffix of its name; NULL if no format has it. */
const struct format *format_by_path(const char *path);

#endif

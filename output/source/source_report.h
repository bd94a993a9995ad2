/* SPDX-License-Identifier: MIT */
/*
 * source_report: source files as text, with the time of their lines.
 *
 * For each file, its lines with time and a few lines around them. Shares are of all time.
 */
#ifndef LJSPY_SOURCE_REPORT_H
#define LJSPY_SOURCE_REPORT_H

#include <stdio.h>

#include "output/recording/sample_source.h"
#include "output/sample/figures.h"
#include "output/sample/session.h"
#include "output/source/source_text.h"
#include "output/views/view.h"

/* view->source reads the files. 0, -ENOMEM, -EIO, or the source's error, as struct format. */
int source_report_write(FILE *out, struct sample_source *source, const struct session *session,
			const struct figures *figures, const struct view *view);

#endif

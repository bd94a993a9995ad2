/* SPDX-License-Identifier: MIT */
/*
 * text_report: functions by the time they took, for reading in a terminal.
 *
 * First a table of functions (or lines, in the line view), by their own time,
 * then for each of them who called it and what it called. Every share has the
 * standard error of sampling (output/views/tally.h) behind it. What has less than
 * TEXT_REPORT_MIN_PERCENT, or view->min_percent, in total is left out.
 */
#ifndef LJSPY_TEXT_REPORT_H
#define LJSPY_TEXT_REPORT_H

#include <stdio.h>

#include "output/recording/sample_source.h"
#include "output/sample/figures.h"
#include "output/sample/session.h"
#include "output/views/view.h"

#define TEXT_REPORT_MIN_PERCENT 0.5

/* 0, -ENOMEM, -EIO (the stream's own error is in errno), or what the source had. */
int text_report_write(FILE *out, struct sample_source *source, const struct session *session,
		      const struct figures *figures, const struct view *view);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * text_report: functions by their time, for a terminal.
 *
 * First comes a table of functions (or lines, in the line view), by own time.
 * Then follow the callers and callees of each. The standard error of sampling
 * (output/views/tally.h) follows every share. Functions with a total below
 * view->min_percent (VIEW_TEXT_MIN_PERCENT by default) are left out.
 */
#ifndef LJSPY_TEXT_REPORT_H
#define LJSPY_TEXT_REPORT_H

#include <stdio.h>

#include "output/recording/sample_source.h"
#include "output/sample/figures.h"
#include "output/sample/session.h"
#include "output/views/view.h"

/* See struct format. */
int text_report_write(FILE *out, struct sample_source *source, const struct session *session,
		      const struct figures *figures, const struct view *view);

#endif

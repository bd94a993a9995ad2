/* SPDX-License-Identifier: MIT */
/*
 * firefox: the processed profile format of https://profiler.firefox.com.
 *
 * ljspy writes a version in which all threads share the tables of frames and
 * stacks; the profiler upgrades it. Times and weights are milliseconds with
 * six decimals. Lua functions count as JavaScript, so that the profiler's
 * choice of stacks (all, JavaScript, native) means all, Lua, native. The
 * colours of frames show their kinds, subcategories show whether Lua was
 * compiled. The session and the figures are in the profile's additional
 * information.
 */
#ifndef LJSPY_FIREFOX_H
#define LJSPY_FIREFOX_H

#include <stdio.h>

#include "output/recording/sample_source.h"
#include "output/sample/figures.h"
#include "output/sample/session.h"
#include "output/views/view.h"

/* See struct format. */
int firefox_write(FILE *out, struct sample_source *source, const struct session *session,
		  const struct figures *figures, const struct view *view);

#endif

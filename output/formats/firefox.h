/* SPDX-License-Identifier: MIT */
/*
 * firefox: the processed profile format of https://profiler.firefox.com.
 *
 * Written is a version whose tables of frames and stacks are common to all
 * threads; the profiler upgrades it. Times and weights are milliseconds, with
 * six decimals. Lua functions count as JavaScript, so that the profiler's
 * choice of stacks, all, JavaScript or native, is one of all, Lua or native.
 * The colours of frames tell their kinds, subcategories whether Lua was
 * compiled. What was recorded, and the closing figures, are in the profile's
 * additional information.
 */
#ifndef LJSPY_FIREFOX_H
#define LJSPY_FIREFOX_H

#include <stdio.h>

#include "output/recording/sample_source.h"
#include "output/sample/figures.h"
#include "output/sample/session.h"
#include "output/views/view.h"

/* As struct format has it. */
int firefox_write(FILE *out, struct sample_source *source, const struct session *session,
		  const struct figures *figures, const struct view *view);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * perf_script: the text of `perf script`, for the tools that read it.
 *
 *	luajit  4242/4243  12.345678901:    1003210 cpu-clock:
 *	                0 heavy test.lua:5 (test.lua)
 *	                0 main chunk test.lua (test.lua)
 *
 * The number before the event is the sample's weight in nanoseconds; the
 * event is cpu-clock or wall-clock. The brackets hold the module or the file;
 * for compiled Lua functions, /tmp/perf-PID.map, by which readers recognise
 * compiled code. Names are ASCII, with other characters escaped, and have
 * square brackets for round ones: see perf_script.c for why.
 */
#ifndef LJSPY_PERF_SCRIPT_H
#define LJSPY_PERF_SCRIPT_H

#include <stdio.h>

#include "output/recording/sample_source.h"
#include "output/sample/figures.h"
#include "output/sample/session.h"
#include "output/views/view.h"

/* See struct format. */
int perf_script_write(FILE *out, struct sample_source *source, const struct session *session,
		      const struct figures *figures, const struct view *view);

#endif

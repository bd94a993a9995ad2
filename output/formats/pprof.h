/* SPDX-License-Identifier: MIT */
/*
 * pprof: the profile format of `go tool pprof` and of services for continuous
 * profiling: output/formats/pprof.proto, compressed with gzip.
 *
 * The values of a sample are its number of samples, CPU time and, if the clock
 * was the wall clock, elapsed time; the view's weight is the default. Labels
 * are pid, tid, process, thread, state, vm_state, phase, and of requests route,
 * method, host, status and subrequest; with few labels only process, state, vm_state
 * and phase. Functions have the
 * line of their definition, locations the line that ran. ljspy's command line
 * and the figures are comments (`pprof -comments`).
 */
#ifndef LJSPY_PPROF_H
#define LJSPY_PPROF_H

#include <stdio.h>

#include "output/recording/sample_source.h"
#include "output/sample/figures.h"
#include "output/sample/session.h"
#include "output/views/view.h"

/* See struct format. */
int pprof_write(FILE *out, struct sample_source *source, const struct session *session,
		const struct figures *figures, const struct view *view);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * speedscope: the file format of https://www.speedscope.app.
 *
 * The file holds one merged profile of all threads, heaviest stacks first, and
 * then one of each thread in time order. There a sample is as wide as its
 * weight and ends when it was taken. Samples taken at one time follow each other,
 * and the last one ends then: what a thread ran, and its wait for a CPU. Time
 * without a sample is a sample of an empty stack, so that distances are true.
 * Values are nanoseconds. A frame is a function with its line of definition; in
 * the line view, with the line that ran.
 */
#ifndef LJSPY_SPEEDSCOPE_H
#define LJSPY_SPEEDSCOPE_H

#include <stdio.h>

#include "output/recording/sample_source.h"
#include "output/sample/figures.h"
#include "output/sample/session.h"
#include "output/views/view.h"

/* See struct format. */
int speedscope_write(FILE *out, struct sample_source *source, const struct session *session,
		     const struct figures *figures, const struct view *view);

#endif

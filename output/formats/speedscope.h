/* SPDX-License-Identifier: MIT */
/*
 * speedscope: the file format of https://www.speedscope.app.
 *
 * Holds one profile of all threads, merged, heaviest stacks first, and then
 * one of each thread in time order. There a sample takes its weight, before
 * the moment at which it was taken; time that no sample stands for is a sample
 * of an empty stack, so distances are true. Values are nanoseconds. A frame
 * is a function, with its line of definition; by line, with the line that ran.
 */
#ifndef LJSPY_SPEEDSCOPE_H
#define LJSPY_SPEEDSCOPE_H

#include <stdio.h>

#include "output/recording/sample_source.h"
#include "output/sample/figures.h"
#include "output/sample/session.h"
#include "output/views/view.h"

/* As struct format has it. */
int speedscope_write(FILE *out, struct sample_source *source, const struct session *session,
		     const struct figures *figures, const struct view *view);

#endif

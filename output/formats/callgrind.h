/* SPDX-License-Identifier: MIT */
/*
 * callgrind: the profile format of valgrind's callgrind, for KCachegrind,
 * QCachegrind and callgrind_annotate.
 *
 * Costs are nanoseconds and samples, by line where lines are known. Each
 * thread is a function that calls what its stacks begin with, so every other
 * function has callers, and readers take what these paid for it as its
 * inclusive cost. A sample is paid for a function once, where the function is
 * first entered: calls deeper in a recursion are shown and cost nothing. How
 * often a call "was made" is how often it was seen on a stack.
 */
#ifndef LJSPY_CALLGRIND_H
#define LJSPY_CALLGRIND_H

#include <stdio.h>

#include "output/recording/sample_source.h"
#include "output/sample/figures.h"
#include "output/sample/session.h"
#include "output/views/view.h"

/* As struct format has it. */
int callgrind_write(FILE *out, struct sample_source *source, const struct session *session,
		    const struct figures *figures, const struct view *view);

#endif

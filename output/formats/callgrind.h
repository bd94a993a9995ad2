/* SPDX-License-Identifier: MIT */
/*
 * callgrind: the profile format of valgrind's callgrind, for KCachegrind,
 * QCachegrind and callgrind_annotate.
 *
 * Costs are nanoseconds and samples, by line if lines are known. Each thread
 * becomes a function that calls the outermost functions of its stacks. So every
 * other function has callers, and readers take the cost of their calls as its
 * inclusive cost. A sample costs once for each function, at the function's
 * first call: calls deeper in a recursion are listed and cost nothing. The
 * count of a call is how often samples show it on a stack.
 */
#ifndef LJSPY_CALLGRIND_H
#define LJSPY_CALLGRIND_H

#include <stdio.h>

#include "output/recording/sample_source.h"
#include "output/sample/figures.h"
#include "output/sample/session.h"
#include "output/views/view.h"

/* See struct format. */
int callgrind_write(FILE *out, struct sample_source *source, const struct session *session,
		    const struct figures *figures, const struct view *view);

#endif

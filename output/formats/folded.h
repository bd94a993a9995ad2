/* SPDX-License-Identifier: MIT */
/*
 * folded: one line a stack, root first, for flame graph tools and grep.
 *
 *	main chunk test.lua;heavy test.lua:5;string.gsub [builtin] 120034
 *
 * The number is the stack's own weight in whole microseconds. What rounding
 * takes from one line the next one gets, so the lines add up to the profile's
 * weight, less than a microsecond off. Stacks of no weight are left out.
 */
#ifndef LJSPY_FOLDED_H
#define LJSPY_FOLDED_H

#include <stdbool.h>
#include <stdio.h>

#include "output/views/profile.h"

struct folded_options {
	/*
	 * Mark Lua functions that ran as compiled code with _[j] at their
	 * end, which flame graph tools give a colour of its own. In a
	 * profile that is not merged by_compiled, a function is marked only
	 * if it was compiled in each of its samples.
	 */
	bool annotate;
	/*
	 * What it is compared with: the same nodes in the same order, with
	 * other weights, which are written before this one's, as
	 * difffolded.pl does. NULL for no comparison.
	 */
	const struct profile *baseline;
};

/* 0, -ENOMEM or -EIO (the stream's own error is in errno). */
int folded_write(FILE *out, const struct profile *profile, const struct folded_options *options);

#endif

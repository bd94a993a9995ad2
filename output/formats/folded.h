/* SPDX-License-Identifier: MIT */
/*
 * folded: one line for each stack, root first, for flame graph tools and grep.
 *
 * 	main chunk test.lua;heavy test.lua:5;string.gsub [builtin] 120034
 *
 * The number is the stack's own weight in whole microseconds, or in bytes or objects of a heap. Each line
 * passes its rounding error on to the next, so the sum of all lines is within a
 * microsecond of the profile's weight. Stacks without weight are left out.
 */
#ifndef LJSPY_FOLDED_H
#define LJSPY_FOLDED_H

#include <stdbool.h>
#include <stdio.h>

#include "output/views/profile.h"

struct folded_options {
	/*
	 * Mark Lua functions that ran as compiled code with _[j] at their
	 * end, for which flame graph tools have a separate colour. In a
	 * profile without by_compiled, mark a function only if it was
	 * compiled in each of its samples.
	 */
	bool annotate;
	/*
	 * The profile to compare with: the same nodes in the same order, with
	 * other weights. Each line shows its weight before this profile's, as
	 * difffolded.pl does. NULL for no comparison.
	 */
	const struct profile *baseline;
};

/* Write the profile. 0, -ENOMEM or -EIO (the stream's own error is in errno). */
int folded_write(FILE *out, const struct profile *profile, const struct folded_options *options);

#endif

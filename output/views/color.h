/* SPDX-License-Identifier: MIT */
/*
 * look: the classes of frames and VM states that pictures show apart.
 *
 * Each has a letter, which is in the flame graph's data and a class in its
 * style sheet. A state shares its class with the kind of frame it goes with.
 */
#ifndef LJSPY_COLOR_H
#define LJSPY_COLOR_H

#include <stdbool.h>

#include "output/views/profile.h"

enum color {
	COLOR_ALL, /* the root */
	COLOR_LUA,
	COLOR_COMPILED,
	COLOR_BUILTIN,
	COLOR_C_FUNCTION,
	COLOR_NATIVE,
	COLOR_VM,
	COLOR_TRACE,
	COLOR_ALLOCATED,
	COLOR_LOST,
	COLOR_MUCH_LESS, /* in a comparison: at most half the share of all weight */
	COLOR_LESS,
	COLOR_SAME, /* no change, or one that may be chance */
	COLOR_MORE,
	COLOR_MUCH_MORE, /* at least double the share */
	COLOR_COUNT
};

char color_letter(enum color color);
const char *color_name(enum color color); /* for a legend */

/* color_of_node(): a Lua function counts as compiled if more than half of its weight was. */
enum color color_of_kind(const struct function *function);
enum color color_of_node(const struct profile_node *node);

/*
 * How a share changed, from its weights and numbers of samples. A change
 * counts if the larger share exceeds the smaller by a tenth, and the
 * difference exceeds three times its standard error. With only two times, one
 * in twenty of the many frames would seem changed by chance.
 */
struct color_share {
	uint64_t ns, all_ns;
	uint64_t samples, all_samples;
	bool exact; /* counted, not sampled: weights are compared, not shares, and nothing is chance */
};

enum color color_of_change(const struct color_share *before, const struct color_share *now);

char color_state_letter(enum vm_state state);

#endif

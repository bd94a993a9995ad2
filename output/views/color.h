/* SPDX-License-Identifier: MIT */
/*
 * color: how frames and states of the VM are told apart in pictures.
 *
 * A letter stands for each: it is in the flame graph's data, and a class in
 * its style sheet. States share the colors of the kinds that they go with.
 */
#ifndef LJSPY_COLOR_H
#define LJSPY_COLOR_H

#include "output/views/profile.h"

enum color {
	COLOR_ALL,		/* the root */
	COLOR_LUA,
	COLOR_COMPILED,
	COLOR_BUILTIN,
	COLOR_C_FUNCTION,
	COLOR_NATIVE,
	COLOR_VM,
	COLOR_TRACE,
	COLOR_LOST,
	COLOR_MUCH_LESS,		/* of a comparison: share of all weight halved, or less */
	COLOR_LESS,
	COLOR_SAME,		/* no change, or none that could not be chance */
	COLOR_MORE,
	COLOR_MUCH_MORE,		/* doubled, or more */
	COLOR_COUNT
};

char color_letter(enum color color);
const char *color_name(enum color color);	/* for a legend */

/* A Lua function has the color of what it was more often. */
enum color color_of_kind(const struct function *function);
enum color color_of_node(const struct profile_node *node);

/*
 * How a part of a whole changed, its weights and numbers of samples known. A
 * change is one if it exceeds a tenth, and three times the standard error of
 * the difference that sampling brings about: there are many frames, of which
 * at twice one in twenty would seem changed by chance.
 */
struct color_share {
	uint64_t ns, all_ns;
	uint64_t samples, all_samples;
};

enum color color_of_change(const struct color_share *before, const struct color_share *now);

char color_state_letter(enum vm_state state);

#endif

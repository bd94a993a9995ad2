/*
 * look: how frames and states of the VM are told apart in pictures.
 *
 * A letter stands for each: it is in the flame graph's data, and a class in
 * its style sheet. States share the looks of the kinds that they go with.
 */
#ifndef LJSPY_LOOK_H
#define LJSPY_LOOK_H

#include "output/views/profile.h"

enum look {
	LOOK_ALL,		/* the root */
	LOOK_LUA,
	LOOK_COMPILED,
	LOOK_BUILTIN,
	LOOK_C_FUNCTION,
	LOOK_NATIVE,
	LOOK_VM,
	LOOK_TRACE,
	LOOK_LOST,
	LOOK_MUCH_LESS,		/* of a comparison: share of all weight halved, or less */
	LOOK_LESS,
	LOOK_SAME,		/* no change, or none that could not be chance */
	LOOK_MORE,
	LOOK_MUCH_MORE,		/* doubled, or more */
	LOOK_COUNT
};

char look_letter(enum look look);
const char *look_name(enum look look);	/* for a legend */

/* A Lua function has the look of what it was more often. */
enum look look_of_kind(const struct function *function);
enum look look_of_node(const struct profile_node *node);

/*
 * How a part of a whole changed, its weights and numbers of samples known. A
 * change is one if it exceeds a tenth, and three times the standard error of
 * the difference that sampling brings about: there are many frames, of which
 * at twice one in twenty would seem changed by chance.
 */
struct look_share {
	uint64_t ns, all_ns;
	uint64_t samples, all_samples;
};

enum look look_of_change(const struct look_share *before, const struct look_share *now);

char look_state_letter(enum vm_state state);

#endif

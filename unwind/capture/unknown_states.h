/* SPDX-License-Identifier: MIT */
/*
 * unknown_states: states that a captured thread may run, but that the image does not know.
 *
 * States come and go while a process runs. If a thread runs one, the VM's registers and
 * its C frames on the native stack lead to it, much sooner than a search of the
 * memory finds it. These are only clues: check each against the target's memory
 * (recognise_is_state()).
 */
#ifndef LJSPY_UNKNOWN_STATES_H
#define LJSPY_UNKNOWN_STATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/capture/capture.h"
#include "unwind/elf/image.h"

enum { STATE_CLUES_MAX = 8 };

struct state_clue {
	uint64_t g;
	const struct vm_code *vm;
};

/*
 * Find clues in the registers, if the thread is in the VM or in no module; returns how many. It
 * costs nothing if the state is known. Without GC64, compiled code has no register for its state.
 */
size_t unknown_states_in_registers(const struct capture *capture, const struct image *image,
				   struct state_clue ret_clues[static STATE_CLUES_MAX]);

/*
 * Find clues in the C frames that lie further in than any of a known state; returns how
 * many. Reads live a few times; the thread must still be held. *ret_complete: there are
 * no frames that were not looked at, or whose thread could not be read.
 */
size_t unknown_states_on_stack(const struct capture *capture, const struct image *image, struct memory *live,
			       struct state_clue ret_clues[static STATE_CLUES_MAX], bool *ret_complete);

/*
 * Find clues in the C frames in this part of a copied stack that are the innermost of
 * their Lua threads, as live has these now. Adds to the count clues; returns the new count.
 */
size_t unknown_states_linked(struct snapshot *snapshot, const struct lua_image *lua, struct memory *live,
			     const struct memory_range *stack,
			     struct state_clue clues[static STATE_CLUES_MAX], size_t count);

/* May the thread be in compiled code of such a state, in no module and in no known trace? */
bool unknown_states_may_compile(const struct capture *capture, const struct image *image);

/*
 * Is there a C frame of an unknown state further out than sp, and before any of a known
 * state? Not if all led to none.
 */
bool unknown_state_above(const struct capture *capture, const struct image *image, uint64_t sp);

/* Does the VM's leaf with these registers, or else the C frame there, belong to an unknown state? */
bool unknown_state_at(const struct capture *capture, const struct image *image, const struct vm_code *vm,
		      const struct registers *registers, bool is_leaf);

#endif

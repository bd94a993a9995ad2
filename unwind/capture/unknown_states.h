/* SPDX-License-Identifier: MIT */
/*
 * unknown_states: states that a captured thread may run, but that the image does not know.
 *
 * States come and go while a process runs. Where one runs, the VM's registers
 * lead to it, and so do the VM's C frames on the native stack, much sooner than
 * a search of the memory would find it. These are clues only: each is to be
 * held against the target's memory (recognise_is_state()).
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
 * By the registers, if the thread is in the VM or in no module; costs nothing where the
 * state is known. Without GC64 compiled code keeps no register that would tell.
 */
size_t unknown_states_in_registers(const struct capture *capture, const struct image *image,
				   struct state_clue ret_clues[static STATE_CLUES_MAX]);

/*
 * By the C frames that lie further in than any of a known state. live is read
 * a few times, and the thread must still be held.
 */
size_t unknown_states_on_stack(const struct capture *capture, const struct image *image,
			       struct memory *live,
			       struct state_clue ret_clues[static STATE_CLUES_MAX]);

/*
 * By the C frames in [begin, end) of a stack, which was copied, that are the innermost
 * of their Lua threads, as live has these by now. Adds to count clues; how many there are then.
 */
size_t unknown_states_linked(struct snapshot *snapshot, const struct lua_image *lua, struct memory *live,
			     uint64_t begin, uint64_t end,
			     struct state_clue clues[static STATE_CLUES_MAX], size_t count);

/* May the thread be in compiled code of such a state: is it in no module, and in no trace that is known? */
bool unknown_states_may_compile(const struct capture *capture, const struct image *image);

/* Does a C frame lie further out than this, and before any of a known state, that would be one's? */
bool unknown_state_above(const struct capture *capture, const struct image *image, uint64_t sp);

/* Would the VM's leaf with these registers, or the C frame of its caller there, be one of an unknown state? */
bool unknown_state_at(const struct capture *capture, const struct image *image,
		      const struct vm_code *vm, const struct registers *registers, bool is_leaf);

#endif

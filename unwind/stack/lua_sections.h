/* SPDX-License-Identifier: MIT */
/*
 * lua_sections: put the Lua frames of captured threads into a stack, part by part.
 *
 * Native code that calls Lua divides a Lua thread's frames: those above the
 * call run in one C frame of the VM, those below it in another one further
 * out. So the walk down a thread pauses wherever native frames come between.
 */
#ifndef LJSPY_LUA_SECTIONS_H
#define LJSPY_LUA_SECTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/capture/capture.h"
#include "unwind/lua/lua_objects.h"
#include "unwind/lua/lua_walk.h"
#include "unwind/stack/merged_stack.h"

/* Where the walk of one Lua thread stands. */
struct lua_section {
	bool started;
	bool ended; /* at its bottom, or lost */
	struct lua_walk walk;
};

struct lua_sections {
	const struct capture *capture;
	struct lua_objects *objects;
	struct merged_stack *stack;
	struct lua_section
		section[CAPTURE_THREADS_MAX]; /* the first thread_count: one for each of the capture's */
};

/* None is started yet. */
void lua_sections_begin(struct lua_sections *sections, const struct capture *capture,
			struct lua_objects *objects, struct merged_stack *stack);

/* The section of one of the capture's threads. */
struct lua_section *lua_section_of(struct lua_sections *sections, const struct lua_thread *thread);

/* The same; starts it at the frame with this base. */
struct lua_section *lua_section_start(struct lua_sections *sections, const struct lua_thread *thread,
				      uint64_t base);

/* Add the frame of an activation to the stack. NULL when memory is short. */
struct merged_frame *lua_sections_add_activation(struct lua_sections *sections, struct global_state *global,
						 const struct lua_activation *activation);

/*
 * Move to the frame below, and note the caller in callee, the frame just added (NULL
 * if none). False if this part ends here: native code called, the bottom, or lost.
 */
bool lua_section_step_down(struct lua_sections *sections, struct lua_section *section,
			   struct merged_frame *callee);

/* Add the frames down to and including the one that native code called. */
void lua_section_add_own(struct lua_sections *sections, struct lua_section *section);

/* Add all frames left of the thread, past those that native code called. */
void lua_section_add_rest(struct lua_sections *sections, struct lua_section *section);

/* Add the frames of the thread that the child runs for, and so on. */
void lua_section_add_parents(struct lua_sections *sections, const struct lua_section *child);

/* Add its own frames, and if those were its last, its parents'. */
void lua_section_add(struct lua_sections *sections, struct lua_section *section);

#endif

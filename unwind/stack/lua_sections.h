/* SPDX-License-Identifier: MIT */
/*
 * lua_sections: the Lua frames of captured threads, put into a stack part by part.
 *
 * Native code that calls Lua divides a Lua thread's frames: those above the
 * call run in one C frame of the VM, those below it in another one further
 * out. So the walk down a thread rests wherever native frames come between.
 */
#ifndef LJSPY_LUA_SECTIONS_H
#define LJSPY_LUA_SECTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/capture/capture.h"
#include "unwind/lua/lua_objects.h"
#include "unwind/lua/lua_walk.h"
#include "unwind/stack/merged_stack.h"

/* Where the walk of one Lua thread has come to. */
struct lua_section {
	bool started;
	bool ended;		/* at its bottom, or lost */
	struct lua_walk walk;
};

struct lua_sections {
	const struct capture *capture;
	struct lua_objects *objects;
	struct merged_stack *stack;
	struct lua_section section[CAPTURE_THREADS_MAX];	/* of the capture's threads */
};

/* That of one of the capture's threads. */
struct lua_section *lua_section_of(struct lua_sections *sections, const struct lua_thread *thread);

/* The same, started at the frame with this base. */
struct lua_section *lua_section_start(struct lua_sections *sections, const struct lua_thread *thread,
				      uint64_t base);

/* The frame of what stands somewhere in a Lua stack. NULL without memory. */
struct merged_frame *lua_sections_add_activation(struct lua_sections *sections,
						 struct global_state *global,
						 const struct lua_activation *activation);

/*
 * Move to the frame below, and note on the frame just added (NULL if none) who
 * called it. False if the section's frames do not go on there.
 */
bool lua_section_step_down(struct lua_sections *sections, struct lua_section *section,
			   struct merged_frame *callee);

/* Add the frames down to and including the one that native code called. */
void lua_section_add_own(struct lua_sections *sections, struct lua_section *section);

/* All that are left of the thread, whatever native code has called. */
void lua_section_add_rest(struct lua_sections *sections, struct lua_section *section);

/* The frames of what a thread runs for, and of what that runs for. */
void lua_section_add_parents(struct lua_sections *sections, const struct lua_section *child);

/* Its own, and if those were its last, its parents'. */
void lua_section_add(struct lua_sections *sections, struct lua_section *section);

#endif

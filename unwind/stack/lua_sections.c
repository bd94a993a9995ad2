/* SPDX-License-Identifier: MIT */
/* Walks down Lua threads, section by section. */
#include "unwind/stack/lua_sections.h"

/* Most stacks have a thread or two, so that to clear the whole array costs more than all that is in it. */
void lua_sections_begin(struct lua_sections *sections, const struct capture *capture,
			struct lua_objects *objects, struct merged_stack *stack)
{
	sections->capture = capture;
	sections->objects = objects;
	sections->stack = stack;
	for (size_t i = 0; i < capture->thread_count; i++)
		sections->section[i] = (struct lua_section){ .started = false };
}

struct lua_section *lua_section_of(struct lua_sections *sections, const struct lua_thread *thread)
{
	return &sections->section[thread - sections->capture->threads];
}

struct lua_section *lua_section_start(struct lua_sections *sections, const struct lua_thread *thread,
				      uint64_t base)
{
	struct lua_section *section = lua_section_of(sections, thread);

	section->started = true;
	section->walk = (struct lua_walk){ .thread = thread, .objects = sections->objects, .base = base };
	return section;
}

struct merged_frame *lua_sections_add_activation(struct lua_sections *sections, struct global_state *global,
						 const struct lua_activation *activation)
{
	const struct function_object *function = activation->function;
	struct merged_frame *frame = merged_stack_add(sections->stack,
						      function->proto ? MERGED_LUA : MERGED_C_FUNCTION);

	if (!frame)
		return NULL;
	frame->global = global;
	frame->function = function;
	frame->proto = function->proto;
	frame->pc = activation->pc;
	return frame;
}

/* The activation at a walk's frame; is_known: it was found on the way there. */
struct activation_there {
	bool is_known;
	struct lua_activation activation;
};

/* As lua_section_step_down(). */
static bool step_down(struct lua_sections *sections, struct lua_section *section, struct merged_frame *callee,
		      struct activation_there *ret_there)
{
	struct lua_activation *caller = &ret_there->activation;
	enum lua_step step = lua_walk_step_to(&section->walk, caller);

	ret_there->is_known = step == LUA_STEP_CALL;
	if (callee && step == LUA_STEP_METAMETHOD)
		ret_there->is_known = lua_walk_activation(&section->walk, caller);
	if (callee && ret_there->is_known && caller->pc) {
		callee->caller = caller->function->proto;
		callee->caller_pc = caller->pc;
		callee->called_by_metamethod = step == LUA_STEP_METAMETHOD;
	}
	switch (step) {
	case LUA_STEP_CALL:
	case LUA_STEP_METAMETHOD:
	case LUA_STEP_PROTECTED: return true;
	case LUA_STEP_FROM_C: return false;
	case LUA_STEP_BOTTOM: section->ended = true; return false;
	case LUA_STEP_BROKEN:
		merged_stack_add_lost(sections->stack, LOST_BROKEN_CHAIN);
		section->ended = true;
		return false;
	}
	return false;
}

bool lua_section_step_down(struct lua_sections *sections, struct lua_section *section,
			   struct merged_frame *callee)
{
	struct activation_there there;

	return step_down(sections, section, callee, &there);
}

void lua_section_add_own(struct lua_sections *sections, struct lua_section *section)
{
	struct activation_there there = { .is_known = false };

	if (section->walk.is_below_c) {
		section->walk.is_below_c = false;
		return;
	}
	while (!section->ended && sections->stack->count < MERGE_FRAMES_MAX) {
		struct merged_frame *frame = NULL;

		if (lua_walk_is_done(&section->walk)) {
			section->ended = true;
			return;
		}
		if (!there.is_known && !lua_walk_activation(&section->walk, &there.activation)) {
			merged_stack_add_lost(sections->stack, LOST_BROKEN_CHAIN);
			section->ended = true;
			return;
		}
		if (there.activation.function)
			frame = lua_sections_add_activation(sections, section->walk.thread->global,
							    &there.activation);
		if (frame) {
			frame->thread = section->walk.thread;
			frame->base = section->walk.base;
		}
		if (!step_down(sections, section, frame, &there))
			return;
	}
}

void lua_section_add_rest(struct lua_sections *sections, struct lua_section *section)
{
	while (!section->ended && !merged_stack_is_full(sections->stack))
		lua_section_add_own(sections, section);
}

/* Start the section of the parked thread that this one runs for, unless it was started before. */
static struct lua_section *start_parent(struct lua_sections *sections, const struct lua_section *child)
{
	uint64_t address = child->walk.thread->parent;
	const struct lua_thread *parent = address ? capture_find_thread(sections->capture, address) : NULL;

	if (!parent || lua_section_of(sections, parent)->started)
		return NULL;
	return lua_section_start(sections, parent, parent->base);
}

void lua_section_add_parents(struct lua_sections *sections, const struct lua_section *child)
{
	struct lua_section *parent;

	while ((parent = start_parent(sections, child)) && !sections->stack->out_of_memory) {
		merged_stack_add(sections->stack, MERGED_CHILD);
		lua_section_add_rest(sections, parent);
		child = parent;
	}
}

void lua_section_add(struct lua_sections *sections, struct lua_section *section)
{
	lua_section_add_own(sections, section);
	if (lua_walk_is_done(&section->walk))
		lua_section_add_parents(sections, section);
}

/* SPDX-License-Identifier: MIT */
/* Coroutines, and threads that were not stopped. */
#include "unwind/stack/merge_lua.h"

#include <errno.h>

#include "luajit-layouts/vmstate.h"
#include "unwind/lua/lua_walk.h"
#include "unwind/lua/luajit.h"
#include "unwind/stack/lua_sections.h"
#include "unwind/stack/lua_top.h"

/*---- Coroutines ----*/

/*
 * Add the function that a coroutine will begin with: it lies where the base will be.
 * C code may have put values there that are no function: then there is no frame.
 */
static void add_start(struct lua_sections *sections, const struct lua_thread *thread)
{
	bool gc64 = thread->layout->gc64;
	const struct function_object *function;
	uint64_t value;

	if (!lua_thread_slot(thread, thread->base, &value) || tvalue_tag(gc64, value) != TAG_FUNC)
		return;
	function = lua_objects_function(sections->objects, tvalue_object(gc64, value));
	if (!function || (function->ffid == FF_LUA && !function->proto)) {
		merged_stack_add_lost(sections->stack, LOST_BROKEN_CHAIN);
		return;
	}
	lua_sections_add_activation(sections, thread->global,
				    &(struct lua_activation){
					    .function = function,
					    .pc = function->proto ? function->proto->bc : 0,
				    });
}

int merge_coroutine(struct capture *capture, size_t index, struct lua_objects *objects,
		    struct merged_stack *stack)
{
	struct lua_sections sections;
	const struct lua_thread *thread = &capture->threads[index];

	lua_sections_begin(&sections, capture, objects, stack);
	merged_stack_begin(stack, VM_STATE_NONE);
	if (thread->slots) {
		struct lua_section *section = lua_section_start(&sections, thread, thread->base);

		if (lua_walk_is_done(&section->walk) && lua_thread_state(thread, 0) == COROUTINE_NOT_STARTED)
			add_start(&sections, thread);
		lua_section_add_rest(&sections, section);
	} else {
		merged_stack_add_lost(stack, LOST_NOT_CAPTURED);
	}
	return stack->out_of_memory ? -ENOMEM : 0;
}

/*---- A thread that was not stopped ----*/

static struct lua_running running_of(const struct lua_sections *sections, struct memory *memory,
				     const struct lua_thread *thread)
{
	return (struct lua_running){
		.thread = thread,
		.cframe = thread->cframe,
		.objects = sections->objects,
		.stack = memory,
	};
}

/* How reliable a running thread's fields are. */
enum position {
	POSITION_SAVED,    /* the VM stored all of it before what it does now */
	POSITION_IN_TRACE, /* reliable below where the trace began */
	POSITION_OLD,      /* the thread may have called and returned since the store */
};

static enum position position_of(const struct global_view *view, enum vm_state *ret_state)
{
	if (view->vmstate >= 0 && view->jit_base) {
		*ret_state = VM_STATE_COMPILED;
		return POSITION_IN_TRACE;
	}
	switch (view->vmstate) {
	case VMST_C: *ret_state = VM_STATE_C; return POSITION_SAVED;
	case VMST_GC: *ret_state = VM_STATE_GC; return POSITION_SAVED;
	/* Instructions run while they are recorded, and the state does not change. */
	case VMST_RECORD: *ret_state = VM_STATE_RECORDING; return POSITION_OLD;
	case VMST_OPT: *ret_state = VM_STATE_OPTIMISING; return POSITION_OLD;
	case VMST_ASM: *ret_state = VM_STATE_ASSEMBLING; return POSITION_OLD;
	case VMST_INTERP: *ret_state = VM_STATE_INTERPRETED; return POSITION_OLD;
	default: *ret_state = VM_STATE_EXIT; return POSITION_OLD;
	}
}

/* The thread that resumed this one: the next one up the native stack; NULL if there is none. */
static const struct lua_thread *resumer_of(const struct capture *capture, const struct lua_thread *thread)
{
	const struct lua_thread *next = NULL;

	for (size_t i = 0; i < capture->thread_count; i++) {
		const struct lua_thread *other = &capture->threads[i];

		if (other->global == thread->global && other->cframe > thread->cframe &&
		    (!next || other->cframe < next->cframe))
			next = other;
	}
	return next;
}

/* Add all frames of the thread, and of its parents. */
static void add_thread(struct lua_sections *sections, struct memory *memory, const struct lua_thread *thread,
		       enum position position, uint64_t jit_base)
{
	struct lua_section *section = lua_section_start(sections, thread, jit_base);
	const struct lua_running running = running_of(sections, memory, thread);
	struct merged_stack *stack = sections->stack;
	size_t first = stack->count;

	if (position == POSITION_IN_TRACE) {
		merged_stack_add_lost(stack, LOST_NOT_STOPPED);
		first++;
	} else if (!lua_top_as_stored(&running, &section->walk)) {
		merged_stack_add_lost(stack, LOST_BROKEN_CHAIN);
		return;
	}
	lua_section_add_own(sections, section);
	if (position == POSITION_IN_TRACE && first < stack->count)
		stack->frames[first].compiled = true;
	if (position == POSITION_OLD)
		merged_stack_add_lost(stack, LOST_MAY_HAVE_MOVED_ON);
	lua_section_add_rest(sections, section);
	lua_section_add_parents(sections, section);
}

int merge_running(struct capture *capture, struct lua_objects *objects, bool lacks_native,
		  struct merged_stack *stack)
{
	struct lua_sections sections;
	struct memory *memory = snapshot_memory(capture->snapshot);
	const struct global_view *view = capture->running;
	const struct lua_thread *thread = capture_find_thread(capture, view->cur_L);
	enum vm_state vm_state;
	enum position position = position_of(view, &vm_state);

	lua_sections_begin(&sections, capture, objects, stack);
	merged_stack_begin(stack, vm_state);
	for (; thread && !lua_section_of(&sections, thread)->started; thread = resumer_of(capture, thread)) {
		add_thread(&sections, memory, thread, position, view->jit_base);
		position = POSITION_SAVED;
	}
	if (lacks_native || capture->running_was_called)
		merged_stack_add_lost(stack, LOST_NOT_STOPPED);
	return stack->out_of_memory ? -ENOMEM : 0;
}

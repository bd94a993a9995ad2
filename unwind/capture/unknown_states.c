/* SPDX-License-Identifier: MIT */
/* Clues to states that the image does not know, and whether a frame belongs to one. */
#include "unwind/capture/unknown_states.h"

#include "unwind/capture/cframe_search.h"
#include "unwind/jit/traces.h"
#include "unwind/lua/luajit.h"
#include "unwind/vm/vm_frame.h"

/* How many possible threads to read; stale ones lie on stacks, too. */
enum {
	READS_MAX = 16, /* while a thread is held */
	LINKED_READS_MAX = 256,
};

static bool is_captured(const struct capture *capture, uint64_t g)
{
	for (size_t i = 0; i < capture->global_count; i++)
		if (capture->globals[i].global->g == g)
			return true;
	return false;
}

static bool has_clue(const struct state_clue *clues, size_t count, const struct vm_code *vm, uint64_t g)
{
	for (size_t i = 0; i < count; i++)
		if (clues[i].g == g && clues[i].vm == vm)
			return true;
	return false;
}

/* Add what may be an unknown state, unless it is there. False if there is no room for it. */
static bool add_clue(const struct lua_image *lua, const struct vm_code *vm, uint64_t g,
		     struct state_clue *clues, size_t *count)
{
	if (!may_be_object(vm->layout.gc64, g) || lua_image_find(lua, g) || has_clue(clues, *count, vm, g))
		return true;
	if (*count == STATE_CLUES_MAX)
		return false;
	clues[(*count)++] = (struct state_clue){ .g = g, .vm = vm };
	return true;
}

size_t unknown_states_in_registers(const struct capture *capture, const struct image *image,
				   struct state_clue ret_clues[static STATE_CLUES_MAX])
{
	const struct registers *registers = &capture->registers;
	const struct module *module;
	size_t count = 0;

	if (!vm_global_is_known(registers))
		return 0;
	for (size_t i = 0; i < capture->global_count; i++) {
		const struct global_state *global = capture->globals[i].global;

		if (global->g == vm_global_of_registers(&global->vm->layout, registers))
			return 0;
	}
	switch (image_classify(image, registers->pc, &module)) {
	case CODE_VM:
		add_clue(capture->lua, module->vm, vm_global_of_registers(&module->vm->layout, registers),
			 ret_clues, &count);
		return count;
	case CODE_UNKNOWN: /* perhaps a trace of any VM */ break;
	case CODE_NATIVE:
	case CODE_VM_FFI_CALL: return 0;
	}
	for (size_t i = 0; i < image_module_count(image); i++) {
		const struct vm_code *vm = image_module(image, i)->vm;

		/* Without GC64 a trace uses the register for its own values. */
		if (vm && vm->layout.gc64)
			add_clue(capture->lua, vm, vm_global_of_registers(&vm->layout, registers), ret_clues,
				 &count);
	}
	return count;
}

/* The innermost C frame of a known state at or above sp; else the end of the stack's copy. */
static uint64_t end_of_unknown(const struct capture *capture, uint64_t sp)
{
	uint64_t end = capture_has_copied(capture, sp) ? capture_stack_end(capture, sp) : sp;

	for (size_t i = 0; i < capture->thread_count; i++) {
		uint64_t cframe = capture->threads[i].cframe;

		if (cframe >= sp && cframe < end)
			end = cframe;
	}
	return end;
}

/* If this may be a thread of an unknown state, add that. False if it cannot be told. */
static bool add_clue_of(const struct capture *capture, struct memory *live, const struct vm_code *vm,
			uint64_t thread, struct state_clue *clues, size_t *count)
{
	uint64_t g = 0;
	enum memory_status status = memory_read(live, thread + (uint64_t)vm->layout.L_glref, &g,
						layout_ref_size(&vm->layout));

	/* Where nothing is mapped, there is no thread. */
	return status == MEMORY_UNMAPPED ||
	       (status == MEMORY_OK && add_clue(capture->lua, vm, g, clues, count));
}

/* False if a frame was not looked at, or it cannot be told whether it is of an unknown state. */
static bool add_clues_on_stack(const struct capture *capture, const struct image *image, struct memory *live,
			       const struct vm_code *vm, struct state_clue *clues, size_t *count)
{
	uint64_t sp = capture->registers.sp, cframe, thread, last = 0;
	struct cframe_search search = cframe_search(capture->snapshot, image, &vm->layout, sp,
						    end_of_unknown(capture, sp));
	unsigned reads = 0;
	bool complete = true;

	while (cframe_search_next(&search, &cframe, &thread)) {
		if (thread == last)
			continue;
		if (reads++ == READS_MAX)
			return false;
		last = thread;
		complete &= add_clue_of(capture, live, vm, thread, clues, count);
	}
	return complete;
}

size_t unknown_states_on_stack(const struct capture *capture, const struct image *image, struct memory *live,
			       struct state_clue ret_clues[static STATE_CLUES_MAX], bool *ret_complete)
{
	bool complete = true;
	size_t count = 0;

	for (size_t i = 0; i < image_module_count(image); i++) {
		const struct vm_code *vm = image_module(image, i)->vm;

		if (vm)
			complete &= add_clues_on_stack(capture, image, live, vm, ret_clues, &count);
	}
	*ret_complete = complete;
	return count;
}

static size_t add_linked(struct cframe_search *search, const struct lua_image *lua, struct memory *live,
			 const struct vm_code *vm, struct state_clue *clues, size_t count)
{
	uint64_t cframe, thread;

	for (unsigned reads = 0; reads < LINKED_READS_MAX && cframe_search_next(search, &cframe, &thread);
	     reads++) {
		uint64_t innermost, g = 0;

		if (memory_u64(live, thread + (uint64_t)vm->layout.L_cframe, &innermost) &&
		    (innermost & ~(uint64_t)CFRAME_FLAGS) == cframe &&
		    memory_read(live, thread + (uint64_t)vm->layout.L_glref, &g,
				layout_ref_size(&vm->layout)) == MEMORY_OK)
			add_clue(lua, vm, g, clues, &count);
	}
	return count;
}

size_t unknown_states_linked(struct snapshot *snapshot, const struct lua_image *lua, struct memory *live,
			     const struct memory_range *stack,
			     struct state_clue clues[static STATE_CLUES_MAX], size_t count)
{
	const struct image *image = lua_image_code(lua);

	for (size_t i = 0; i < image_module_count(image); i++) {
		const struct vm_code *vm = image_module(image, i)->vm;
		struct cframe_search search;

		if (!vm)
			continue;
		search = cframe_search(snapshot, image, &vm->layout, stack->address,
				       stack->address + stack->length);
		count = add_linked(&search, lua, live, vm, clues, count);
	}
	return count;
}

bool unknown_states_may_compile(const struct capture *capture, const struct image *image)
{
	if (image_classify(image, capture->registers.pc, NULL) != CODE_UNKNOWN)
		return false;
	for (size_t i = 0; i < capture->global_count; i++) {
		const struct traces *traces = capture->globals[i].global->traces;

		if (traces && traces_find(traces, capture->registers.pc))
			return false;
	}
	return true;
}

static bool is_of_unknown_state(const struct capture *capture, const struct vm_code *vm, uint64_t thread)
{
	uint64_t g = 0;

	if (capture_find_thread(capture, thread))
		return false;
	/* A thread whose stack is being moved is not captured, but the snapshot has it. */
	return memory_read(snapshot_memory(capture->snapshot), thread + (uint64_t)vm->layout.L_glref, &g,
			   layout_ref_size(&vm->layout)) != MEMORY_OK ||
	       !lua_image_find(capture->lua, g);
}

bool unknown_state_above(const struct capture *capture, const struct image *image, uint64_t sp)
{
	if (capture->no_unknown_state)
		return false;
	for (size_t i = 0; i < image_module_count(image); i++) {
		const struct vm_code *vm = image_module(image, i)->vm;
		struct cframe_search search;
		uint64_t cframe, thread;

		if (!vm)
			continue;
		search = cframe_search(capture->snapshot, image, &vm->layout, sp,
				       end_of_unknown(capture, sp));
		while (cframe_search_next(&search, &cframe, &thread))
			if (is_of_unknown_state(capture, vm, thread))
				return true;
	}
	return false;
}

bool unknown_state_at(const struct capture *capture, const struct image *image, const struct vm_code *vm,
		      const struct registers *registers, bool is_leaf)
{
	uint64_t thread;

	if (is_leaf && vm_global_is_known(registers))
		return !is_captured(capture, vm_global_of_registers(&vm->layout, registers));
	return vm_frame_is_plausible(image, &vm->layout, snapshot_memory(capture->snapshot), registers->sp,
				     &thread) &&
	       is_of_unknown_state(capture, vm, thread);
}

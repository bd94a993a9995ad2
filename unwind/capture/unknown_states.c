#include "unwind/capture/unknown_states.h"

#include "unwind/lua/luajit.h"
#include "unwind/vm/vm_frame.h"

enum { READS_MAX = 16 };	/* of what may be threads; stale ones lie on stacks, too */

static bool is_captured(const struct capture *capture, uint64_t g)
{
	for (size_t i = 0; i < capture->universe_count; i++)
		if (capture->universes[i].universe->g == g)
			return true;
	return false;
}

static size_t add_clue(const struct capture *capture, const struct vm_code *vm, uint64_t g,
		       struct state_clue *clues, size_t count)
{
	if (count == STATE_CLUES_MAX || !may_be_object(vm->layout.gc64, g) ||
	    lua_image_find(capture->lua, g))
		return count;
	for (size_t i = 0; i < count; i++)
		if (clues[i].g == g && clues[i].vm == vm)
			return count;
	clues[count] = (struct state_clue){ .g = g, .vm = vm };
	return count + 1;
}

size_t unknown_states_in_registers(const struct capture *capture, const struct image *image,
				   struct state_clue ret_clues[static STATE_CLUES_MAX])
{
	const struct registers *registers = &capture->registers;
	const struct module *module;
	size_t count = 0;

	if (registers->unknown & REGISTER_R14)
		return 0;
	for (size_t i = 0; i < capture->universe_count; i++) {
		const struct lua_universe *universe = capture->universes[i].universe;

		if (universe->g == vm_universe_of_registers(&universe->vm->layout, registers))
			return 0;
	}
	switch (image_classify(image, registers->rip, &module)) {
	case CODE_VM:
		return add_clue(capture, module->vm,
				vm_universe_of_registers(&module->vm->layout, registers), ret_clues, 0);
	case CODE_UNKNOWN:	/* a trace of any VM's */
		break;
	case CODE_NATIVE:
	case CODE_VM_FFI_CALL:
		return 0;
	}
	for (size_t i = 0; i < image_module_count(image); i++) {
		const struct vm_code *vm = image_module(image, i)->vm;

		if (vm)
			count = add_clue(capture, vm, vm_universe_of_registers(&vm->layout, registers),
					 ret_clues, count);
	}
	return count;
}

/* Up to the innermost C frame that is a known state's. */
static uint64_t end_of_unknown(const struct capture *capture)
{
	uint64_t end = capture->stack_end;

	for (size_t i = 0; i < capture->thread_count; i++) {
		uint64_t cframe = capture->threads[i].cframe;

		if (cframe >= capture->registers.rsp && cframe < end)
			end = cframe;
	}
	return end;
}

static size_t add_clues_on_stack(const struct capture *capture, const struct image *image,
				 struct memory *live, const struct vm_code *vm,
				 struct state_clue *clues, size_t count)
{
	const struct layout *layout = &vm->layout;
	uint64_t end = end_of_unknown(capture), last = 0;
	unsigned reads = 0;

	for (uint64_t cframe = vm_frame_from(capture->registers.rsp);
	     cframe < end && reads < READS_MAX; cframe += VM_FRAME_ALIGNMENT) {
		uint64_t thread, g = 0;

		if (!vm_frame_is_plausible(image, layout, snapshot_memory(capture->snapshot),
					   cframe, &thread) || thread == last)
			continue;
		last = thread;
		reads++;
		if (memory_read(live, thread + (uint64_t)layout->L_glref, &g,
				layout_ref_size(layout)) == MEMORY_OK)
			count = add_clue(capture, vm, g, clues, count);
	}
	return count;
}

size_t unknown_states_on_stack(const struct capture *capture, const struct image *image,
			       struct memory *live,
			       struct state_clue ret_clues[static STATE_CLUES_MAX])
{
	size_t count = 0;

	for (size_t i = 0; i < image_module_count(image); i++) {
		const struct vm_code *vm = image_module(image, i)->vm;

		if (vm)
			count = add_clues_on_stack(capture, image, live, vm, ret_clues, count);
	}
	return count;
}

bool unknown_state_at(const struct capture *capture, const struct image *image,
		      const struct vm_code *vm, const struct registers *registers, bool is_leaf)
{
	struct memory *memory = snapshot_memory(capture->snapshot);
	uint64_t thread, g = 0;

	if (is_leaf && !(registers->unknown & REGISTER_R14))
		return !is_captured(capture, vm_universe_of_registers(&vm->layout, registers));
	if (!vm_frame_is_plausible(image, &vm->layout, memory, registers->rsp, &thread) ||
	    capture_find_thread(capture, thread))
		return false;
	/* One whose stack is being moved could not be made use of, but it was looked at. */
	return memory_read(memory, thread + (uint64_t)vm->layout.L_glref, &g,
			   layout_ref_size(&vm->layout)) != MEMORY_OK ||
	       !lua_image_find(capture->lua, g);
}

/* SPDX-License-Identifier: MIT */
#include "src/heap/running_stack.h"

#include "src/linux/proc/maps.h"
#include "src/linux/threads/nearest_stack.h"
#include "unwind/lua/luajit.h"
#include "unwind/native/core_registers.h"

/* Where the C frame of a lua_State is; 0 if it has none, or cannot be read. */
static uint64_t cframe_of(struct memory *memory, const struct layout *layout, uint64_t thread)
{
	uint64_t cframe;

	return thread && memory_u64(memory, thread + (uint64_t)layout->L_cframe, &cframe) ? cframe : 0;
}

/*
 * An address on the native stack that the VM runs on; 0 if it runs on none. An event loop that waits runs no
 * coroutine; cur_L is then the last one.
 */
static uint64_t find_cframe(struct memory *memory, const struct global_state *global,
			    struct global_view *ret_view)
{
	const struct layout *layout = &global->vm->layout;
	struct global_state copy = *global;
	uint64_t cframe, mainthread;

	if (!capture_load_view(memory, &copy, ret_view))
		return 0;
	cframe = cframe_of(memory, layout, ret_view->cur_L);
	if (!cframe &&
	    field_reference(memory, layout, global->g + (uint64_t)layout->g_mainthref, &mainthread))
		cframe = cframe_of(memory, layout, mainthread);
	return cframe;
}

void running_stack_prepare(struct running_stack *stack, struct lua_process *process,
			   const struct global_state *global)
{
	struct global_view view;
	const uint64_t cframe = find_cframe(lua_process_memory(process), global, &view);

	if (!cframe)
		return;
	stack->hints.sp = cframe;
	lua_process_rehearse(process, &stack->hints);
}

/*
 * The thread whose stack pointer is nearest may be on another stack, if the one that runs the VM is not
 * known.
 */
static bool is_on_one_stack(const struct lua_process *process, uint64_t sp, uint64_t cframe)
{
	const struct mapping *mapping = maps_find(lua_process_maps(process), cframe);

	return mapping && sp >= mapping->begin && sp <= cframe;
}

static void capture(struct running_stack *stack, struct lua_process *process, pid_t tid,
		    const struct registers *registers)
{
	stack->hints.tid = tid;
	lua_process_capture(process, registers, &stack->hints);
	stack->is_captured = true;
}

void running_stack_capture(struct running_stack *stack, struct lua_process *process, struct memory *copy,
			   const struct global_state *global, const struct hold *hold)
{
	struct global_view view;
	const uint64_t cframe = find_cframe(copy, global, &view);
	struct registers registers;
	pid_t tid;

	stack->is_captured = false;
	/* The heap itself tells where a trace runs that is known by its number: heap_stacks.c. */
	if (!cframe || (view.jit_base && view.vmstate > 0))
		return;
	if (hold_find_on_stack(hold, cframe, &tid, &registers) &&
	    is_on_one_stack(process, registers.sp, cframe))
		capture(stack, process, tid, &registers);
}

void running_stack_capture_core(struct running_stack *stack, struct lua_process *process,
				const struct global_state *global)
{
	const struct core_file *core = lua_process_core(process);
	struct global_view view;
	const uint64_t cframe = find_cframe(lua_process_memory(process), global, &view);
	struct nearest_stack nearest_stack = { .address = cframe };
	struct registers nearest = { .sp = 0 };
	pid_t nearest_tid = 0;

	stack->is_captured = false;
	for (size_t i = 0; i < core_file_thread_count(core); i++) {
		const struct core_note note = core_file_thread(core, i);
		struct registers registers;
		pid_t tid;

		if (core_registers_read(note.bytes, note.size, &tid, &registers) &&
		    nearest_stack_takes(&nearest_stack, registers.sp)) {
			nearest = registers;
			nearest_tid = tid;
		}
	}
	if (nearest_stack.sp && is_on_one_stack(process, nearest_stack.sp, cframe))
		capture(stack, process, nearest_tid, &nearest);
}

void running_stack_forget(struct running_stack *stack)
{
	stack->is_captured = false;
}

void running_stack_unwind(struct running_stack *stack, struct lua_process *process,
			  const struct global_state *global)
{
	const struct frame *frames;
	enum vm_state state;
	size_t count;
	int error;

	heap_running_clear(&stack->frames);
	if (!stack->is_captured)
		return;
	error = lua_process_unwind(process, &frames, &count, &state);
	lua_process_note_unwound(process, &stack->hints);
	if (!error)
		heap_running_set(&stack->frames, lua_process_stack(process), global->g);
}

void running_stack_clear(struct running_stack *stack)
{
	heap_running_clear(&stack->frames);
}

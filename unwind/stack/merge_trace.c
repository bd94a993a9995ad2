/* SPDX-License-Identifier: MIT */
/* Frames that a trace has inlined, and those that its exit restores. */
#include "unwind/stack/merge_trace.h"

#include "luajit-layouts/vmstate.h"
#include "unwind/capture/cframes.h"
#include "unwind/trace/trace_block.h"
#include "unwind/lua/luajit.h"
#include "unwind/vm/vm_frame.h"

/*
 * Prefer a state that runs a trace: memory of a closed state may still claim code that is another's by now.
 */
const struct trace *merge_find_trace(const struct capture *capture, uint64_t pc,
				     const struct global_view **ret_view)
{
	const struct trace *found = NULL;

	for (size_t i = 0; i < capture->global_count; i++) {
		const struct global_view *view = &capture->globals[i];
		const struct trace *trace = view->global->traces ? traces_find(view->global->traces, pc)
								 : NULL;

		if (!trace || (found && view->jit_base == 0))
			continue;
		*ret_view = view;
		found = trace;
		if (view->jit_base)
			break;
	}
	return found;
}

const struct lua_thread *merge_thread_on_trace(const struct merge *merge, const struct global_view *view,
					       uint64_t sp, uint64_t *ret_cframe)
{
	const struct lua_thread *found = NULL;

	for (size_t i = 0; i < merge->capture->thread_count; i++) {
		const struct lua_thread *thread = &merge->capture->threads[i];
		uint64_t cframe;

		if (thread->global != view->global || (view->cur_L && view->cur_L != thread->address))
			continue;
		cframe = cframe_above(merge->capture, merge->memory, thread, sp);
		/* jit_L is 0 while a trace is left: those that resume the thread have theirs further out. */
		if (cframe && (!found || cframe < *ret_cframe)) {
			found = thread;
			*ret_cframe = cframe;
		}
	}
	return found;
}

/* The trace that runs, or is being left: then pc is 0. */
struct run {
	const struct trace *trace;
	uint64_t pc;
};

/*
 * Where an inlined frame's slots are: on Lua's stack they lie as on the trace's. The start
 * frame is sure to be there; others only where the position in the trace is known.
 */
static void set_slots(const struct lua_section *section, const struct run *run,
		      const struct trace_frame *inlined, struct merged_frame *frame)
{
	unsigned start = frame_slots(section->walk.thread->layout->gc64);

	frame->trace = run->trace;
	frame->trace_pc = run->pc;
	if (inlined->base_slot < start || (inlined->is_near && inlined->base_slot != start))
		return;
	frame->thread = section->walk.thread;
	frame->base = section->walk.base + (uint64_t)(inlined->base_slot - start) * SLOT_SIZE;
	frame->trace_slot = inlined->base_slot;
}

/* Add one inlined frame of a trace, by its function constant or by the owner of its bytecode. */
static struct merged_frame *add_trace_frame(struct merge *merge, struct global_state *global,
					    const struct trace_frame *inlined)
{
	const struct function_object *function = inlined->function ? lua_objects_function(merge->lua.objects,
											  inlined->function)
								   : NULL;
	const struct proto *proto = inlined->pc ? lua_objects_proto_of_pc(merge->lua.objects, inlined->pc)
						: NULL;
	struct merged_frame *frame;

	if (function && function->ffid != FF_LUA)
		frame = merged_stack_add(merge->lua.stack, MERGED_C_FUNCTION);
	else if (proto)
		frame = merged_stack_add(merge->lua.stack, MERGED_LUA);
	else
		frame = NULL;
	if (!frame) {
		merged_stack_add_lost(merge->lua.stack, LOST_IN_TRACE);
		return NULL;
	}
	frame->global = global;
	frame->compiled = true;
	if (frame->kind == MERGED_LUA) {
		frame->proto = proto;
		frame->pc = inlined->pc;
		frame->function = function && function->proto == proto ? function : NULL;
	} else {
		frame->function = function;
	}
	return frame;
}

/*
 * Add the frames that the trace has inlined, its start frame, and those of the
 * section that follow.
 */
static void add_trace(struct merge *merge, struct lua_section *section, const struct run *run,
		      const struct trace_frame *inlined, size_t count)
{
	struct merged_frame *callee = NULL;
	size_t callee_at = 0;

	for (size_t i = 0; i < count; i++) {
		struct merged_frame *frame = add_trace_frame(merge, section->walk.thread->global,
							     &inlined[i]);

		if (callee && frame && frame->kind == MERGED_LUA) {
			callee = &merge->lua.stack->frames[callee_at];
			callee->caller = frame->proto;
			callee->caller_pc = frame->pc;
			callee->called_by_metamethod = inlined[i].is_continuation;
		}
		if (frame && frame->kind == MERGED_LUA) {
			frame->pc_is_near = inlined[i].is_near;
			set_slots(section, run, &inlined[i], frame);
		}
		callee = frame;
		callee_at = merge->lua.stack->count - 1;
	}
	if (count == 0)
		merged_stack_add_lost(merge->lua.stack, LOST_IN_TRACE);
	if (lua_section_step_down(&merge->lua, section, callee))
		lua_section_add(&merge->lua, section);
	else if (lua_walk_is_done(&section->walk))
		lua_section_add_parents(&merge->lua, section);
}

/*
 * Does the frame at jit_base belong to this trace? Around the jump from one
 * trace to another it may be the other's. In memory it has the function that
 * the trace started in, or its root if it is a side trace, or the one that the
 * trace states; the latter two differ after a tail call.
 */
static bool is_start_frame(const struct merge *merge, const struct lua_section *section,
			   const struct global_view *view, const struct trace *trace,
			   const struct trace_frame *start)
{
	const struct trace *root = trace->root ? traces_by_number(view->global->traces, trace->root) : trace;
	struct lua_activation activation;

	if (!lua_walk_activation(&section->walk, &activation) || !activation.function ||
	    !activation.function->proto)
		return false;
	return activation.function->proto->address == trace->startpt || !root ||
	       activation.function->proto->address == root->startpt ||
	       activation.function->proto == lua_objects_proto_of_pc(merge->lua.objects, start->pc);
}

static bool is_known_frame(const struct merge *merge, const struct trace_frame *inlined)
{
	return (inlined->function && lua_objects_function(merge->lua.objects, inlined->function)) ||
	       (inlined->pc && lua_objects_proto_of_pc(merge->lua.objects, inlined->pc));
}

static void enter_trace(struct merge *merge, const struct lua_thread *thread, const struct global_view *view,
			const struct run *run, const struct trace_frame *inlined, size_t count)
{
	struct lua_section *section = lua_section_of(&merge->lua, thread);

	if (!section->started)
		lua_section_start(&merge->lua, thread, view->jit_base);
	if (section->ended)
		return;
	if (section->walk.base != view->jit_base || !lua_thread_contains_base(thread, view->jit_base)) {
		merged_stack_add_lost(merge->lua.stack, LOST_IN_TRACE);
		section->ended = true;
		return;
	}
	if (count && !is_start_frame(merge, section, view, run->trace, &inlined[count - 1]))
		count = 0;
	/* A trace may end in a call of an unknown builtin, which it has not really made: leave that out. */
	if (count > 1 && !is_known_frame(merge, &inlined[0])) {
		inlined++;
		count--;
	}
	add_trace(merge, section, run, inlined, count);
}

enum passed merge_pass_trace(struct merge *merge, const struct trace *trace, const struct global_view *view)
{
	const struct native_frame *native = native_current(merge->native);
	const struct layout *layout = &view->global->vm->layout;
	uint64_t pc = native_code_address(native), cframe;
	const struct lua_thread *thread = merge_thread_on_trace(merge, view, native->registers.sp, &cframe);
	struct trace_frame inlined[TRACE_FRAMES_MAX];
	const struct run run = { .trace = trace, .pc = pc };

	/* The first and last instructions of a trace run with another stack pointer. */
	if (!thread ||
	    (native->is_return_address && vm_trace_cframe(&native->registers, trace->spadjust) != cframe)) {
		merged_stack_add_lost(merge->lua.stack, LOST_IN_TRACE);
		return PASSED_LOST;
	}
	enter_trace(merge, thread, view, &run, inlined,
		    traces_frames(view->global->traces, trace, layout, merge->lua.objects, pc, inlined));
	return merge_leave_vm_frame(merge, layout, cframe, true);
}

enum passed merge_pass_lost_trace(struct merge *merge, const struct lua_thread *thread,
				  const struct global_view *view, uint64_t cframe)
{
	struct lua_section *section = lua_section_start(&merge->lua, thread, view->jit_base);

	merged_stack_add_lost(merge->lua.stack, LOST_IN_TRACE);
	if (lua_thread_contains_base(thread, view->jit_base) &&
	    lua_section_step_down(&merge->lua, section, NULL))
		lua_section_add(&merge->lua, section);
	return merge_leave_vm_frame(merge, thread->layout, cframe, true);
}

/*
 * Find the running trace by g->vmstate: what it calls returns to it by the word just below its part of
 * the stack. arm64's traces leave 0 there; what they call saves the VM's frame pointer, and the return
 * address with it.
 */
static bool find_calling_trace(const struct merge *merge, const struct global_view *view, uint64_t cframe,
			       struct registers *ret_caller)
{
	const struct trace *trace = traces_by_number(view->global->traces, (uint32_t)view->vmstate), *calling;
	struct registers caller = { .unknown = REGISTERS_ALL_BUT_PC_AND_SP };

	if (!trace && view->vmstate != 0)
		return false;
	caller.sp = trace ? vm_trace_sp(cframe, trace->spadjust) : cframe;
	if (!vm_frame_called(&view->global->vm->layout, merge->memory, cframe,
			     native_current(merge->native)->registers.sp, caller.sp, &caller.pc))
		return false;
	calling = traces_find(view->global->traces, caller.pc - 1);
	if (!calling || (trace && calling != trace))
		return false;
	caller.sp = vm_trace_sp(cframe, calling->spadjust);
	*ret_caller = caller;
	return true;
}

bool merge_resynchronise_in_trace(struct merge *merge, const struct lua_thread *thread, uint64_t cframe)
{
	const struct global_view *view = capture_find_global(merge->capture, thread->global);
	struct registers caller;

	if (!view || view->vmstate < 0 || view->jit_base == 0 || thread->cframe != cframe ||
	    (view->cur_L && view->cur_L != thread->address) || !view->global->traces ||
	    lua_section_of(&merge->lua, thread)->started)
		return false;
	if (!find_calling_trace(merge, view, cframe, &caller) ||
	    caller.sp == native_current(merge->native)->registers.sp)
		return merge_pass_lost_trace(merge, thread, view, cframe) == PASSED_ON;
	native_continue(merge->native, &caller);
	return true;
}

/*---- Traces that are left ----*/

/* The trace being left, and the frames of the snapshot that its exit restores. */
struct exiting_trace {
	const struct trace *trace;
	struct trace_frame frames[TRACE_FRAMES_MAX];
	size_t count;
};

/* False if it is unknown. */
static bool find_exiting(struct merge *merge, const struct global_view *view,
			 struct exiting_trace *ret_exiting)
{
	const struct layout *layout = &view->global->vm->layout;
	uint64_t J = view->global->g + (uint64_t)layout->GG_J;
	uint32_t parent, exitno;

	if (!memory_u32(merge->memory, J + (uint64_t)layout->J_parent, &parent) ||
	    !memory_u32(merge->memory, J + (uint64_t)layout->J_exitno, &exitno))
		return false;
	ret_exiting->trace = traces_by_number(view->global->traces, parent);
	if (!ret_exiting->trace)
		return false;
	ret_exiting->count = trace_exit_frames(ret_exiting->trace, layout, exitno, ret_exiting->frames,
					       TRACE_FRAMES_MAX);
	return ret_exiting->count > 0;
}

/* Is the stack restored? After that, lj_trace_exit() runs a step of the collector or of the recorder. */
static bool has_exited(const struct merge *merge, const struct global_view *view)
{
	const struct layout *layout = &view->global->vm->layout;
	uint32_t state;

	switch (view->vmstate) {
	case VMST_GC:
	case VMST_RECORD:
	case VMST_OPT:
	case VMST_ASM: return true;
	default: /* J->state is LJ_TRACE_IDLE until the recorder starts */
		return memory_u32(merge->memory,
				  view->global->g + (uint64_t)layout->GG_J + (uint64_t)layout->J_state,
				  &state) &&
		       state != 0;
	}
}

/* Does the stack have these frames from base downwards, and the last of them at start? */
static bool are_restored(const struct merge *merge, const struct lua_thread *thread, uint64_t base,
			 uint64_t start, const struct trace_frame *frames, size_t count)
{
	struct lua_walk walk = { .thread = thread, .objects = merge->lua.objects, .base = base };
	uint64_t link;

	for (size_t i = 0; i + 1 < count; i++) {
		struct lua_activation activation;

		if (!lua_walk_activation(&walk, &activation) || !activation.function)
			return false;
		if (frames[i].pc &&
		    activation.function->proto != lua_objects_proto_of_pc(merge->lua.objects, frames[i].pc))
			return false;
		switch (lua_walk_step(&walk)) {
		case LUA_STEP_CALL:
		case LUA_STEP_METAMETHOD:
		case LUA_STEP_PROTECTED: break;
		case LUA_STEP_FROM_C:
		case LUA_STEP_BOTTOM:
		case LUA_STEP_BROKEN: return false;
		}
		if (frames[i + 1].pc && walk.pc != frames[i + 1].pc)
			return false;
	}
	/* A trace may begin below a vararg function's copy of its frame. */
	if (walk.base != start && lua_thread_link(thread, walk.base, &link) &&
	    (link & FRAME_TYPE_P) == FRAME_VARG)
		walk.base -= link & ~(uint64_t)FRAME_TYPE_P;
	return walk.base == start;
}

/*
 * Find the start frame's base; 0 if there is none. An exit restores a snapshot's frames
 * from the outermost on, and moves L->base along from the start frame to the innermost.
 * With recursive functions several bases may fit: then ret_is_sure is false, and the
 * result the lowest.
 */
static uint64_t find_exit_start(const struct merge *merge, const struct lua_section *section,
				const struct global_view *view, const struct exiting_trace *exiting,
				bool *ret_is_sure)
{
	const struct trace_frame *frames = exiting->frames;
	size_t count = exiting->count;
	unsigned start_slot = frame_slots(section->walk.thread->layout->gc64);
	struct lua_section start = *section;
	uint64_t found = 0;

	*ret_is_sure = true;
	for (size_t i = count + 1; i-- > 0;) {
		unsigned slots = i < count ? frames[i].base_slot - start_slot : 0;

		start.walk.base = section->walk.base - slots * (uint64_t)SLOT_SIZE;
		if (start.walk.base == found ||
		    !lua_thread_contains_base(section->walk.thread, start.walk.base) ||
		    !is_start_frame(merge, &start, view, exiting->trace, &frames[count - 1]) ||
		    (i < count && !are_restored(merge, section->walk.thread, section->walk.base,
						start.walk.base, frames + i, count - i)))
			continue;
		*ret_is_sure = found == 0;
		found = start.walk.base;
	}
	return found;
}

enum passed merge_pass_trace_exit(struct merge *merge, const struct vm_code *vm)
{
	const struct native_frame *native = native_current(merge->native);

	for (size_t i = 0; i < merge->capture->global_count; i++) {
		const struct global_view *view = &merge->capture->globals[i];
		struct exiting_trace exiting;
		const struct lua_thread *thread;
		struct lua_section *section;
		uint64_t cframe, start = 0;
		bool has_started, is_sure = true;

		if (view->global->vm != vm || !view->global->traces)
			continue;
		thread = merge_thread_on_trace(merge, view, native->registers.sp, &cframe);
		if (!thread)
			continue;
		section = lua_section_of(&merge->lua, thread);
		has_started = section->started;
		if (!has_started)
			lua_section_start(&merge->lua, thread, thread->base);
		if (!section->ended && !has_exited(merge, view) && find_exiting(merge, view, &exiting))
			start = find_exit_start(merge, section, view, &exiting, &is_sure);
		if (start) {
			section->walk.base = start;
			section->walk.pc = 0;
			add_trace(merge, section, &(struct run){ .trace = exiting.trace }, exiting.frames,
				  is_sure ? exiting.count : 0);
		} else {
			/* SAVE_PC is then the next instruction. */
			if (!has_started)
				vm_frame_pc(&vm->layout, merge->memory, cframe, &section->walk.pc);
			lua_section_add(&merge->lua, section);
		}
		return merge_leave_vm_frame(merge, &vm->layout, cframe, true);
	}
	return PASSED_LOST;
}

/* SPDX-License-Identifier: MIT */
/* Interpreter frames: leaves, callers, and where to go on when native unwinding fails. */
#include "unwind/stack/merge_vm.h"

#include "luajit-layouts/vmstate.h"
#include "unwind/capture/cframe_search.h"
#include "unwind/capture/cframes.h"
#include "unwind/capture/unknown_states.h"
#include "unwind/lua/luajit.h"
#include "unwind/stack/lua_top.h"
#include "unwind/stack/merge_trace.h"
#include "unwind/vm/vm_frame.h"

/*---- Lua frames ----*/

/*
 * In the first and last instructions of a call from C, L->base is that of the calling
 * C function. Each C frame has a Lua frame that C has called: is one missing here?
 */
static bool is_call_missing(const struct merge *merge, const struct lua_walk *top, uint64_t cframe)
{
	struct lua_walk walk = *top;
	struct lua_activation activation;
	enum lua_step step = LUA_STEP_CALL;
	unsigned calls = 0;

	if (!lua_walk_activation(top, &activation) || !activation.function || activation.function->proto)
		return false;
	for (unsigned i = 0; i < MERGE_FRAMES_MAX && step != LUA_STEP_BOTTOM; i++) {
		step = lua_walk_step(&walk);
		if (step == LUA_STEP_BROKEN)
			return false;
		calls += step == LUA_STEP_FROM_C;
	}
	return calls + 1 == cframe_count(merge->capture, merge->memory, top->thread, cframe);
}

static bool start_section(struct merge *merge, struct lua_section *section, const struct lua_thread *thread,
			  uint64_t cframe)
{
	const struct native_frame *native = native_current(merge->native);
	const struct lua_running running = merge_running_at(merge, thread, cframe);

	if (merge->is_half_done)
		return merge->is_half_done = false;
	if (native->is_return_address)
		return lua_top_below_native(&running, merge->image, &native->registers, &section->walk);
	if (!lua_top_in_vm(&running, merge->image, &native->registers, &section->walk))
		return false;
	if (!section->walk.is_below_c)
		section->walk.is_below_c = is_call_missing(merge, &section->walk, cframe);
	return true;
}

/*
 * Has an FFI callback ended except for its result? Then its C frame no longer
 * runs Lua frames, and the walk begins at those of the next C frame outwards.
 */
static bool has_called_back(const struct merge *merge, const struct lua_thread *thread,
			    struct lua_walk *ret_walk)
{
	const struct native_frame *native = native_current(merge->native);
	const struct module *module;
	struct lua_walk walk = { .thread = thread, .objects = merge->lua.objects, .base = thread->base };

	if (!native->is_return_address ||
	    image_classify(merge->image, native->registers.pc - 1, &module) != CODE_VM ||
	    !vm_is_leaving_callback(thread->layout, image_text(merge->image), module->vm,
				    native->registers.pc))
		return false;
	*ret_walk = walk;
	/* lj_ccallback_leave() sets L->base to the frame from which it converts the result. */
	if (lua_walk_is_callback(&walk) && lua_walk_step(&walk) == LUA_STEP_FROM_C)
		*ret_walk = walk;
	return true;
}

/*
 * Put the Lua frames that run in the VM's C frame into the stack. A frame of
 * lua_cpcall's kind, marked by a negative count of results, runs none.
 */
static void enter_section(struct merge *merge, const struct lua_thread *thread, uint64_t cframe)
{
	struct lua_section *section = lua_section_of(&merge->lua, thread);
	int32_t nresults;

	if (!vm_frame_nresults(thread->layout, merge->memory, cframe, &nresults) || nresults < 0)
		return;
	if (section->ended)
		return;
	if (!section->started && has_called_back(merge, thread, &section->walk)) {
		section->started = true;
		return;
	}
	if (section->started) {
		lua_top_resume(&section->walk, merge->memory, cframe);
	} else {
		section->started = true;
		if (!start_section(merge, section, thread, cframe)) {
			merged_stack_add_lost(merge->lua.stack, LOST_HALF_DONE);
			section->ended = true;
			return;
		}
	}
	lua_section_add(&merge->lua, section);
}

/*---- On to the next frame ----*/

bool merge_has_switched_stack(const struct merge *merge)
{
	const struct capture *capture = merge->capture;
	uint64_t cframe;

	return capture->own_end &&
	       !capture_on_own_stack(capture, native_current(merge->native)->registers.sp) &&
	       cframe_thread_above(capture, merge->memory, capture->own_begin, &cframe);
}

bool merge_resynchronise(struct merge *merge)
{
	struct registers registers = native_current(merge->native)->registers;
	const struct lua_thread *next;
	uint64_t cframe;

	next = cframe_thread_above(merge->capture, merge->memory, registers.sp, &cframe);
	if (!next && merge_has_switched_stack(merge))
		next = cframe_thread_above(merge->capture, merge->memory, merge->capture->own_begin, &cframe);
	if (!next)
		return false;
	if (merge_resynchronise_in_trace(merge, next, cframe))
		return true;
	if (!vm_frame_called(next->layout, merge->memory, cframe, registers.sp, cframe, &registers.pc))
		return false;
	registers.sp = cframe;
	registers.unknown = REGISTERS_ALL_BUT_PC_AND_SP;
	native_continue(merge->native, &registers);
	enter_section(merge, next, cframe);
	return merge_leave_vm_frame(merge, next->layout, cframe, false) == PASSED_ON;
}

/*---- Leaves ----*/

/*
 * A leaf in the VM, but not in an interpreter frame that is linked: a leaf
 * routine called from C or from a trace, or the way out of a trace.
 */
static enum passed pass_vm_routine(struct merge *merge, const struct vm_code *vm)
{
	const struct native_frame *native = native_current(merge->native);
	struct registers caller;
	const struct global_view *view = NULL;
	const struct lua_thread *thread = NULL;
	struct lua_section *section;
	struct lua_running running;
	uint64_t cframe;

	for (size_t i = 0; i < merge->capture->global_count && !thread; i++) {
		view = &merge->capture->globals[i];
		if (view->global->vm == vm && view->jit_base != 0)
			thread = merge_thread_on_trace(merge, view, native->registers.sp, &cframe);
	}
	if (registers_returned(&native->registers, merge->memory, &caller)) {
		const struct global_view *trace_view;
		const struct trace *trace = merge_find_trace(merge->capture, caller.pc - 1, &trace_view);

		if (trace && thread && vm_trace_cframe(&caller, trace->spadjust) == cframe) {
			native_continue(merge->native, &caller);
			return PASSED_ON;
		}
		/* A trace or an exit calls C code, which may call such a routine itself. */
		if ((!thread || vm_is_called(image_text(merge->image), vm, caller.pc)) &&
		    image_classify(merge->image, caller.pc - 1, NULL) == CODE_NATIVE) {
			native_continue(merge->native, &caller);
			return PASSED_ON;
		}
	}
	if (!thread)
		return PASSED_LOST;

	section = lua_section_of(&merge->lua, thread);
	if (!section->started) {
		section->started = true;
		running = merge_running_at(merge, thread, cframe);
		if (!lua_top_leaving_trace(&running, &native->registers, &section->walk))
			return merge_pass_lost_trace(merge, thread, view, cframe);
	}
	lua_section_add(&merge->lua, section);
	return merge_leave_vm_frame(merge, &vm->layout, cframe, true);
}

/* The thread in whose C frame the VM's leaf runs, or NULL. */
static const struct lua_thread *thread_of_leaf(const struct merge *merge, const struct vm_code *vm,
					       uint64_t *ret_cframe)
{
	const struct native_frame *native = native_current(merge->native);
	uint64_t candidates[VM_FRAME_CANDIDATES_MAX];
	size_t count = vm_frame_candidates(&vm->layout, &native->registers, candidates);

	for (size_t i = 0; i < count; i++) {
		const struct lua_thread *thread = cframe_thread(merge->capture, merge->memory, &vm->layout,
								candidates[i]);

		if (thread && thread->cframe == candidates[i]) {
			*ret_cframe = candidates[i];
			return thread;
		}
	}
	return NULL;
}

enum passed merge_pass_vm_leaf(struct merge *merge, const struct vm_code *vm)
{
	const struct native_frame *native = native_current(merge->native);
	const struct lua_thread *thread;
	struct registers caller;
	uint64_t cframe;

	if (vm_is_entering_or_leaving(&vm->layout, image_text(merge->image), merge->memory,
				      &native->registers, &caller)) {
		native_continue(merge->native, &caller);
		return PASSED_ON;
	}
	thread = thread_of_leaf(merge, vm, &cframe);
	if (thread) {
		enter_section(merge, thread, cframe);
		return merge_leave_vm_frame(merge, &vm->layout, cframe, false);
	}
	if (vm_is_linking(image_text(merge->image), vm, native->registers.pc))
		return merge_leave_vm_frame(merge, &vm->layout, native->registers.sp, false);
	return pass_vm_routine(merge, vm);
}

bool merge_is_routine_of_c(const struct merge *merge, const struct vm_code *vm)
{
	const struct native_frame *native = native_current(merge->native);
	struct memory *text = image_text(merge->image);
	struct registers caller;
	uint64_t cframe;

	return native->code == CODE_VM && !thread_of_leaf(merge, vm, &cframe) &&
	       !vm_is_entering_or_leaving(&vm->layout, text, merge->memory, &native->registers, &caller) &&
	       !vm_is_linking(text, vm, native->registers.pc) &&
	       registers_returned(&native->registers, merge->memory, &caller) &&
	       image_classify(merge->image, caller.pc - 1, NULL) == CODE_NATIVE;
}

/*---- Callers ----*/

/*
 * Has an error already unwound this frame, while the native code that raised it
 * is still above it (lj_err.c: err_unwind)? Then its Lua frames are gone: the
 * thread has ended with the error, goes on in a C frame further out, or has no C
 * frame left as C gets the error. Any other frame that calls C is linked.
 */
static bool is_unwound(const struct merge *merge, const struct vm_code *vm, uint64_t cframe)
{
	const struct global_view *view;
	const struct lua_thread *thread;
	uint64_t address;

	if (!vm_frame_is_plausible(merge->image, &vm->layout, merge->memory, cframe, &address))
		return false;
	thread = capture_find_thread(merge->capture, address);
	if (!thread)
		return false;
	view = capture_find_global(merge->capture, thread->global);
	if (!view || view->vmstate == VMST_EXIT)
		return false;
	if (thread->cframe != 0 && thread->cframe <= cframe)
		return false;
	/* Its own link must lead to where the thread goes on: the stack may hold anything. */
	return cframe_leads_to(merge->capture, merge->memory, &vm->layout, cframe, thread->cframe);
}

/*
 * Has C code called the frame with this caller, or the VM to resume a coroutine? Then the resumer's frame is
 * next.
 */
static bool has_caller(const struct merge *merge, const struct layout *layout, const struct registers *caller)
{
	const struct module *module;
	enum code_kind kind = image_classify(merge->image, caller->pc - 1, &module);

	return kind == CODE_NATIVE ||
	       (kind == CODE_VM && vm_is_called(image_text(merge->image), module->vm, caller->pc) &&
		cframe_thread(merge->capture, merge->memory, layout, caller->sp));
}

/*
 * Find the frame by which its caller gets the error that left a thread without C frames: its
 * outermost one, which only the native stack still holds.
 */
static bool find_landing(const struct merge *merge, const struct lua_thread *thread, uint64_t *ret_cframe)
{
	const struct registers *frame = &native_current(merge->native)->registers;
	const struct layout *layout = thread->layout;
	struct cframe_search search = cframe_search(merge->capture->snapshot, merge->image, layout, frame->sp,
						    capture_stack_end(merge->capture, frame->sp));
	uint64_t cframe, address;

	while (capture_has_copied(merge->capture, frame->sp) &&
	       cframe_search_next(&search, &cframe, &address)) {
		uint64_t previous;
		struct registers caller;

		if (address != thread->address ||
		    !vm_frame_previous(layout, merge->memory, cframe, &previous) || previous != 0 ||
		    !vm_frame_caller(layout, merge->memory, cframe, frame, false, &caller) ||
		    !has_caller(merge, layout, &caller))
			continue;
		*ret_cframe = cframe;
		return true;
	}
	return false;
}

/* Does LuaJIT's compiler work? It catches its own errors, too. */
static bool is_compiling(const struct global_view *view)
{
	return view->vmstate == VMST_RECORD || view->vmstate == VMST_OPT || view->vmstate == VMST_ASM;
}

/*
 * The instruction that is recorded, J->pc (lj_trace.c: lj_trace_ins). SAVE_PC does not tell: it is the
 * next instruction, unless the exit of a trace started the recorder: then it is this one. For a builtin
 * it is the one that GCfunc.pc leads to. False if J->pc is none of the innermost function.
 */
static bool find_recorded(const struct merge *merge, const struct global_view *view, struct lua_walk *walk)
{
	const struct layout *layout = &view->global->vm->layout;
	struct lua_activation activation;
	uint64_t pc = 0;

	if (memory_read(merge->memory, view->global->g + (uint64_t)(layout->GG_J + layout->J_pc), &pc,
			layout_ref_size(layout)) != MEMORY_OK ||
	    !lua_walk_activation(walk, &activation) || !activation.function)
		return false;
	if (activation.function->ffid != FF_LUA)
		return activation.function->pc == pc;
	if (!activation.function->proto || !proto_contains_pc(activation.function->proto, pc))
		return false;
	walk->pc = pc;
	return true;
}

/*
 * An error is caught, and libgcc is about to go on at the VM's landing pad; its
 * frame already holds the registers for it, except the stack pointer. The thread's
 * fields are already those of the landing; if the error ended a coroutine, the next
 * frame is the resumer's.
 */
static enum passed pass_landing(struct merge *merge, const struct global_view *view,
				const struct lua_thread *thread)
{
	const struct native_frame *native = native_current(merge->native);
	struct lua_section *section = lua_section_of(&merge->lua, thread);
	uint64_t cframe = cframe_above(merge->capture, merge->memory, thread, native->registers.sp);
	struct lua_running running = merge_running_at(merge, thread, cframe);

	if (!cframe && find_landing(merge, thread, &cframe))
		return merge_leave_vm_frame(merge, &view->global->vm->layout, cframe, false);
	if (!cframe)
		return merge_resynchronise(merge) ? PASSED_ON : PASSED_LOST;
	if (!lua_top_as_stored(&running, &section->walk) ||
	    (is_compiling(view) && !find_recorded(merge, view, &section->walk)))
		return PASSED_LOST;
	section->started = true;
	lua_section_add(&merge->lua, section);
	return merge_leave_vm_frame(merge, &view->global->vm->layout, cframe, false);
}

/* LuaJIT 2.0 does not say which thread runs: take that with the next C frame, landed on or not. */
static const struct lua_thread *thread_landing_next(struct merge *merge, const struct global_view *view)
{
	uint64_t sp = native_current(merge->native)->registers.sp, nearest = UINT64_MAX;
	const struct lua_thread *found = NULL;

	for (size_t i = 0; i < merge->capture->thread_count; i++) {
		const struct lua_thread *thread = &merge->capture->threads[i];
		uint64_t cframe = thread->global == view->global
					  ? cframe_above(merge->capture, merge->memory, thread, sp)
					  : UINT64_MAX;

		if (!cframe && !find_landing(merge, thread, &cframe))
			continue;
		if (cframe < nearest) {
			nearest = cframe;
			found = thread;
		}
	}
	return found;
}

/* The thread that runs outside of traces, if its section has not started; else NULL. */
static const struct lua_thread *landing_thread(struct merge *merge, const struct vm_code *vm,
					       const struct global_view **ret_view)
{
	for (size_t i = 0; i < merge->capture->global_count; i++) {
		const struct global_view *view = &merge->capture->globals[i];
		const struct lua_thread *thread = view->global->vm != vm ? NULL
						  : vm->layout.g_cur_L == LAYOUT_ABSENT
							  ? thread_landing_next(merge, view)
							  : capture_find_thread(merge->capture, view->cur_L);

		if (!thread ||
		    (view->vmstate != VMST_INTERP && view->vmstate != VMST_C && !is_compiling(view)) ||
		    lua_section_of(&merge->lua, thread)->started)
			continue;
		*ret_view = view;
		return thread;
	}
	return NULL;
}

enum passed merge_pass_vm_caller(struct merge *merge, const struct vm_code *vm)
{
	const struct native_frame *native = native_current(merge->native);
	struct memory *text = image_text(merge->image);
	const struct global_view *view;
	const struct lua_thread *landing;
	uint64_t sp = native->registers.sp;

	/* The second round is for calls from a subroutine of the VM. */
	for (unsigned i = 0; i < 2; i++) {
		uint64_t cframe = sp + i * sizeof(uint64_t);
		const struct lua_thread *thread = cframe_thread(merge->capture, merge->memory, &vm->layout,
								cframe);

		if (!thread)
			continue;
		enter_section(merge, thread, cframe);
		return merge_leave_vm_frame(merge, &vm->layout, cframe, false);
	}
	if (vm_is_exiting(&vm->layout, text, native->registers.pc))
		return merge_pass_trace_exit(merge, vm);
	if (vm_calls_to_link(text, vm, native->registers.pc) ||
	    vm_is_leaving_callback(&vm->layout, text, vm, native->registers.pc) || is_unwound(merge, vm, sp))
		return merge_leave_vm_frame(merge, &vm->layout, sp, false);
	/* An unknown state runs within a known one: the known one's threads are not what runs here. */
	if (unknown_state_at(merge->capture, merge->image, vm, &native->registers, false))
		return PASSED_LOST;
	landing = landing_thread(merge, vm, &view);
	return landing ? pass_landing(merge, view, landing) : PASSED_LOST;
}

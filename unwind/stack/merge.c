/* SPDX-License-Identifier: MIT */
/* The walk along the native stack, and each kind of native frame on it. */
#include "unwind/stack/merge.h"

#include <errno.h>

#include "unwind/capture/cframes.h"
#include "unwind/capture/lua_moved.h"
#include "unwind/capture/unknown_states.h"
#include "unwind/stack/merge_state.h"
#include "unwind/stack/merge_trace.h"
#include "unwind/stack/merge_vm.h"
#include "unwind/stack/merge_walk.h"
#include "unwind/stack/vm_finish.h"
#include "unwind/vm/vm_frame.h"

/* Add the native frame to the stack. */
static void add_code_of(struct merge *merge, const struct native_frame *native, enum merged_kind kind,
			struct global_state *global, const struct trace *trace)
{
	struct merged_frame *frame = merged_stack_add(merge->lua.stack, kind);

	if (!frame)
		return;
	frame->global = global;
	frame->pc = native->registers.pc;
	frame->is_return_address = native->is_return_address;
	if (merge->lua.stack->count == 1) { /* the leaf: where it was before vm_finish() */
		frame->pc = merge->capture->registers.pc;
		frame->is_return_address = false;
	}
	frame->trace = trace;
	frame->proto = trace ? lua_objects_proto(merge->lua.objects, trace->startpt) : NULL;
}

static void add_code(struct merge *merge, enum merged_kind kind, struct global_state *global,
		     const struct trace *trace)
{
	add_code_of(merge, native_current(merge->native), kind, global, trace);
}

/* The VM whose code runs here; for a trace or stub, its global_State's VM. NULL if there is none. */
static const struct vm_code *running_vm(const struct merge *merge)
{
	const struct native_frame *native = native_current(merge->native);
	const struct global_view *view;

	if (native->code == CODE_VM)
		return native->module->vm;
	if (native->code != CODE_UNKNOWN)
		return NULL;
	if (merge_find_trace(merge->capture, native->registers.pc, &view))
		return view->global->vm;
	/* With several global_States, the owner of a stub is unknown. */
	return merge->capture->global_count == 1 ? merge->capture->globals[0].global->vm : NULL;
}

/* Finish what the VM has half done where it was stopped or interrupted, and go on from there. */
static void finish(struct merge *merge)
{
	const struct native_frame *native = native_current(merge->native);
	struct memory *text = image_text(merge->image);
	const struct vm_code *vm;
	struct registers registers;

	if (native->code == CODE_NATIVE && vm_is_about_to_land(text, &native->registers, &registers) &&
	    image_classify(merge->image, registers.pc, NULL) == CODE_VM)
		native_begin(merge->native, merge->memory, &registers);
	vm = running_vm(merge);
	if (!vm)
		return;
	registers = native->registers;
	switch (vm_finish(merge->capture, vm, text, merge->lua.objects, merge->decoder, &registers)) {
	case VM_FINISHD_STAYS: break;
	case VM_FINISHD_UNKNOWN: merge->is_half_done = !merge_is_routine_of_c(merge, vm); break;
	case VM_FINISHD_DISPATCHES: native_begin(merge->native, merge->memory, &registers); break;
	case VM_FINISHD_RETURNED:
		add_code(merge, MERGED_VM, NULL, NULL);
		native_continue(merge->native, &registers);
		break;
	case VM_FINISHD_CALLS: native_continue(merge->native, &registers); break;
	}
}

/* The next C frame of a Lua thread outwards; 0 if there is none. */
static uint64_t linked_above(const struct merge *merge)
{
	uint64_t cframe;

	return cframe_thread_above(merge->capture, merge->memory, native_current(merge->native)->registers.sp,
				   &cframe)
		       ? cframe
		       : 0;
}

static enum passed pass_native(struct merge *merge)
{
	enum native_status status = native_step(merge->native);

	if (status == NATIVE_LOST)
		status = native_lacks_register(merge->native)
				 ? native_step_by_depth(merge->native, linked_above(merge))
				 : native_step_by_code(merge->native, linked_above(merge));
	switch (status) {
	case NATIVE_FRAME:
		/* A signal interrupted this frame. */
		if (!native_current(merge->native)->is_return_address)
			finish(merge);
		return PASSED_ON;
	case NATIVE_END: return PASSED_END;
	case NATIVE_LOST: break;
	}
	return PASSED_LOST;
}

static enum passed pass_ffi_call(struct merge *merge, const struct vm_code *vm)
{
	const struct native_frame *native = native_current(merge->native);
	struct memory *text = image_text(merge->image);
	struct registers caller;
	enum passed passed;

	if (native->is_return_address ||
	    !vm_is_entering_or_leaving_ffi_call(vm, text, merge->memory, &native->registers, &caller)) {
		passed = pass_native(merge);
		if (passed != PASSED_LOST || !native->is_return_address ||
		    !vm_find_ffi_caller(vm, text, merge->memory, &native->registers, &caller))
			return passed;
	}
	native_continue(merge->native, &caller);
	return PASSED_ON;
}

/* May this code be a running trace whose layout is not settled? */
static bool may_be_in_trace(const struct merge *merge)
{
	for (size_t i = 0; i < merge->capture->global_count; i++) {
		const struct global_view *view = &merge->capture->globals[i];

		if (view->global->vm->traces_open && view->jit_base != 0)
			return true;
	}
	return false;
}

/* Successive callers in code in no module become one frame: no names tell them apart. */
static void add_made_code(struct merge *merge, const struct native_frame *native)
{
	const struct merged_stack *stack = merge->lua.stack;
	const struct merged_frame *last = stack->count ? &stack->frames[stack->count - 1] : NULL;

	if (!last || last->kind != MERGED_NATIVE || !image_is_made(merge->image, last->pc))
		add_code_of(merge, native, MERGED_NATIVE, NULL, NULL);
}

/* May code in no module be an unknown trace? */
static bool may_be_luajits(const struct merge *merge)
{
	for (size_t i = 0; i < merge->capture->global_count; i++)
		if (merge->capture->globals[i].jit_base)
			return true;
	return image_has_unknown_vm(merge->image);
}

/*
 * Pass code in no module and in no known trace: any program may have made it at run
 * time. If it returns, it is a function and not a trace. A return address that leads
 * nowhere need not be code at all.
 */
static enum passed pass_made_code(struct merge *merge)
{
	const struct native_frame native = *native_current(merge->native);
	enum passed passed = pass_native(merge);

	if (passed == PASSED_ON || (!native.is_return_address && !may_be_luajits(merge)))
		add_made_code(merge, &native);
	else if (may_be_in_trace(merge))
		merged_stack_add_lost(merge->lua.stack, LOST_IN_TRACE);
	return passed;
}

/* Pass code of a module. A VM with an unknown layout has native frames only. */
static enum passed pass_module_code(struct merge *merge)
{
	const struct native_frame *native = native_current(merge->native);

	add_code(merge, MERGED_NATIVE, NULL, NULL);
	stack_requests_judge(&merge->capture->on_stack, &native->registers);
	if (image_in_unknown_vm(merge->image, native_code_address(native)))
		merged_stack_add_lost(merge->lua.stack, LOST_UNKNOWN_LAYOUT);
	return pass_native(merge);
}

static enum passed pass(struct merge *merge)
{
	const struct native_frame *native = native_current(merge->native);
	const struct global_view *view;
	const struct trace *trace;

	switch (native->code) {
	case CODE_NATIVE: return pass_module_code(merge);
	case CODE_VM_FFI_CALL:
		add_code(merge, MERGED_VM, NULL, NULL);
		return pass_ffi_call(merge, native->module->vm);
	case CODE_VM:
		add_code(merge, MERGED_VM, NULL, NULL);
		return native->is_return_address ? merge_pass_vm_caller(merge, native->module->vm)
						 : merge_pass_vm_leaf(merge, native->module->vm);
	case CODE_UNKNOWN: break;
	}
	trace = merge_find_trace(merge->capture, native_code_address(native), &view);
	if (!trace)
		return pass_made_code(merge);
	add_code(merge, MERGED_TRACE, view->global, trace);
	return merge_pass_trace(merge, trace, view);
}

static bool has_global(const struct capture *capture, const struct vm_code *vm)
{
	for (size_t i = 0; i < capture->global_count; i++) {
		if (capture->globals[i].global->vm == vm)
			return true;
	}
	return false;
}

/* Why the walk cannot go on from the current frame. */
static enum lost_reason why_lost(const struct merge *merge)
{
	const struct native_frame *native = native_current(merge->native);

	if (native->code == CODE_VM || native->code == CODE_VM_FFI_CALL) {
		const struct vm_code *vm = native->module->vm;

		if (!vm->confirmed)
			return LOST_UNCONFIRMED;
		if (!has_global(merge->capture, vm) ||
		    unknown_state_at(merge->capture, merge->image, vm, &native->registers,
				     !native->is_return_address))
			return LOST_STATE_UNKNOWN;
	}
	if (native->code == CODE_UNKNOWN && image_has_unknown_vm(merge->image))
		return LOST_UNKNOWN_LAYOUT;
	if (native->code == CODE_UNKNOWN &&
	    unknown_state_above(merge->capture, merge->image, native->registers.sp))
		return LOST_STATE_UNKNOWN;
	return native_lacks_register(merge->native) ? LOST_REGISTER_UNKNOWN : LOST_NATIVE_UNWIND;
}

/* Does the current frame end beyond the copy of the stack? It may begin where that ends. */
static bool passes_copy(const struct merge *merge)
{
	const struct native_frame *native = native_current(merge->native);
	uint64_t at = native->registers.sp;

	if (!capture_has_copied(merge->capture, at))
		at--;
	return native->code == CODE_NATIVE && capture_has_copied(merge->capture, at) &&
	       native_caller_sp(merge->native) > capture_stack_end(merge->capture, at);
}

static bool has_lost(const struct merged_stack *stack, enum lost_reason reason)
{
	for (size_t i = 0; i < stack->count; i++)
		if (stack->frames[i].kind == MERGED_LOST && stack->frames[i].lost == reason)
			return true;
	return false;
}

/*
 * A VM with an unknown layout may keep Lua frames for any thread that runs no known one: mark the stacks
 * that show no code of that VM, too.
 */
static void mark_unknown_vm(const struct merge *merge)
{
	struct merged_stack *stack = merge->lua.stack;

	if (image_has_unknown_vm(merge->image) && merge->capture->thread_count == 0 &&
	    !merged_stack_is_full(stack) && !has_lost(stack, LOST_UNKNOWN_LAYOUT))
		merged_stack_add_lost(stack, LOST_UNKNOWN_LAYOUT);
}

int merge_stacks(struct capture *capture, struct image *image, struct lua_objects *objects,
		 struct native_unwinder *native, struct vm_decoder *decoder, struct merged_stack *stack)
{
	struct merge merge;
	enum passed passed = PASSED_ON;
	bool is_whole = true;

	merge.capture = capture;
	merge.image = image;
	merge.native = native;
	merge.decoder = decoder;
	merge.memory = snapshot_memory(capture->snapshot);
	merge.is_half_done = false;
	lua_sections_begin(&merge.lua, capture, objects, stack);
	merged_stack_begin(stack, VM_STATE_NONE);
	for (size_t i = 0; i < capture->thread_count; i++)
		lua_moved_adjust(capture->snapshot, &capture->registers, objects, &capture->threads[i]);
	native_begin(native, merge.memory, &capture->registers);
	finish(&merge);
	while (passed == PASSED_ON && !stack->out_of_memory) {
		if (merged_stack_is_full(stack)) {
			merged_stack_add_lost(stack, LOST_TOO_DEEP);
			break;
		}
		passed = pass(&merge);
		/* The end of another stack does not say which code went over to it. */
		if (passed == PASSED_END && merge_has_switched_stack(&merge))
			passed = PASSED_LOST;
		if (passed != PASSED_LOST)
			continue;
		is_whole = false;
		stack->passes_copy |= passes_copy(&merge);
		merged_stack_add_lost(stack, why_lost(&merge));
		if (merge_resynchronise(&merge))
			passed = PASSED_ON;
	}
	if (is_whole && passed == PASSED_END)
		stack->native_end = native_end(native);
	mark_unknown_vm(&merge);
	stack_requests_end(&capture->on_stack, is_whole && passed == PASSED_END);
	stack->vm_state = merge_vm_state(capture, image, stack);
	return stack->out_of_memory ? -ENOMEM : 0;
}

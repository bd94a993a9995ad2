/* SPDX-License-Identifier: MIT */
/* The VM state of a merged stack. */
#include "unwind/stack/merge_state.h"

#include "unwind/lua/luajit.h"
#include "unwind/stack/merge_trace.h"

/* The state in code that is in no module: is it a trace, or on the way out of one? */
static enum vm_state state_in_unknown_code(const struct capture *capture, const struct global_view *view,
					   uint64_t pc)
{
	const struct global_view *owner;

	if (merge_find_trace(capture, pc, &owner))
		return VM_STATE_COMPILED;
	if (!view)
		return VM_STATE_UNKNOWN;
	if (view->global->traces && traces_is_exit(view->global->traces, pc))
		return VM_STATE_EXIT;
	return view->jit_base ? VM_STATE_COMPILED : VM_STATE_UNKNOWN;
}

/* Is the leaf native code whose caller is known? */
static bool is_called(const struct merged_stack *stack)
{
	return stack->count > 1 && stack->frames[0].kind == MERGED_NATIVE &&
	       stack->frames[1].kind != MERGED_LOST;
}

/*
 * The state in the VM's own code. While g->vmstate names a trace, either that trace
 * has called a leaf routine, or it is left and the code has not stored that yet.
 */
static enum vm_state state_in_vm(const struct merged_stack *stack, const struct global_view *view)
{
	if (!view || (view->vmstate < 0 && view->vmstate != VMST_EXIT))
		return VM_STATE_INTERPRETED;
	return view->vmstate >= 0 && stack->count > 1 && stack->frames[1].kind == MERGED_TRACE
		       ? VM_STATE_COMPILED
		       : VM_STATE_EXIT;
}

static bool is_of_unknown_state(const struct merged_stack *stack)
{
	for (size_t i = 0; i < stack->count; i++)
		if (stack->frames[i].kind == MERGED_LOST && stack->frames[i].lost == LOST_STATE_UNKNOWN)
			return true;
	return false;
}

enum vm_state merge_vm_state(const struct capture *capture, const struct image *image,
			     const struct merged_stack *stack)
{
	const struct global_view *view = NULL;
	const struct module *module;
	bool has_lua = false;

	for (size_t i = 0; i < stack->count && !has_lua; i++)
		has_lua = stack->frames[i].kind == MERGED_LUA || stack->frames[i].kind == MERGED_C_FUNCTION;
	if (!has_lua)
		return is_of_unknown_state(stack) ? VM_STATE_UNKNOWN : VM_STATE_NONE;
	if (capture->thread_count)
		view = capture_find_global(capture, capture->threads[0].global);
	switch (image_classify(image, capture->registers.pc, &module)) {
	case CODE_UNKNOWN:
		if (is_called(stack))
			break;
		return state_in_unknown_code(capture, view, capture->registers.pc);
	case CODE_VM: return state_in_vm(stack, view);
	case CODE_VM_FFI_CALL:
	case CODE_NATIVE: break;
	}
	if (!view)
		return VM_STATE_UNKNOWN;
	switch (view->vmstate) {
	case VMST_GC: return VM_STATE_GC;
	case VMST_RECORD: return VM_STATE_RECORDING;
	case VMST_OPT: return VM_STATE_OPTIMISING;
	case VMST_ASM: return VM_STATE_ASSEMBLING;
	case VMST_EXIT: return VM_STATE_EXIT;
	default: return VM_STATE_C;
	}
}

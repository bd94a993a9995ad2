/* SPDX-License-Identifier: MIT */
/* The VM state of a merged stack. */
#include "unwind/stack/merge_state.h"

#include "luajit-layouts/vmstate.h"
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
	if (view->global->traces && traces_is_exit(view->global->traces, &view->global->vm->layout, pc))
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

static enum gc_phase gc_phase_of(uint8_t state)
{
	switch (state) {
	case GCSpause: /* the roots are marked before the state changes */
	case GCSpropagate: return GC_PHASE_MARK;
	case GCSatomic: return GC_PHASE_ATOMIC;
	case GCSsweepstring: return GC_PHASE_SWEEP_STRINGS;
	case GCSsweep: return GC_PHASE_SWEEP;
	case GCSfinalize: return GC_PHASE_FINALIZE;
	default: return GC_PHASE_UNKNOWN;
	}
}

const struct global_view *merge_innermost_view(const struct capture *capture)
{
	if (capture->running || capture->thread_count == 0)
		return capture->running;
	return capture_find_global(capture, capture->threads[0].global);
}

/* Each marking ends with the other white as the current one (lj_gc.c: atomic()). */
static bool has_marked(const struct global_view *view)
{
	struct global_state *global = view->global;
	bool has = global->currentwhite && global->currentwhite != view->gc_currentwhite;

	global->currentwhite = view->gc_currentwhite;
	return has;
}

struct sample_gc merge_gc(const struct capture *capture, enum vm_state vm_state)
{
	const struct global_view *view = merge_innermost_view(capture);
	struct sample_gc gc = { .phase = GC_PHASE_NONE };

	if (!view || vm_state == VM_STATE_NONE)
		return gc;
	gc.has_marked = has_marked(view);
	gc.heap_bytes = view->gc_total;
	if (view->hookmask & HOOK_GC)
		gc.phase = GC_PHASE_FINALIZE;
	else if (vm_state == VM_STATE_GC)
		gc.phase = gc_phase_of(view->gc_state);
	return gc;
}

enum vm_state merge_vm_state(const struct capture *capture, const struct image *image,
			     const struct merged_stack *stack)
{
	const struct global_view *view;
	const struct module *module;
	bool has_lua = false;

	for (size_t i = 0; i < stack->count && !has_lua; i++)
		has_lua = stack->frames[i].kind == MERGED_LUA || stack->frames[i].kind == MERGED_C_FUNCTION;
	if (!has_lua)
		return is_of_unknown_state(stack) ? VM_STATE_UNKNOWN : VM_STATE_NONE;
	view = merge_innermost_view(capture);
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

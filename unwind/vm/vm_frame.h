/* SPDX-License-Identifier: MIT */
/*
 * vm_frame: the C frame of LuaJIT's interpreter, and its registers.
 *
 * vm_frame_x86_64.c holds everything that depends on the architecture: the
 * registers of BASE, PC and DISPATCH, the values the frame saves, and the code
 * that enters and leaves the VM. A frame's cframe identifies it: the
 * interpreter's stack pointer, raw(L->cframe).
 */
#ifndef LJSPY_VM_FRAME_H
#define LJSPY_VM_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "luajit-layouts/layout.h"
#include "memory/memory.h"
#include "memory/snapshot.h"
#include "unwind/elf/image.h"
#include "unwind/elf/registers.h"

enum {
	VM_FRAME_CANDIDATES_MAX = 16,
	VM_FRAME_CANDIDATES_WHOLE = 3, /* this many come first and are for complete frames */
	VM_FRAME_ALIGNMENT = 16,       /* of a cframe: the VM calls C with it (System V ABI 3.2.2) */
};

/* The first address at or after this one where a cframe may be. */
static inline uint64_t vm_frame_from(uint64_t address)
{
	return (address + VM_FRAME_ALIGNMENT - 1) & ~(uint64_t)(VM_FRAME_ALIGNMENT - 1);
}

/* The interpreter's values in registers (vm_x64.dasc: BASE, PC, RB, CARG1). */
struct vm_registers {
	uint64_t base;
	uint64_t pc;
	uint64_t kept_base; /* BASE, during a call that does not store L->base */
	uint64_t argument;  /* CARG1: the thread, at a call of the VM or of C */
};

struct vm_registers vm_registers(const struct registers *registers);

/* Are PC and kept_base known? They are lost where code without rules was called. */
bool vm_registers_are_known(const struct registers *registers);

/* The same of the DISPATCH register. */
bool vm_global_is_known(const struct registers *registers);

/* The address of the global_State by the DISPATCH register. Valid only in VM or trace code. */
uint64_t vm_global_of_registers(const struct layout *layout, const struct registers *registers);

/* The addresses where the cframe of a leaf in the VM may be, likeliest first. Return their count. */
size_t vm_frame_candidates(const struct layout *layout, const struct registers *registers,
			   uint64_t ret_cframes[VM_FRAME_CANDIDATES_MAX]);

/* Read SAVE_L, SAVE_PC, SAVE_CFRAME without its flags, and SAVE_NRES of a frame. False if unreadable. */
bool vm_frame_thread(const struct layout *layout, struct memory *stack, uint64_t cframe,
		     uint64_t *ret_thread);
bool vm_frame_pc(const struct layout *layout, struct memory *stack, uint64_t cframe, uint64_t *ret_pc);
bool vm_frame_previous(const struct layout *layout, struct memory *stack, uint64_t cframe,
		       uint64_t *ret_cframe);
bool vm_frame_nresults(const struct layout *layout, struct memory *stack, uint64_t cframe,
		       int32_t *ret_nresults);

/*
 * Could an interpreter frame be here? A cheap filter: the return address lies in
 * a known module, SAVE_NRES and SAVE_CFRAME are in range, and SAVE_L may be a
 * pointer, which *ret_thread receives.
 */
bool vm_frame_is_plausible(const struct image *image, const struct layout *layout, struct memory *stack,
			   uint64_t cframe, uint64_t *ret_thread);

/*
 * The registers of the frame's caller. on_trace: a trace runs in the frame and has
 * saved callee-saved registers there. False if the frame is unreadable.
 */
bool vm_frame_caller(const struct layout *layout, struct memory *stack, uint64_t cframe,
		     const struct registers *frame, bool on_trace, struct registers *ret_caller);

/*
 * Where what was called from this frame returns to, when the registers of all that lies
 * between are lost: the stack pointer was sp at the call, and nothing lies below from.
 * False if the stack does not say it for certain.
 */
bool vm_frame_called(const struct layout *layout, struct memory *stack, uint64_t cframe, uint64_t from,
		     uint64_t sp, uint64_t *ret_return);

/*
 * Is a leaf's pc in the few instructions that enter or leave the VM, where its
 * frame is not complete? If so, treat it as a C function and return its caller.
 */
bool vm_is_entering_or_leaving(const struct layout *layout, struct memory *text, struct memory *stack,
			       const struct registers *registers, struct registers *ret_caller);

/* The same for a leaf in the first or last instructions of lj_vm_ffi_call. */
bool vm_is_entering_or_leaving_ffi_call(const struct vm_code *vm, struct memory *text, struct memory *stack,
					const struct registers *registers, struct registers *ret_caller);

/*
 * The caller of an lj_vm_ffi_call that has called a C function. lj_vm_ffi_call
 * finds its frame by the frame pointer. This is for an unknown one: it searches beyond the
 * stack arguments for a return address that follows a call of lj_vm_ffi_call.
 */
bool vm_find_ffi_caller(const struct vm_code *vm, struct memory *text, struct memory *stack,
			const struct registers *registers, struct registers *ret_caller);

/* If a leaf's next instruction is the jump that ends libgcc's unwinding: the registers after it. */
bool vm_is_about_to_land(struct memory *text, const struct registers *registers,
			 struct registers *ret_registers);

/* Is the frame complete but not yet linked to its thread (the first lines of lj_vm_call and the like)? */
bool vm_is_linking(struct memory *text, const struct vm_code *vm, uint64_t pc);

/*
 * The same of a frame that has called what returns here, as vm_ffi_callback does to learn
 * of its thread. lj_vm_cpcall, which calls by a register, links its frame first.
 */
bool vm_calls_to_link(struct memory *text, const struct vm_code *vm, uint64_t return_address);

/* Is the next instruction the store of the call's frame link (the end of ins_call)? */
bool vm_is_store_pending(const struct layout *layout, struct memory *text, uint64_t pc);

/* Does PC still point at the next instruction, because a branch was just taken or the fetch is under way? */
bool vm_is_before_next(const struct layout *layout, struct memory *text, uint64_t pc);

/* Has the VM jumped before the call that returns here, so that PC is the jump's target (BC_UCLO)? */
bool vm_jumps_before_call(struct memory *text, uint64_t return_address);

/* Does the VM store L->base before the call that returns here? If not, only kept_base holds BASE. */
bool vm_call_stores_base(const struct layout *layout, struct memory *text, const struct vm_code *vm,
			 uint64_t return_address);

/*
 * The same, if BASE is another frame's by then (vmeta_call; on arm64 coroutine.resume): L->base alone tells.
 */
bool vm_call_moves_base(const struct layout *layout, struct memory *text, const struct vm_code *vm,
			uint64_t return_address);

/* Does this address follow a direct call of the VM's code? */
bool vm_is_called(struct memory *text, const struct vm_code *vm, uint64_t return_address);

/* Does the call of lj_trace_exit() return here? */
bool vm_is_exiting(const struct layout *layout, struct memory *text, uint64_t return_address);

/*
 * While the target is held: the number of the trace being left, while vm_exit_handler holds it only in a
 * register, or a register leads to it. Any number, or 0, elsewhere.
 */
uint32_t vm_exit_trace(struct snapshot *snapshot, const struct registers *registers);

/*
 * May a return address that was found below at be that of a call by a trace? sp: the trace's stack pointer.
 */
bool vm_may_return_to_trace(uint64_t at, uint64_t sp);

/* Does the call of lj_ccallback_leave() return here (cont_ffi_callback)? Then the callback has returned. */
bool vm_is_leaving_callback(const struct layout *layout, struct memory *text, const struct vm_code *vm,
			    uint64_t return_address);

/* From the stack pointer in a trace's code to its cframe, and back. spadjust is the trace's. */
uint64_t vm_trace_cframe(const struct registers *registers, uint16_t spadjust);
uint64_t vm_trace_sp(uint64_t cframe, uint16_t spadjust);

#endif

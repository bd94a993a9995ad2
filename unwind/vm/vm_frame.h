/* SPDX-License-Identifier: MIT */
/*
 * vm_frame: the C frame of LuaJIT's interpreter, and its registers.
 *
 * All that depends on the architecture is behind this header, in
 * vm_frame_x86_64.c: which register holds BASE, PC and DISPATCH, what the
 * frame saves, and how the VM is entered and left. A frame is identified by
 * its cframe, the interpreter's stack pointer: raw(L->cframe).
 */
#ifndef LJSPY_VM_FRAME_H
#define LJSPY_VM_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "luajit-layouts/layout.h"
#include "memory/memory.h"
#include "unwind/elf/image.h"
#include "unwind/elf/registers.h"

enum {
	VM_FRAME_CANDIDATES_MAX = 16,
	VM_FRAME_CANDIDATES_WHOLE = 3,	/* the first so many are of frames that are whole */
	VM_FRAME_ALIGNMENT = 16,	/* of a cframe: the VM calls C with it (System V ABI 3.2.2) */
};

/* The first address from here on where a cframe may be. */
static inline uint64_t vm_frame_from(uint64_t address)
{
	return (address + VM_FRAME_ALIGNMENT - 1) & ~(uint64_t)(VM_FRAME_ALIGNMENT - 1);
}

/* What the interpreter keeps in registers (vm_x64.dasc: BASE, PC, RB, DISPATCH). */
struct vm_registers {
	uint64_t base;
	uint64_t pc;
	uint64_t kept_base;	/* where calls that do not store L->base keep BASE */
	uint64_t argument;	/* CARG1: the thread, when the VM or C is called */
};

struct vm_registers vm_registers(const struct registers *registers);

/* The global_State that the DISPATCH register leads to, if this is VM or trace code. */
uint64_t vm_global_of_registers(const struct layout *layout, const struct registers *registers);

/* Where the cframe may be when a leaf is in the VM, likeliest first. */
size_t vm_frame_candidates(const struct layout *layout, const struct registers *registers,
			   uint64_t ret_cframes[VM_FRAME_CANDIDATES_MAX]);

/* SAVE_L, SAVE_PC, the raw SAVE_CFRAME and SAVE_NRES of a frame; false if unreadable. */
bool vm_frame_thread(const struct layout *layout, struct memory *stack, uint64_t cframe,
		     uint64_t *ret_thread);
bool vm_frame_pc(const struct layout *layout, struct memory *stack, uint64_t cframe,
		 uint64_t *ret_pc);
bool vm_frame_previous(const struct layout *layout, struct memory *stack, uint64_t cframe,
		       uint64_t *ret_cframe);
bool vm_frame_nresults(const struct layout *layout, struct memory *stack, uint64_t cframe,
		       int32_t *ret_nresults);

/*
 * Could an interpreter frame be here? A cheap filter: a return address into
 * known code, a SAVE_NRES that is no odd number, and a SAVE_L that may be a
 * pointer, which is handed out.
 */
bool vm_frame_is_plausible(const struct image *image, const struct layout *layout,
			   struct memory *stack, uint64_t cframe, uint64_t *ret_thread);

/* The registers of the frame's caller; on_trace: code of a trace also saved r12 and r13 there. */
bool vm_frame_caller(const struct layout *layout, struct memory *stack, uint64_t cframe,
		     const struct registers *frame, bool on_trace, struct registers *ret_caller);

/*
 * Is a leaf's pc in the few instructions in which the VM is entered or left
 * and its frame is not whole? Then it is a C function like any other, and its
 * caller is given.
 */
bool vm_is_entering_or_leaving(const struct layout *layout, struct memory *text,
			       struct memory *stack, const struct registers *registers,
			       struct registers *ret_caller);

/* The same for a leaf in the first or last instructions of lj_vm_ffi_call. */
bool vm_is_entering_or_leaving_ffi_call(const struct vm_code *vm, struct memory *text,
					struct memory *stack, const struct registers *registers,
					struct registers *ret_caller);

/*
 * The caller of a lj_vm_ffi_call that has called a C function. It finds its
 * frame by rbp; where that is not known, the frame is looked for beyond the
 * arguments that it has passed on, and is the one that ends with a return
 * address behind a call of lj_vm_ffi_call.
 */
bool vm_find_ffi_caller(const struct vm_code *vm, struct memory *text, struct memory *stack,
			const struct registers *registers, struct registers *ret_caller);

/* The registers after the jump that libgcc ends unwinding with, if that is a leaf's next instruction. */
bool vm_is_about_to_land(struct memory *text, const struct registers *registers,
			 struct registers *ret_registers);

/* Is the frame whole but not yet linked to its thread (the first lines of lj_vm_call and its like)? */
bool vm_is_linking(struct memory *text, const struct vm_code *vm, uint64_t pc);

/*
 * The same of a frame that has called what returns here, as vm_ffi_callback does to learn
 * of its thread. lj_vm_cpcall, which calls by a register, links its frame first.
 */
bool vm_calls_to_link(struct memory *text, const struct vm_code *vm, uint64_t return_address);

/* Is the next instruction the store of the call's frame link (the end of ins_call)? */
bool vm_is_store_pending(const struct layout *layout, struct memory *text, uint64_t pc);

/* Is PC not past the instruction that comes next: a branch was taken, or it is being fetched? */
bool vm_is_before_next(const struct layout *layout, struct memory *text, uint64_t pc);

/* Does the call that returns here store L->base before it? If not, BASE is in kept_base only. */
bool vm_call_stores_base(const struct layout *layout, struct memory *text,
			 const struct vm_code *vm, uint64_t return_address);

/* The same, when L is in the register of the first argument only (vmeta_call). */
bool vm_call_stores_base_of_argument(const struct layout *layout, struct memory *text,
				     const struct vm_code *vm, uint64_t return_address);

/* Is this behind a direct call of the VM's code? */
bool vm_is_called(struct memory *text, const struct vm_code *vm, uint64_t return_address);

/* Does the call of lj_trace_exit() return here? */
bool vm_is_exiting(const struct layout *layout, struct memory *text, uint64_t return_address);

/* The number of the trace that is left, while vm_exit_handler has it in a register only. */
uint32_t vm_exit_trace(const struct registers *registers);

/* Does the call of lj_ccallback_leave() return here (cont_ffi_callback)? What was called back has returned then. */
bool vm_is_leaving_callback(const struct layout *layout, struct memory *text,
			    const struct vm_code *vm, uint64_t return_address);

/* Where the stack pointer of a trace's code is, relative to the cframe below it; and the other way round. */
uint64_t vm_trace_cframe(const struct registers *registers, uint16_t spadjust);
uint64_t vm_trace_sp(uint64_t cframe, uint16_t spadjust);

#endif

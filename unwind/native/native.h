/* SPDX-License-Identifier: MIT */
/*
 * native: unwind the native stack of a snapshot, one frame at a time.
 *
 * Rules come from call frame information (cfi.h), registers and stack from the
 * snapshot, text from the image. LuaJIT's VM and machine code need other rules.
 * The caller of this module recognises them by the frame's code kind, applies
 * those rules, and passes the resulting registers to native_continue().
 */
#ifndef LJSPY_NATIVE_H
#define LJSPY_NATIVE_H

#include <stdbool.h>

#include "memory/memory.h"
#include "unwind/elf/image.h"
#include "unwind/elf/registers.h"
#include "unwind/symbols/symbols.h"

enum native_status {
	NATIVE_FRAME, /* found the caller's frame */
	NATIVE_END,   /* this was the outermost frame */
	NATIVE_LOST,  /* no unwind table covers this pc, or the stack was not captured */
};

struct native_frame {
	struct registers registers; /* the frame's; caller-saved registers only in the leaf */
	bool is_return_address;     /* pc follows the call */
	enum code_kind code;
	const struct module *module;
};

struct native_unwinder;

/* NULL when out of memory. Both arguments must outlive the result. */
struct native_unwinder *native_unwinder_new(struct image *image, struct symbols *symbols);
void native_unwinder_free(struct native_unwinder *unwinder);

/* Forget all cached rules: the image has new modules. */
void native_reset(struct native_unwinder *unwinder);

/* Begin at a leaf. stack reads the thread's captured stack and must outlive the walk. */
void native_begin(struct native_unwinder *unwinder, struct memory *stack, const struct registers *leaf);

/* Continue from a caller's registers that a rule of the VM gave. */
void native_continue(struct native_unwinder *unwinder, const struct registers *caller);

/* The walk's current frame, owned by the unwinder. */
const struct native_frame *native_current(const struct native_unwinder *unwinder);

/* The address to look up for a frame. For a return address it lies within the call, not after it. */
uint64_t native_code_address(const struct native_frame *frame);

/* Step from native code to its caller by unwind tables. */
enum native_status native_step(struct native_unwinder *unwinder);

/* After NATIVE_END: nothing that a step reads lies at this address of the stack or above. */
uint64_t native_end(const struct native_unwinder *unwinder);

/*
 * After NATIVE_LOST: the stack pointer that the caller has, by the unwind tables or the code; 0 if none
 * tells.
 */
uint64_t native_caller_sp(const struct native_unwinder *unwinder);

/*
 * Step from native code without an unwind table to its caller, from its
 * instructions up to the return. linked is the stack pointer of the next frame
 * that is known to exist, or 0. A caller beyond it is rejected. Code that never
 * returns has a known caller only if that is the thread's outermost one.
 */
enum native_status native_step_by_code(struct native_unwinder *unwinder, uint64_t linked);

/*
 * After a step failed for an unknown register: step by where the function's code has moved the stack pointer
 * (frame_depth.h). linked is as above.
 */
enum native_status native_step_by_depth(struct native_unwinder *unwinder, uint64_t linked);

/*
 * Did the last step fail because its rule needs an unknown register? A thread
 * that is read while it sleeps has a known pc and stack pointer. Its other
 * registers are known only where a callee saved them. So code that finds its
 * frame by the frame pointer can be left only by native_step_by_depth() unless
 * a callee saved that.
 */
bool native_lacks_register(const struct native_unwinder *unwinder);

#endif

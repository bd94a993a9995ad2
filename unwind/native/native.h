/* SPDX-License-Identifier: MIT */
/*
 * native: one step at a time down the native stack of a snapshot.
 *
 * Rules come from call frame information (cfi.h), registers and stack from the
 * snapshot, text from the image. LuaJIT's VM and its machine code need rules of their own; the caller
 * recognises them by the frame's code kind and continues with
 * native_continue() from the registers that those rules give.
 */
#ifndef LJSPY_NATIVE_H
#define LJSPY_NATIVE_H

#include <stdbool.h>

#include "memory/memory.h"
#include "unwind/elf/image.h"
#include "unwind/elf/registers.h"
#include "unwind/symbols/symbols.h"

enum native_status {
	NATIVE_FRAME,	/* a caller's frame was found */
	NATIVE_END,	/* this was the outermost frame */
	NATIVE_LOST,	/* no unwind table covers this pc, or the stack was not captured */
};

struct native_frame {
	struct registers registers;	/* as the frame sees them; caller-saved ones only in the leaf */
	bool is_return_address;		/* pc is where a call returns to, so the call is before it */
	enum code_kind code;
	const struct module *module;
};

struct native_unwinder;

/* NULL when memory is short. Both must outlive the result. */
struct native_unwinder *native_unwinder_new(struct image *image, struct symbols *symbols);
void native_unwinder_free(struct native_unwinder *unwinder);

/* The image's modules have been replaced: forget what was read. */
void native_reset(struct native_unwinder *unwinder);

/* Begin at a leaf; stack serves the stopped thread's stack and must outlive the walk. */
void native_begin(struct native_unwinder *unwinder, struct memory *stack,
		  const struct registers *leaf);

/* Go on from the caller's registers that a rule of the VM gave. */
void native_continue(struct native_unwinder *unwinder, const struct registers *caller);

/* The frame that the walk has reached. */
const struct native_frame *native_current(const struct native_unwinder *unwinder);

/* Where to look up what the frame does: within the call, not behind it. */
uint64_t native_code_address(const struct native_frame *frame);

/* Step from native code to its caller by unwind tables. */
enum native_status native_step(struct native_unwinder *unwinder);

/*
 * Step from native code that has no unwind table to its caller, by what the code does
 * until it returns. Nothing beyond linked is believed, the stack pointer in the next
 * frame that is known to be there; 0 if there is none.
 */
enum native_status native_step_by_code(struct native_unwinder *unwinder, uint64_t linked);

/*
 * Was the last step lost because its rule asks for a register that is not
 * known? Of a thread that is read asleep pc and stack pointer are, and others
 * from where its calls have saved them: not the frame pointer of code that
 * finds its frame by that, unless what it called has saved it.
 */
bool native_lacks_register(const struct native_unwinder *unwinder);

#endif

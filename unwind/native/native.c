/* SPDX-License-Identifier: MIT */
#include "unwind/native/native.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/machine/context_end.h"
#include "unwind/machine/signal_frame.h"
#include "unwind/machine/thread_end.h"
#include "unwind/native/cfi.h"
#include "unwind/native/leaf_caller.h"

enum { STANDING_MAX = 4 };

struct native_unwinder {
	struct image *image;
	struct symbols *symbols;
	struct cfi *cfi;
	struct leaf_callers *leaf_callers; /* NULL until first needed */
	struct memory *stack;
	struct native_frame frame;
	unsigned int standing; /* consecutive steps that popped nothing */
	bool lacks_register;   /* the last step needed an unknown register */
	uint64_t end;          /* see native_end() */
};

struct native_unwinder *native_unwinder_new(struct image *image, struct symbols *symbols)
{
	struct native_unwinder *unwinder = calloc(1, sizeof(*unwinder));

	if (!unwinder)
		return NULL;
	unwinder->image = image;
	unwinder->symbols = symbols;
	unwinder->cfi = cfi_new(image, symbols);
	if (!unwinder->cfi) {
		free(unwinder);
		return NULL;
	}
	return unwinder;
}

void native_unwinder_free(struct native_unwinder *unwinder)
{
	if (!unwinder)
		return;
	cfi_free(unwinder->cfi);
	leaf_callers_free(unwinder->leaf_callers);
	free(unwinder);
}

void native_reset(struct native_unwinder *unwinder)
{
	cfi_reset(unwinder->cfi);
	leaf_callers_free(unwinder->leaf_callers);
	unwinder->leaf_callers = NULL;
}

uint64_t native_code_address(const struct native_frame *frame)
{
	return frame->registers.pc - (frame->is_return_address ? 1 : 0);
}

static void arrive(struct native_unwinder *unwinder, const struct registers *registers,
		   bool is_return_address)
{
	struct native_frame *frame = &unwinder->frame;

	unwinder->lacks_register = false;
	frame->registers = *registers;
	frame->is_return_address = is_return_address;
	frame->code = image_classify(unwinder->image, native_code_address(frame), &frame->module);
}

void native_begin(struct native_unwinder *unwinder, struct memory *stack, const struct registers *leaf)
{
	unwinder->stack = stack;
	unwinder->standing = 0;
	cfi_begin_walk(unwinder->cfi);
	arrive(unwinder, leaf, false);
}

void native_continue(struct native_unwinder *unwinder, const struct registers *caller)
{
	arrive(unwinder, caller, true);
}

const struct native_frame *native_current(const struct native_unwinder *unwinder)
{
	return &unwinder->frame;
}

bool native_lacks_register(const struct native_unwinder *unwinder)
{
	return unwinder->lacks_register;
}

/* Does the address lie in the code that the kernel enters a program by (ELF's e_entry)? */
static bool is_in_entry(const struct native_unwinder *unwinder, uint64_t address)
{
	enum { ENTRY_BYTES_MAX = 64 };
	const struct module *module = image_find(unwinder->image, address);
	Elf64_Ehdr header;
	uint64_t entry;

	if (!module ||
	    memory_read(image_text(unwinder->image), module->base, &header, sizeof(header)) != MEMORY_OK ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_entry == 0)
		return false;
	entry = header.e_entry + (header.e_type == ET_DYN ? module->base : 0);
	return address - entry < ENTRY_BYTES_MAX;
}

/*
 * Such code has no caller, and that which a thread's function returns to has none. But there may be no unwind
 * table that says so: glibc before 2.32 on arm64 has none of the entry, musl has none of either. Nor has
 * Boost.Context one of what a coroutine's function returns to. index: the address is that word of the stack,
 * from the frame's stack pointer on.
 */
static bool is_outermost(const struct native_unwinder *unwinder, uint64_t return_address, unsigned int index)
{
	return (index < program_end_words && is_in_entry(unwinder, return_address - 1)) ||
	       (index < thread_end_words && image_find(unwinder->image, return_address) &&
		(thread_end_is_at(image_text(unwinder->image), return_address) ||
		 (index == 0 && context_end_is_at(image_text(unwinder->image), return_address))));
}

/*
 * The functions of musl's that call main() and a thread's function never return: they go on to exit(). No
 * rule tells where their caller is. It is the outermost one, and the last words of the stack hold its return
 * address.
 */
static enum native_status step_to_outermost(struct native_unwinder *unwinder)
{
	const unsigned int words = program_end_words > thread_end_words ? program_end_words
									: thread_end_words;
	struct registers caller = unwinder->frame.registers;

	if (!unwinder->frame.is_return_address)
		return NATIVE_LOST;
	caller.unknown = REGISTERS_ALL_BUT_PC_AND_SP;
	for (unsigned int i = 0; i < words; i++) {
		if (!memory_u64(unwinder->stack, caller.sp, &caller.pc))
			break;
		caller.sp += sizeof(uint64_t);
		if (!is_outermost(unwinder, caller.pc, i))
			continue;
		arrive(unwinder, &caller, true);
		return NATIVE_FRAME;
	}
	return NATIVE_LOST;
}

/* From the return of a signal handler to the interrupted code, whose registers are all known. */
static enum native_status step_to_interrupted(struct native_unwinder *unwinder)
{
	struct registers interrupted;

	unwinder->lacks_register = false;
	if (!signal_frame_interrupted(unwinder->stack, &unwinder->frame.registers, &interrupted))
		return NATIVE_LOST;
	arrive(unwinder, &interrupted, false);
	return NATIVE_FRAME;
}

enum native_status native_step(struct native_unwinder *unwinder)
{
	const struct native_frame *frame = &unwinder->frame;
	uint64_t sp = frame->registers.sp;
	struct registers caller;
	enum cfi_status status;

	if (signal_frame_is_at(image_text(unwinder->image), frame->registers.pc))
		return step_to_interrupted(unwinder);
	status = cfi_step(unwinder->cfi, native_code_address(frame), &frame->registers, unwinder->stack,
			  &caller);
	unwinder->lacks_register = status == CFI_REGISTER_UNKNOWN;
	unwinder->end = status == CFI_CALLER && caller.sp > sp ? caller.sp : sp;
	if (status == CFI_REGISTER_UNKNOWN && !frame->is_return_address &&
	    leaf_caller_find(&unwinder->leaf_callers, unwinder->image, unwinder->cfi, unwinder->symbols,
			     unwinder->stack, &frame->registers, &caller)) {
		arrive(unwinder, &caller, true);
		return NATIVE_FRAME;
	}
	if (status != CFI_CALLER)
		return frame->is_return_address && is_outermost(unwinder, frame->registers.pc, 0)
			       ? NATIVE_END
			       : NATIVE_LOST;
	if (caller.pc == 0)
		return NATIVE_END;
	caller.unknown |= REGISTER_OTHERS;
	/* The stack shrinks from callee to caller. A leaf may have none. */
	if (caller.sp < sp || (caller.sp == sp && frame->is_return_address))
		return NATIVE_LOST;
	arrive(unwinder, &caller, true);
	return NATIVE_FRAME;
}

enum native_status native_step_by_depth(struct native_unwinder *unwinder, uint64_t linked)
{
	const struct registers *frame = &unwinder->frame.registers;
	struct registers caller;

	if (cfi_step_by_depth(unwinder->cfi, native_code_address(&unwinder->frame), frame, unwinder->stack,
			      &caller) != CFI_CALLER ||
	    caller.sp <= frame->sp || (linked && caller.sp > linked))
		return NATIVE_LOST;
	caller.unknown |= REGISTER_OTHERS;
	arrive(unwinder, &caller, true);
	return NATIVE_FRAME;
}

uint64_t native_end(const struct native_unwinder *unwinder)
{
	return unwinder->end;
}

uint64_t native_caller_sp(const struct native_unwinder *unwinder)
{
	const struct native_frame *frame = &unwinder->frame;
	const struct registers *registers = &frame->registers;
	uint64_t sp;

	return cfi_caller_sp(unwinder->cfi, native_code_address(frame), registers, unwinder->stack, &sp) ||
			       cfi_caller_sp_by_code(unwinder->cfi, registers, unwinder->stack, &sp)
		       ? sp
		       : 0;
}

enum native_status native_step_by_code(struct native_unwinder *unwinder, uint64_t linked)
{
	const struct registers *frame = &unwinder->frame.registers;
	uint64_t sp = frame->sp;
	struct registers caller;
	enum cfi_status status = cfi_step_by_code(unwinder->cfi, frame, unwinder->stack, &caller);

	unwinder->lacks_register = status == CFI_REGISTER_UNKNOWN;
	if (status != CFI_CALLER)
		return linked ? NATIVE_LOST : step_to_outermost(unwinder);
	if (caller.sp < sp || (linked && caller.sp > linked))
		return NATIVE_LOST;
	/* A routine may pop its own return address first, but not many in a row do. */
	unwinder->standing = caller.sp == sp ? unwinder->standing + 1 : 0;
	if (unwinder->standing > STANDING_MAX)
		return NATIVE_LOST;
	caller.unknown |= REGISTER_OTHERS;
	arrive(unwinder, &caller, true);
	return NATIVE_FRAME;
}

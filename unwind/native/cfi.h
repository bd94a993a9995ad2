/* SPDX-License-Identifier: MIT */
/*
 * cfi: step from a frame to its caller by call frame information.
 *
 * An address's rules come from the unwind tables in memory (table_rules.h). If
 * these have no entry, or none that libunwind may be given, the rules come from
 * the module's file: for modules linked without .eh_frame_hdr, and for entries
 * only in .debug_frame. The process that reads symbols works these out. cfi
 * caches the rules and applies them to a snapshot's registers and stack.
 */
#ifndef LJSPY_CFI_H
#define LJSPY_CFI_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/memory.h"
#include "unwind/elf/image.h"
#include "unwind/elf/registers.h"
#include "unwind/native/code_rules.h"
#include "unwind/symbols/symbols.h"

struct cfi;

/* NULL when out of memory. Both arguments must outlive the result. */
struct cfi *cfi_new(struct image *image, struct symbols *symbols);
void cfi_free(struct cfi *cfi);

/* Forget all cached rules: the image has new modules. */
void cfi_reset(struct cfi *cfi);

enum cfi_status {
	CFI_CALLER,
	CFI_NONE,             /* no rules, or the stack was not captured */
	CFI_REGISTER_UNKNOWN, /* the rules need an unknown register */
};

/*
 * Step from a frame to its caller. pc is the address to look up: for a return
 * address, one within the call before it. The outermost frame's caller has
 * pc 0. A register without a rule keeps its value. *ret_caller is set only on
 * CFI_CALLER.
 */
enum cfi_status cfi_step(struct cfi *cfi, uint64_t pc, const struct registers *frame, struct memory *stack,
			 struct registers *ret_caller);

/* The caller's stack pointer alone: its pc may be in an unknown register. False if it cannot be known. */
bool cfi_caller_sp(struct cfi *cfi, uint64_t pc, const struct registers *frame, struct memory *stack,
		   uint64_t *ret_sp);

/*
 * A new walk begins. One may follow so much code, and then there is no answer by it: a program may be
 * hostile.
 */
void cfi_begin_walk(struct cfi *cfi);

/*
 * As cfi_step() for a frame whose CFA the rules find by an unknown register: from the stack pointer, and how
 * far the function's code has moved it (frame_depth.h). CFI_REGISTER_UNKNOWN if the code does not tell, or
 * the address found follows no call of the function.
 */
enum cfi_status cfi_step_by_depth(struct cfi *cfi, uint64_t pc, const struct registers *frame,
				  struct memory *stack, struct registers *ret_caller);

/*
 * As cfi_step() for code without rules, from its instructions up to the return
 * (code_rules.h). snapshot holds the stack, and code outside of all modules.
 * CFI_NONE also if the address found does not follow a call.
 */
enum cfi_status cfi_step_by_code(struct cfi *cfi, const struct registers *frame, struct memory *snapshot,
				 struct registers *ret_caller);

/* The same of the caller's stack pointer alone. */
bool cfi_caller_sp_by_code(struct cfi *cfi, const struct registers *frame, struct memory *snapshot,
			   uint64_t *ret_sp);

/* As code_rules_lead(). */
enum code_leads cfi_lead(struct cfi *cfi, uint64_t from, uint64_t to);

#endif

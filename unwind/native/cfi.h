/* SPDX-License-Identifier: MIT */
/*
 * cfi: from a frame to its caller by call frame information.
 *
 * The rules of an address are those of the unwind tables in memory
 * (table_rules.h). For code that has none there, or none that libunwind may be
 * given, they are those in the module's file: of modules linked without
 * .eh_frame_hdr, and of entries in .debug_frame alone. The process that reads
 * symbols works these out. Rules are kept, and applied here to registers and
 * stack of a snapshot.
 */
#ifndef LJSPY_CFI_H
#define LJSPY_CFI_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/memory.h"
#include "unwind/elf/image.h"
#include "unwind/elf/registers.h"
#include "unwind/symbols/symbols.h"

struct cfi;

/* NULL when memory is short. Both must outlive the result. */
struct cfi *cfi_new(struct image *image, struct symbols *symbols);
void cfi_free(struct cfi *cfi);

/* The modules have been replaced: forget what was read. */
void cfi_reset(struct cfi *cfi);

enum cfi_status {
	CFI_CALLER,
	CFI_NONE,		/* no rules, or the stack was not captured */
	CFI_REGISTER_UNKNOWN,	/* the rules ask for a register that is not known */
};

/*
 * From a frame to its caller. pc is where to look rules up: with a return
 * address it lies in the call before that. The outermost frame has a caller
 * whose pc is 0. A register without a rule holds what it held.
 */
enum cfi_status cfi_step(struct cfi *cfi, uint64_t pc, const struct registers *frame,
			 struct memory *stack, struct registers *ret_caller);

/*
 * The same for code that has no rules, by what it does until it returns (code_rules.h).
 * The snapshot is of the stack and of code that lies in no module. CFI_NONE too if
 * what it finds is not where a call returns to.
 */
enum cfi_status cfi_step_by_code(struct cfi *cfi, const struct registers *frame,
				 struct memory *snapshot, struct registers *ret_caller);

#endif

/*
 * cfi: call frame information that no table in memory leads to.
 *
 * For modules linked without .eh_frame_hdr, and code that has its entries in
 * .debug_frame alone: the module's file is asked through its section headers.
 * libdw keeps an index of the entries, made once, and works out the rules;
 * these are applied here to registers and stack of a snapshot.
 */
#ifndef LJSPY_CFI_H
#define LJSPY_CFI_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/memory.h"
#include "unwind/registers.h"

struct module;
struct cfi;

/* NULL if the module's file has none, or is not to be had. live must outlive the result. */
struct cfi *cfi_open(const struct module *module, struct memory *live);
void cfi_close(struct cfi *cfi);

/*
 * From a frame to its caller. pc is where to look entries up: with a return
 * address it lies in the call before that. False if no entry covers it, or what
 * its rules need is not known. The outermost frame has a caller whose rip is 0.
 */
bool cfi_step(struct cfi *cfi, uint64_t pc, const struct registers *frame, struct memory *stack,
	      struct registers *ret_caller);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * leaf_caller: who called a leaf function whose return address is in an unknown register?
 *
 * A thread that is read while it sleeps has a known pc and stack pointer only. A leaf of a machine with a
 * link register need not have saved its return address. If nothing but direct calls in its own module
 * refers to the leaf, one of them is where it returns to, and its caller's frame begins at the stack
 * pointer. By its unwind table, each function with such a call says where it would have saved its own
 * return address; only one that was called by what stands before that address can be the caller. If more
 * than one is left, there is no answer. A function that finds its frame by the frame pointer cannot be
 * judged. There is an answer nevertheless if another one was certainly called, or if what called that has
 * a frame record. Each architecture has its own .c file.
 */
#ifndef LJSPY_LEAF_CALLER_H
#define LJSPY_LEAF_CALLER_H

#include <stdbool.h>

#include "memory/memory.h"
#include "unwind/elf/image.h"
#include "unwind/elf/registers.h"
#include "unwind/native/cfi.h"
#include "unwind/symbols/symbols.h"

struct leaf_callers; /* the calls of each leaf that was asked for */

void leaf_callers_free(struct leaf_callers *callers);

/*
 * The registers of the caller of the leaf at its pc. *callers is NULL at first; it holds what was found in
 * the image's modules and is to be freed when they change. All else must outlive the call. False if
 * the caller cannot be known.
 */
bool leaf_caller_find(struct leaf_callers **callers, struct image *image, struct cfi *cfi,
		      struct symbols *symbols, struct memory *stack, const struct registers *leaf,
		      struct registers *ret_caller);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * unwind_entry: what of .eh_frame libunwind may be given for one address.
 *
 * libunwind believes unwind tables: the numbers of registers in them are indices
 * to it, a division may trap, a jump may lead back for ever. So an entry is
 * read and checked before, and libunwind sees this copy alone. Whatever
 * compilers write for functions passes; what does not, PLTs and signal
 * frames with their expressions among it, is for cfi.h.
 */
#ifndef LJSPY_UNWIND_ENTRY_H
#define LJSPY_UNWIND_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/memory.h"

enum { UNWIND_PIECE_MAX = 16 << 10 };	/* bytes of an entry; hand-written code has a few hundred */

/* A copy of memory, widened to whole words. */
struct unwind_piece {
	uint64_t begin, end;
	uint8_t bytes[UNWIND_PIECE_MAX + 16];
};

struct unwind_entry {
	struct unwind_piece pair;	/* in the sorted table: the code's address, the FDE's */
	struct unwind_piece fde, cie;
};

/*
 * Read what the pair at an address of .eh_frame_hdr's table leads to; header is
 * where .eh_frame_hdr begins. False if it cannot be read or is not for
 * libunwind; then *entry holds nothing of use.
 */
bool unwind_entry_read(struct memory *text, uint64_t header, uint64_t pair,
		       struct unwind_entry *entry);

/* The word at an address, if the entry holds it. */
bool unwind_entry_word(const struct unwind_entry *entry, uint64_t address, uint64_t *ret_word);

#endif

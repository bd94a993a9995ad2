/* SPDX-License-Identifier: MIT */
/*
 * unwind_entry: the part of .eh_frame that libunwind may be given for one address.
 *
 * libunwind trusts unwind tables: it uses register numbers as indices, a division
 * may trap, a jump may loop for ever. So ljspy copies and checks an entry first,
 * and libunwind sees only this copy. Everything that compilers write for functions
 * passes. The rest, such as PLTs and signal frames with their expressions, is left
 * to cfi.h.
 */
#ifndef LJSPY_UNWIND_ENTRY_H
#define LJSPY_UNWIND_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/memory.h"

enum { UNWIND_PIECE_MAX = 16 << 10 }; /* bytes of an entry; hand-written code has a few hundred */

/* A copy of memory, widened to whole words. */
struct unwind_piece {
	uint64_t begin, end;
	uint8_t bytes[UNWIND_PIECE_MAX + 16];
};

struct unwind_entry {
	struct unwind_piece pair; /* in the sorted table: the addresses of the code and of its FDE */
	struct unwind_piece fde, cie;
};

/*
 * Read the entry of a pair in .eh_frame_hdr's table. pair is the pair's address,
 * header that of .eh_frame_hdr. False if the entry is unreadable or not for
 * libunwind; *entry is then of no use.
 */
bool unwind_entry_read(struct memory *text, uint64_t header, uint64_t pair, struct unwind_entry *entry);

/* The word at an address; false if the entry does not hold it. */
bool unwind_entry_word(const struct unwind_entry *entry, uint64_t address, uint64_t *ret_word);

#endif

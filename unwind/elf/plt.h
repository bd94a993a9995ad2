/* SPDX-License-Identifier: MIT */
/*
 * plt: which function an entry of a procedure linkage table leads to.
 */
#ifndef LJSPY_PLT_H
#define LJSPY_PLT_H

#include <stdbool.h>
#include <stdint.h>

#include <libelf.h>

struct plt_entry {
	const char *name;	/* of what it jumps to, as the relocation has it; NULL without one */
	/* Without a name: the function that chose the target when the program began, in the file. */
	uint64_t resolver;
	bool is_before_jump;	/* the entry has pushed nothing so far */
};

/*
 * The PLT entry that holds an address of the file. False outside of PLTs and
 * where no relocation fills the entry's slot. The name belongs to the Elf.
 */
bool plt_find(Elf *elf, uint64_t address, struct plt_entry *ret_entry);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * plt: finds the function to which an entry of a procedure linkage table leads.
 */
#ifndef LJSPY_PLT_H
#define LJSPY_PLT_H

#include <stdbool.h>
#include <stdint.h>

#include <libelf.h>

struct plt_entry {
	const char *name; /* of its target, from the relocation, owned by the Elf; NULL without one */
	/* Without a name: the address in the file of the function that chose the target at start-up. */
	uint64_t resolver;
	bool is_before_jump; /* at the address, the entry has pushed nothing yet */
};

/*
 * The PLT entry that holds an address in the file. False outside of PLTs, and
 * if no relocation fills the entry's slot.
 */
bool plt_find(Elf *elf, uint64_t address, struct plt_entry *ret_entry);

#endif

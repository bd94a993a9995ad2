/* SPDX-License-Identifier: MIT */
/* register_part_x86_64: which part of which general register a name in decoded code stands for. */
#ifndef LJSPY_REGISTER_PART_X86_64_H
#define LJSPY_REGISTER_PART_X86_64_H

#include <capstone/capstone.h>

/* Register numbers as encoded. */
enum {
	RAX = 0,
	RCX,
	RDX,
	RBX,
	RSP,
	RBP,
	RSI,
	RDI,
	R8,
	R9,
	R10,
	R11,
	R12,
	REGISTER_COUNT = 16,
};

struct register_part {
	int index;                /* -1: not a general register */
	unsigned int size, shift; /* bytes, bits */
};

struct register_part register_part(x86_reg reg);

/* The DWARF number (registers.h) of a register with this number. */
int register_dwarf_number(int index);

#endif

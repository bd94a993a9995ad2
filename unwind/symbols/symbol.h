/* SPDX-License-Identifier: MIT */
/*
 * symbol: a function of native code, by name and position.
 */
#ifndef LJSPY_SYMBOL_H
#define LJSPY_SYMBOL_H

#include <stdint.h>

enum {
	SYMBOL_NAME_SIZE = 512,
	SYMBOL_INLINES_MAX = 32, /* functions inlined into each other at one address */
};

/* A function at an address. Only DWARF tells the position. */
struct symbol {
	char name[SYMBOL_NAME_SIZE]; /* demangled, without a version; "sqrt@plt" in a PLT */
	char file[SYMBOL_NAME_SIZE]; /* source file without directories; "" if unknown */
	uint32_t line;               /* 0 if unknown */
};

/* The addresses in [begin, end), of which the same is known. */
struct symbol_extent {
	uint64_t begin, end;
};

#endif

/* SPDX-License-Identifier: MIT */
/*
 * member_loads: what a small function reads of its first argument, a pointer to a structure.
 *
 * nginx and lua-nginx-module have functions that return one property of a request each. Their
 * code tells where in the structures that property is.
 */
#ifndef LJSPY_MEMBER_LOADS_H
#define LJSPY_MEMBER_LOADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/memory.h"

enum {
	MEMBER_DEPTH_MAX = 3,
	MEMBER_LOADS_MAX = 48,
	MEMBER_CODE_MAX = 768,      /* bytes read of a function; those of interest are shorter */
	MEMBER_INDEXED = INT32_MIN, /* an element of an array, by an index from elsewhere */
};

/* r->a->b is the depth 2 with the offsets of a and b. */
struct member_load {
	size_t depth;
	int32_t offsets[MEMBER_DEPTH_MAX];
	unsigned int bytes;
};

/* Each once, in about the order of the code. */
struct member_loads {
	struct member_load loads[MEMBER_LOADS_MAX];
	size_t count;
};

/*
 * Read length bytes of the machine's code, which lie at address (member_loads_x86_64.c,
 * member_loads_arm64.c).
 */
void member_loads_read(const uint8_t *code, size_t length, uint64_t address, struct member_loads *ret_loads);

/* The same for the function at address. False if it cannot be read. */
bool member_loads_of(struct memory *memory, uint64_t address, struct member_loads *ret_loads);

/* Is there a load along these offsets? */
bool member_loads_have(const struct member_loads *loads, size_t depth, const int32_t *offsets);

#endif

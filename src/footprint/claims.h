/* SPDX-License-Identifier: MIT */
/*
 * claims: which parts of an address space are known to belong to whom.
 */
#ifndef LJSPY_CLAIMS_H
#define LJSPY_CLAIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/footprint/pieces/heap_piece.h"

struct claim {
	uint64_t begin, end;
	size_t row;           /* of the report */
	size_t free_row;      /* the row of what is free in it */
	struct page_sum free; /* of free chunks, in memory */
};

/* Sorted, no two overlap. All zero: none. */
struct claims {
	struct claim *list;
	size_t count, room;
};

void claims_clear(struct claims *claims);

/* The first claim that ends behind the address: index, or claims->count. */
size_t claims_from(const struct claims *claims, uint64_t address);

/* 0; -EEXIST if some of it is claimed already, and it is not added; or -ENOMEM. */
int claims_add(struct claims *claims, const struct claim *claim);

#endif

/* SPDX-License-Identifier: MIT */
#include "memory/array.h"

#include <stdlib.h>

enum { ITEMS_AT_FIRST = 16 };

void *array_move(void *array, size_t *size, size_t wanted, size_t item_bytes)
{
	size_t larger = *size ? *size * 2 : ITEMS_AT_FIRST;
	void *moved;

	if (larger < wanted)
		larger = wanted;
	moved = reallocarray(array, larger, item_bytes);
	if (moved)
		*size = larger;
	return moved;
}

/* SPDX-License-Identifier: MIT */
/*
 * array: grows an array as it fills.
 */
#ifndef LJSPY_ARRAY_H
#define LJSPY_ARRAY_H

#include <stddef.h>

/* As array_grow(), where there is no room for so many yet. */
void *array_move(void *array, size_t *size, size_t wanted, size_t item_bytes);

/*
 * Make room for wanted items (at least 1) of item_bytes each. Returns the array, which may have
 * moved; the caller frees it. *size is the number of items it has room for. Returns NULL when
 * memory is short: array and *size are then unchanged.
 */
static inline void *array_grow(void *array, size_t *size, size_t wanted, size_t item_bytes)
{
	return wanted <= *size ? array : array_move(array, size, wanted, item_bytes);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * array: arrays that grow as they are filled.
 */
#ifndef LJSPY_ARRAY_H
#define LJSPY_ARRAY_H

#include <stddef.h>

/*
 * The array with room for as many items as wanted, at least one; it may have moved, and there may
 * be room for more. *size is for how many. NULL when memory is short: then both are as before.
 */
void *array_grow(void *array, size_t *size, size_t wanted, size_t item_bytes);

#endif

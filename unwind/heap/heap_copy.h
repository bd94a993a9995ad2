/* SPDX-License-Identifier: MIT */
/*
 * heap_copy: a copy of a target's memory in which every object is in one piece.
 *
 * A region of the copy is a range of the target's addresses. Its pages are copied when they
 * are first asked for, many at once, or when they are copied again.
 */
#ifndef LJSPY_HEAP_COPY_H
#define LJSPY_HEAP_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/memory.h"

enum { HEAP_PAGE = 4096 };

struct heap_copy;

/* source must outlive it. NULL when memory is short. */
struct heap_copy *heap_copy_new(struct memory *source);
void heap_copy_free(struct heap_copy *copy); /* NULL is allowed */

/*
 * Allow reads of [begin, end), multiples of the page size. Regions must not overlap; neighbours
 * become one. 0 or -ENOMEM.
 */
int heap_copy_add_region(struct heap_copy *copy, uint64_t begin, uint64_t end);

/*
 * The bytes at [address, address + length), or NULL if they cannot be read. They stay there
 * until the copy is freed; copying pages again may change them.
 */
const uint8_t *heap_copy_view(struct heap_copy *copy, uint64_t address, size_t length);

/* From now on pages that are not copied cannot be read, and are counted. */
void heap_copy_seal(struct heap_copy *copy);
void heap_copy_unseal(struct heap_copy *copy);

/*
 * Copy again the pages that are copied, from address from on, some more than bytes of them.
 * Pages that are gone are dropped. Returns where to go on, UINT64_MAX at the end.
 */
uint64_t heap_copy_again(struct heap_copy *copy, uint64_t from, uint64_t bytes);

/*
 * Copy what has content, too, in the regions of which something is copied. next finds the next
 * range with content within [*at, end) and moves *at behind it.
 */
void heap_copy_fill(struct heap_copy *copy,
		    bool (*next)(void *context, uint64_t *at, uint64_t end, uint64_t *ret_begin,
				 uint64_t *ret_end),
		    void *context);

/* How many pages that are copied now have other contents in the source. */
uint64_t heap_copy_count_changed(struct heap_copy *copy);

uint64_t heap_copy_bytes(const struct heap_copy *copy);  /* copied, each page as often as it was copied */
uint64_t heap_copy_kept(const struct heap_copy *copy);   /* of the pages that are copied now */
uint64_t heap_copy_missed(const struct heap_copy *copy); /* reads since heap_copy_seal() that failed for it */

/* The copy as memory; owned by the copy. */
struct memory *heap_copy_memory(struct heap_copy *copy);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * heap_copy: a copy of a target's memory in which every object is in one piece.
 *
 * A region of the copy is a range of the target's addresses. Its pages are copied when they
 * are first asked for, many at once, or when they are copied again. Regions may grow, shrink,
 * come and go with the target's mappings; what was copied of them stays.
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

/* Addresses that may be read, multiples of the page size. */
struct heap_range {
	uint64_t begin, end;
	bool shared; /* other processes may write there */
};

/*
 * Allow reads of these ranges, sorted by address and without overlaps, and of nothing else.
 * Neighbours become one region. What this adds to the ranges of the call before is new: HEAP_FILL_ALL
 * copies it. 0 or -ENOMEM; then some pages may be lost. Views move.
 */
int heap_copy_set_regions(struct heap_copy *copy, const struct heap_range *ranges, size_t count);

/*
 * The bytes at [address, address + length), or NULL if they cannot be read. They stay there
 * until regions are set or the copy is freed; copying pages again may change them.
 */
const uint8_t *heap_copy_view(struct heap_copy *copy, uint64_t address, size_t length);

/* From now on pages that are not copied cannot be read, and are counted. */
void heap_copy_seal(struct heap_copy *copy);
void heap_copy_unseal(struct heap_copy *copy);

/* Finds the next range within [*at, end) that has what the caller looks for, and moves *at behind it. */
typedef bool heap_copy_next(void *context, uint64_t *at, uint64_t end, uint64_t *ret_begin,
			    uint64_t *ret_end);

/*---- Copying ----*/

/*
 * From begin to end the target stands still: pages that are copied meanwhile are of one time. Beginning
 * forgets the hold before, and what heap_copy_check() has found. While may_go_on() is false, nothing is
 * copied; it is asked every few megabytes.
 */
void heap_copy_begin_hold(struct heap_copy *copy, bool (*may_go_on)(void *context), void *context);
/* False if something was not copied because may_go_on() said so. */
bool heap_copy_end_hold(struct heap_copy *copy);

/* Copy again the pages that are copied, some more than bytes of them. Pages that are gone are dropped. */
void heap_copy_again(struct heap_copy *copy, uint64_t bytes);

/* What heap_copy_fill() copies. */
enum heap_fill {
	HEAP_FILL_NEAR, /* what is beside copied pages, and what a sealed copy was asked for */
	HEAP_FILL_ALL,  /* regions that are new or of which something is copied */
};

/* Copy what has content, too. */
void heap_copy_fill(struct heap_copy *copy, enum heap_fill fill, heap_copy_next *next, void *context);

/*---- Copying only what changes ----*/

/* Mark those of the copied pages that next finds, and no others. */
void heap_copy_mark(struct heap_copy *copy, heap_copy_next *next, void *context);

/* Compare the copied pages with the source: take over what has changed, and mark these pages, too. */
void heap_copy_follow(struct heap_copy *copy);

/* Copy the marked pages again, some more than bytes of them. */
void heap_copy_again_marked(struct heap_copy *copy, uint64_t bytes);

/*
 * After a hold: compare the pages that were not copied in it with the source. Those that differ
 * are changed, until the next hold, and marked. Returns how many there are.
 */
uint64_t heap_copy_check(struct heap_copy *copy);

/* Is one of the pages with [address, address + length) changed? */
bool heap_copy_has_changed(struct heap_copy *copy, uint64_t address, size_t length);

/*---- Figures ----*/

uint64_t heap_copy_bytes(const struct heap_copy *copy);  /* copied, each page as often as it was copied */
uint64_t heap_copy_kept(const struct heap_copy *copy);   /* of the pages that are copied now */
uint64_t heap_copy_marked(const struct heap_copy *copy); /* of the pages that are marked now */
uint64_t heap_copy_missed(const struct heap_copy *copy); /* reads since heap_copy_seal() that failed for it */

/* Since the last hold began: has a read failed for want of memory for its region? */
bool heap_copy_is_short(const struct heap_copy *copy);

/* The copy as memory; owned by the copy. */
struct memory *heap_copy_memory(struct heap_copy *copy);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * heap_compared: which moments and VMs of a series are compared.
 *
 * What was not found at one moment would grow at the next. So only moments are compared of which all was
 * found. Where there are fewer than two, because VMs could not be read, these are left out of the comparison:
 * those that are missing most often first, and no more than two moments need.
 */
#ifndef LJSPY_HEAP_COMPARED_H
#define LJSPY_HEAP_COMPARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "output/heap_reports/heap_subject.h"

struct heap_compared {
	struct heap_side *sides; /* the moments of which all was found of the VMs compared, in their order */
	size_t count;
	/*
	 * Those that are missing at any moment, those that are missing most often first; and how many are
	 * left out.
	 */
	struct heap_absent_vm *vms;
	size_t left_out;
};

/* Its sides are borrowed, and must outlive it. 0 or -ENOMEM. Clear it in any case. */
int heap_compared_find(const struct heap_side *sides, size_t count, struct heap_compared *ret_compared);

/* Is it one of the VMs that are compared? */
bool heap_compared_has(const struct heap_compared *compared, const struct heap_subject *subject);

/*
 * Write "nginx (pid 4242), VM 1 is left out of the comparison: not read at 6 of 11 moments." and the like,
 * each in a line of its own; of more than rows only how many. Nothing if none is.
 */
void heap_compared_write(FILE *out, const struct heap_compared *compared, size_t moments, size_t rows);

void heap_compared_clear(struct heap_compared *compared);

#endif

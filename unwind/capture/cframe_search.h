/* SPDX-License-Identifier: MIT */
/*
 * cframe_search: find the VM's C frames on a copied native stack by their content.
 *
 * It finds frames that no link leads to. They are only candidates: threads that ended
 * long ago leave frames behind, and other data may resemble one.
 */
#ifndef LJSPY_CFRAME_SEARCH_H
#define LJSPY_CFRAME_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "luajit-layouts/layout.h"
#include "memory/snapshot.h"
#include "unwind/elf/image.h"

struct cframe_search {
	struct snapshot *snapshot;
	const struct image *image;
	const struct layout *layout;
	uint64_t at, end; /* still to search */
	struct {
		uint64_t address;
		size_t length;
		const uint8_t *bytes; /* NULL if the copy is not in one piece */
	} page;                       /* the last one read */
};

/* Begin a search for frames that lie completely in [begin, end), which must be copied. */
struct cframe_search cframe_search(struct snapshot *snapshot, const struct image *image,
				   const struct layout *layout, uint64_t begin, uint64_t end);

/* The copy has grown: search up to end. */
void cframe_search_until(struct cframe_search *search, uint64_t end);

/* The next one outwards and its SAVE_L, see vm_frame_is_plausible(); false if there is none. */
bool cframe_search_next(struct cframe_search *search, uint64_t *ret_cframe, uint64_t *ret_thread);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * live_ctypes: the C types of a VM that may run meanwhile.
 *
 * Types stay as they are once they are declared. New ones are added behind those that are there, but may move
 * the table (lj_ctype.h: CTState; lj_ctype.c: lj_ctype_new).
 */
#ifndef LJSPY_LIVE_CTYPES_H
#define LJSPY_LIVE_CTYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "luajit-layouts/layout.h"
#include "memory/memory.h"
#include "unwind/values/ctype_text.h"

struct live_ctypes {
	struct memory *memory; /* of the process */
	const struct layout *layout;
	uint64_t g;
	/* Set by live_ctypes_load(): where the table is, and how many types it has. */
	uint64_t table;
	uint32_t count;
};

/* Find the table. False if there is none. */
bool live_ctypes_load(struct live_ctypes *types);

/* Is the table still where it was? If not, what was read since then may be wrong. */
bool live_ctypes_stay(const struct live_ctypes *types);

/* For struct ctypes; types is a struct live_ctypes. */
bool live_ctypes_get(void *types, uint32_t id, struct ctype *ret_type);

/* The bytes of the C object of that type at address, with its header; 0 if they are unknown. */
uint64_t live_ctypes_object_bytes(struct live_ctypes *types, uint64_t address, uint32_t id);

/* All of these for one type. */
bool live_ctypes_text(struct memory *memory, const struct layout *layout, uint64_t g, uint32_t id,
		      char ret_text[static CTYPE_TEXT_SIZE]);

#endif

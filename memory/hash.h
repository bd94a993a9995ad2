/* SPDX-License-Identifier: MIT */
/*
 * hash: uthash whose tables survive a lack of memory. Include it in place of <uthash.h>.
 *
 * By itself, uthash ends the process then. Here an element that could not be added is not in
 * the table, which is as before: ask hash_added() after each HASH_ADD.
 */
#ifndef LJSPY_HASH_H
#define LJSPY_HASH_H

#include <stdbool.h>
#include <stddef.h>

#define HASH_NONFATAL_OOM 1
/* Its default falls through its cases in a way that clang warns of; FNV does badly on several small numbers. */
#define HASH_FUNCTION HASH_OAT

#include <uthash.h>

/* handle: the element's hh. */
static inline bool hash_added(const UT_hash_handle *handle)
{
	return handle->tbl != NULL;
}

#endif

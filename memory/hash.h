/* SPDX-License-Identifier: MIT */
/*
 * hash: uthash whose tables survive a lack of memory. Include it in place of <uthash.h>.
 *
 * Plain uthash ends the process when memory is short. With this header, HASH_ADD leaves the table
 * unchanged instead: ask hash_added() after each HASH_ADD.
 */
#ifndef LJSPY_HASH_H
#define LJSPY_HASH_H

#include <stdbool.h>
#include <stddef.h>

#define HASH_NONFATAL_OOM 1
/* clang warns about fall-through in uthash's default; FNV spreads keys of several small numbers badly. */
#define HASH_FUNCTION HASH_OAT

#include <uthash.h>

/* Is the element in a table? handle: its hh. */
static inline bool hash_added(const UT_hash_handle *handle)
{
	return handle->tbl != NULL;
}

#endif

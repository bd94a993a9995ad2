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
#include <stdlib.h>

#define HASH_NONFATAL_OOM 1
/* clang warns about fall-through in uthash's default; FNV spreads keys of several small numbers badly. */
#define HASH_FUNCTION HASH_OAT

#include <uthash.h>

/* Is the element in a table? handle: its hh. */
static inline bool hash_added(const UT_hash_handle *handle)
{
	return handle->tbl != NULL;
}

/* Free each element of a table, chained by hh, that holds nothing else to be freed; head is NULL then. */
#define HASH_FREE_ALL(head) \
	do { \
		__typeof__(head) hash_element, hash_next; \
\
		HASH_ITER(hh, head, hash_element, hash_next) { \
			HASH_DEL(head, hash_element); \
			free(hash_element); \
		} \
	} while (0)

#endif

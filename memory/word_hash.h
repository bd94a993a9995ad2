/* SPDX-License-Identifier: MIT */
/*
 * word_hash: uthash with a faster hash for keys of whole 64-bit words, such as
 * addresses. Include it in place of memory/hash.h.
 *
 * A sample needs some hundred lookups; uthash's own function takes a key byte
 * by byte.
 */
#ifndef LJSPY_WORD_HASH_H
#define LJSPY_WORD_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "memory/hash.h"
#include "memory/scatter.h"

static inline unsigned int word_hash(const void *key, size_t length)
{
	const uint8_t *at = key;
	uint64_t hash = 0, word;

	for (; length >= sizeof(word); length -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		hash = scatter(hash ^ word);
	}
	return (unsigned int)hash;
}

#undef HASH_FUNCTION
#define HASH_FUNCTION(key, length, hash) ((hash) = word_hash((key), (length)))

#endif

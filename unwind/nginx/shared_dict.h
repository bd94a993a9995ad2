/* SPDX-License-Identifier: MIT */
/*
 * shared_dict: the keys of a lua_shared_dict.
 *
 * The zone's ngx_slab_pool_t has a pointer to what its owner keeps. For lua-nginx-module that is
 * ngx_http_lua_shdict_shctx_t: a red-black tree with its sentinel, and a queue of all entries by
 * their last use. The tree's pointer to the sentinel beside it tells it from other owners' data.
 * Facts: src/ngx_http_lua_shdict.h, ngx_queue.h, ngx_rbtree.h.
 */
#ifndef LJSPY_SHARED_DICT_H
#define LJSPY_SHARED_DICT_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/memory.h"

enum { SHARED_DICT_KEYS_MAX = 1 << 22 };

struct shared_dict {
	bool is_whole; /* the entries were all read; else these are those that were */
	bool is_quiet; /* and nobody used the dictionary meanwhile: the numbers are exact */
	uint64_t keys, expired;
};

/*
 * The entries of the dictionary in the zone [begin, end); now_ms since the epoch. memory fails reads of
 * what is not to be read. False if the zone is no lua_shared_dict.
 */
bool shared_dict_read(struct memory *memory, uint64_t begin, uint64_t end, uint64_t now_ms,
		      struct shared_dict *ret_dict);

#endif

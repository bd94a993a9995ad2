/* SPDX-License-Identifier: MIT */
#include "unwind/nginx/shared_dict.h"

#include <stddef.h>

enum {
	WORD = sizeof(uint64_t),
	POOL_WORDS = 40, /* ngx_slab_pool_t; it has at most 30 */
	TRIES = 3,
};

/* ngx_http_lua_shdict_shctx_t */
struct shctx {
	uint64_t root, sentinel, insert;
	uint64_t sentinel_node[5]; /* ngx_rbtree_node_t */
	uint64_t first, last;      /* ngx_queue_t: prev, next; see struct queue */
};

struct queue {
	uint64_t prev, next;
};

/* ngx_http_lua_shdict_node_t up to its queue: two words are there before it */
struct entry {
	uint64_t head;    /* color, type of the value, lengths of key and value */
	uint64_t expires; /* in milliseconds since the epoch; 0: never */
	struct queue queue;
};

static bool is_inside(uint64_t address, uint64_t begin, uint64_t end, size_t bytes)
{
	return address % WORD == 0 && address >= begin && address <= end - bytes;
}

/* The address of the owner's data in the zone; 0 if it is no dictionary's. */
static uint64_t find_shctx(struct memory *memory, uint64_t begin, uint64_t end)
{
	uint64_t words[POOL_WORDS];

	if (memory_read(memory, begin, words, sizeof(words)) != MEMORY_OK)
		return 0;
	for (size_t i = 0; i < POOL_WORDS; i++) {
		struct shctx shctx;

		if (is_inside(words[i], begin, end, sizeof(shctx)) &&
		    memory_read(memory, words[i], &shctx, sizeof(shctx)) == MEMORY_OK &&
		    shctx.sentinel == words[i] + offsetof(struct shctx, sentinel_node) &&
		    is_inside(shctx.first, begin, end, sizeof(struct queue)) &&
		    is_inside(shctx.last, begin, end, sizeof(struct queue)) &&
		    is_inside(shctx.root, begin, end, sizeof(shctx.sentinel_node)))
			return words[i];
	}
	return 0;
}

/*
 * Follow the queue. Each entry refers back to the one before it: so none is read twice while nothing changes.
 */
static struct shared_dict read_queue(struct memory *memory, uint64_t begin, uint64_t end, uint64_t head,
				     uint64_t now_ms)
{
	struct shared_dict dict = { 0 };
	struct queue first, again;
	uint64_t before = head, at;

	if (memory_read(memory, head, &first, sizeof(first)) != MEMORY_OK)
		return dict;
	for (at = first.next; at != head && dict.keys < SHARED_DICT_KEYS_MAX; dict.keys++) {
		struct entry entry;

		if (!is_inside(at, begin + offsetof(struct entry, queue), end, sizeof(struct queue)) ||
		    memory_read(memory, at - offsetof(struct entry, queue), &entry, sizeof(entry)) !=
			    MEMORY_OK ||
		    entry.queue.prev != before)
			return dict;
		dict.expired += entry.expires != 0 && entry.expires <= now_ms;
		before = at;
		at = entry.queue.next;
	}
	dict.is_whole = at == head;
	dict.is_quiet = memory_read(memory, head, &again, sizeof(again)) == MEMORY_OK &&
			again.next == first.next && again.prev == before;
	return dict;
}

bool shared_dict_read(struct memory *memory, uint64_t begin, uint64_t end, uint64_t now_ms,
		      struct shared_dict *ret_dict)
{
	uint64_t shctx = end - begin > POOL_WORDS * WORD ? find_shctx(memory, begin, end) : 0;
	struct shared_dict dict = { 0 };

	if (shctx == 0)
		return false;
	for (unsigned i = 0; i < TRIES && !(dict.is_whole && dict.is_quiet); i++)
		dict = read_queue(memory, begin, end, shctx + offsetof(struct shctx, first), now_ms);
	*ret_dict = dict;
	return true;
}

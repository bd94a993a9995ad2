/* SPDX-License-Identifier: MIT */
#include "src/footprint/pieces/nginx_pool.h"

#include "memory/memory.h"

enum {
	BLOCKS_MAX = 1 << 16,
	LARGE_MAX = 1 << 16,
	BLOCK_BYTES_MAX = 64 << 20,
};

/* ngx_pool_t up to large; later blocks have only the first four */
struct block {
	uint64_t last, end, next, failed;
	uint64_t max, current, chain, large;
};

static bool read_large(const struct window *window, uint64_t address, struct nginx_pool *pool)
{
	uint64_t large[2]; /* ngx_pool_large_t: next, alloc */

	for (size_t i = 0; address; i++) {
		if (i == LARGE_MAX || !window_peek(window, address, large, sizeof(large)))
			return false;
		pool->large += large[1] != 0;
		address = large[0];
	}
	return true;
}

bool nginx_pool_read(const struct window *window, uint64_t address, struct nginx_pool *ret_pool)
{
	struct nginx_pool pool = { .blocks = 0 };
	struct block first = { .max = 0 };

	if (!window_peek(window, address, &first, sizeof(first)) ||
	    first.max >=
		    memory_page_size()) /* NGX_MAX_ALLOC_FROM_POOL: what is larger has a block of its own */
		return false;
	for (struct block block = first;;) {
		if (pool.blocks == BLOCKS_MAX || block.last < address || block.last > block.end ||
		    block.end - address > BLOCK_BYTES_MAX)
			return false;
		pool.blocks++;
		pool.bytes += block.end - address;
		pool.unused += block.end - block.last;
		address = block.next;
		if (address == 0)
			break;
		/* The fifth word of a later block is the program's. */
		if (!window_peek(window, address, &block, 4 * sizeof(uint64_t)))
			return false;
	}
	if (!read_large(window, first.large, &pool))
		return false;
	*ret_pool = pool;
	return true;
}

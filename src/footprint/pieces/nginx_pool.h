/* SPDX-License-Identifier: MIT */
/*
 * nginx_pool: how much memory one of nginx's pools has.
 *
 * A pool is a chain of blocks from malloc(), and a list of large ones. Only the
 * pool of nginx's configuration can be found from outside: ngx_cycle_t, whose second word
 * it is, is exported. Those of connections and requests look like any other memory.
 * Facts: nginx, src/core/ngx_palloc.h (ngx_pool_t), the same in all releases since 0.7.
 */
#ifndef LJSPY_NGINX_POOL_H
#define LJSPY_NGINX_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/footprint/pieces/window.h"

struct nginx_pool {
	size_t blocks;
	uint64_t bytes;  /* of blocks */
	uint64_t unused; /* of them, at their ends */
	size_t large;    /* blocks of their own, whose sizes the pool does not know */
};

/* False if there is no pool at the address, or it cannot be read. */
bool nginx_pool_read(const struct window *window, uint64_t address, struct nginx_pool *ret_pool);

#endif

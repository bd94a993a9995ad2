/* SPDX-License-Identifier: MIT */
/*
 * slab_zone: a zone of memory that nginx's processes share, such as a lua_shared_dict.
 *
 * A zone is a mapping of its own, which begins with ngx_slab_pool_t. That changed with
 * releases: each known shape is tried, and must agree with itself and the mapping.
 * Facts: nginx, src/core/ngx_slab.[ch], ngx_shmtx.h, 1.0 to 1.29. The zone's owner notes
 * its name for the log (log_ctx): " in lua_shared_dict zone \"dogs\"".
 */
#ifndef LJSPY_SLAB_ZONE_H
#define LJSPY_SLAB_ZONE_H

#include <stdbool.h>
#include <stdint.h>

#include "src/footprint/pieces/window.h"

enum { SLAB_ZONE_TEXT_MAX = 256 };

struct slab_zone {
	char name[SLAB_ZONE_TEXT_MAX]; /* untrusted; "" if its owner notes none */
	char kind[SLAB_ZONE_TEXT_MAX]; /* what it is, in its owner's words: "lua_shared_dict zone"; or "" */
	uint64_t size;                 /* bytes, as configured */
	uint64_t usable;               /* in pages for data */
	bool knows_free;
	uint64_t free; /* of usable: whole free pages, as shdict's free_space() counts */
};

/* False if the mapping [begin, end) is no zone. */
bool slab_zone_read(struct window *window, uint64_t begin, uint64_t end, struct slab_zone *ret_zone);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * zone_names: what nginx's configuration calls the memory that its processes share.
 *
 * ngx_cycle, which nginx exports for its modules, leads to them (unwind/nginx/zones.h). A name is that of
 * the zone with the address and the size of a mapping. Only pages that are in memory are read.
 */
#ifndef LJSPY_ZONE_NAMES_H
#define LJSPY_ZONE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "src/footprint/pieces/slab_zone.h"
#include "src/footprint/pieces/window.h"

/* cycle: address of ngx_cycle_t. The name of the zone mapped at [begin, end); false if there is none. */
bool zone_names_find(const struct window *window, uint64_t cycle, uint64_t begin, uint64_t end,
		     char ret_name[static SLAB_ZONE_TEXT_MAX]);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * heap_cdata: who holds cdata of each C type, and what finalizes them.
 *
 * LuaJIT does not keep where a cdata was made. What holds it says where it is kept; its finalizer,
 * if ffi.gc() gave it one, is mostly a function of the file that made it.
 */
#ifndef LJSPY_HEAP_CDATA_H
#define LJSPY_HEAP_CDATA_H

#include <stdint.h>

#include "output/heap/heap_graph.h"
#include "output/heap_views/heap_groups.h"
#include "output/heap_views/heap_paths.h"

/* Set held and finalizer of groups by C type. of is the path of each of the graph's nodes. 0 or -ENOMEM. */
int heap_cdata_find(const struct heap_graph *graph, const struct heap_paths *paths, const uint32_t *of,
		    struct heap_group *groups);

#endif

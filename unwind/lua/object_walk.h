/* SPDX-License-Identifier: MIT */
/*
 * object_walk: every object of one type in one global_State, in slices.
 *
 * All collectable objects but strings are on one list (g->gc.root, lj_gc.c).
 * It is followed for a short while, in which the target must hold still, and
 * later on from where that ended. In between the collector may have freed the
 * object that the walk stands at. So it stands only at one that the sweep at
 * hand cannot free, and goes on if no new one has begun and the list still
 * leads from the last objects to this one; or else from an earlier object
 * that has outlived the new cycle; or else it begins again. New objects are
 * put in front: those made after the walk has begun are not seen.
 */
#ifndef LJSPY_OBJECT_WALK_H
#define LJSPY_OBJECT_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/memory.h"
#include "unwind/lua/global_state.h"

enum object_walk_step {
	OBJECT_WALK_FOUND,
	OBJECT_WALK_PAUSE,	/* the slice has had its share of objects */
	OBJECT_WALK_END,
	OBJECT_WALK_BROKEN,	/* the list leads nowhere, or changes too fast */
};

struct object_walk;

/*
 * gct is the type, GCT_THREAD or the like. live reads the target as it is. Both must outlive the
 * walk. NULL when memory is short.
 */
struct object_walk *object_walk_new(struct memory *live, const struct global_state *global, uint8_t gct);
void object_walk_free(struct object_walk *walk);

/* The target holds still from now on. */
void object_walk_begin_slice(struct object_walk *walk);

/* It did not: be where the slice began. */
void object_walk_undo_slice(struct object_walk *walk);

/* Pause as soon as it may. */
void object_walk_rest(struct object_walk *walk);

/*
 * The next one that the collector has not given up, main threads left out. The
 * same one may be found again if the walk has to begin again.
 */
enum object_walk_step object_walk_next(struct object_walk *walk, uint64_t *ret_object);

#endif

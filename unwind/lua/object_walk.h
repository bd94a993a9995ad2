/* SPDX-License-Identifier: MIT */
/*
 * object_walk: visit every object of one type in one global_State, in slices.
 *
 * One list links all collectable objects except strings (g->gc.root, lj_gc.c). The
 * walk follows it for a short slice, while the target is held, and later continues
 * there. In between the collector may free objects. So the walk pauses only at an
 * object that the current sweep cannot free. It continues there if no new sweep has
 * begun and the last objects still lead to it. Otherwise it continues at an earlier
 * object that survived the new cycle, or else it starts over. LuaJIT adds new
 * objects at the front: the walk does not see those created after its start.
 *
 * A slice that meets dead objects only is given up in the end, and walked again from where it began: the
 * sweep may have freed them then. If that does not help for long, the walk is broken; so it is if it visits
 * more objects than there can be.
 */
#ifndef LJSPY_OBJECT_WALK_H
#define LJSPY_OBJECT_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/memory.h"
#include "unwind/lua/global_state.h"

enum object_walk_step {
	OBJECT_WALK_FOUND,
	OBJECT_WALK_PAUSE, /* the slice has used up its cost */
	OBJECT_WALK_END,
	OBJECT_WALK_BROKEN, /* the list leads nowhere, or changes too fast */
};

struct object_walk;

/*
 * Make a walk for objects of type gct, such as GCT_THREAD. live reads the target's
 * current memory. live and global_State must outlive the walk. NULL when out of memory.
 */
struct object_walk *object_walk_new(struct memory *live, const struct global_state *global, uint8_t gct);
void object_walk_free(struct object_walk *walk);

/* Begin a slice: the target is held from now on. */
void object_walk_begin_slice(struct object_walk *walk);

/* The target was not held: go back to where the slice began. */
void object_walk_undo_slice(struct object_walk *walk);

/* Pause at the next object that allows it. */
void object_walk_rest(struct object_walk *walk);

/*
 * Find the next object that the collector has not found dead, except main threads.
 * If the walk starts over, it may find an object again.
 */
enum object_walk_step object_walk_next(struct object_walk *walk, uint64_t *ret_object);

#endif

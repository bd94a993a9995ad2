/*
 * coroutine_walk: every coroutine of one universe, in slices.
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
#ifndef LJSPY_COROUTINE_WALK_H
#define LJSPY_COROUTINE_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/memory.h"
#include "unwind/image.h"

enum coroutine_walk_step {
	COROUTINE_WALK_FOUND,
	COROUTINE_WALK_PAUSE,	/* the slice has had its share of objects */
	COROUTINE_WALK_END,
	COROUTINE_WALK_BROKEN,	/* the list leads nowhere, or changes too fast */
};

struct coroutine_walk;

/* live reads the target as it is. Both must outlive the walk. NULL when memory is short. */
struct coroutine_walk *coroutine_walk_new(struct memory *live, const struct lua_universe *universe);
void coroutine_walk_free(struct coroutine_walk *walk);

/* The target holds still from now on. */
void coroutine_walk_begin_slice(struct coroutine_walk *walk);

/* It did not: be where the slice began. */
void coroutine_walk_undo_slice(struct coroutine_walk *walk);

/* Pause as soon as it may. */
void coroutine_walk_rest(struct coroutine_walk *walk);

/*
 * The next coroutine that the collector has not given up, main threads left
 * out. The same one may be found again if the walk has to begin again.
 */
enum coroutine_walk_step coroutine_walk_next(struct coroutine_walk *walk, uint64_t *ret_thread);

#endif

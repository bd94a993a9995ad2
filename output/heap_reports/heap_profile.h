/* SPDX-License-Identifier: MIT */
/*
 * heap_profile: the paths of heaps as stacks of a profile, for everything that shows profiles.
 */
#ifndef LJSPY_HEAP_PROFILE_H
#define LJSPY_HEAP_PROFILE_H

#include "output/heap_reports/heap_subject.h"
#include "output/sample/functions.h"
#include "output/sample/session.h"
#include "output/views/profile.h"

/* What a view's stacks weigh. */
enum weight_kind heap_profile_weight(const struct heap_view *view);

/*
 * Call each() with each path's frames, leaf first, and the sums of the objects that it is the path of.
 * The outermost frames tell VMs apart if there are several. 0, -ENOMEM or what each() returned.
 */
int heap_profile_each(const struct heap_side *side, const struct heap_view *view, struct functions *functions,
		      int (*each)(void *context, const struct frame *frames, size_t count,
				  const struct heap_sum *sum),
		      void *context);

/*
 * A profile of them, which the caller frees. functions outlives it. with_nothing: add stacks without
 * their weights. 0 or -ENOMEM.
 */
int heap_profile_add(struct profile *profile, const struct heap_side *side, const struct heap_view *view,
		     struct functions *functions, bool with_nothing);

/* A session for pictures of a side. It borrows from both. */
struct session heap_profile_session(const struct heap_side *side, const struct heap_view *view);

#endif

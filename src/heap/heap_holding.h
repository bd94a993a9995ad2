/* SPDX-License-Identifier: MIT */
/*
 * heap_holding: bring the copy of a heap to one time, with a hold that is as short as it can be.
 *
 * A small heap is copied whole. Of a large one, only what may have changed since it was copied
 * while the process ran: by the kernel's marks of pages that were written (resident.h), if it
 * keeps any. Without them the whole is copied, if the limit allows that. Otherwise, if the user
 * has set the limit, only pages that are seen to change are copied; the others are compared
 * afterwards, and those that have changed are counted. So it is, if none has changed, where a
 * thread wakes in each copy of the whole. Private to src/heap.
 */
#ifndef LJSPY_HEAP_HOLDING_H
#define LJSPY_HEAP_HOLDING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "output/heap/heap_account.h"
#include "src/inspect/lua_process.h"
#include "src/heap/parallel_memory.h"
#include "src/heap/running_stack.h"
#include "src/linux/threads/hold.h"
#include "unwind/heap/heap_copy.h"

struct heap_holding {
	struct lua_process *process;
	struct hold *hold;
	struct heap_copy *copy;
	const struct global_state *global; /* whose heap it is */
	struct running_stack stack;        /* of the moment of the copy */
	struct parallel_memory *parallel;
	pid_t pid;
	int pagemap;          /* or negative */
	uint64_t limit_ns;    /* of a hold */
	bool may_leave_out;   /* what does not fit the limit */
	bool is_unheld;       /* hold nothing: copy what does not change */
	enum heap_fill fill;  /* what is copied beside what is asked for */
	bool has_marks;       /* the kernel's, of pages that were written */
	bool has_helpers;     /* parallel has started its threads */
	double bytes_per_ns;  /* how fast pages are copied */
	uint64_t held_bytes;  /* copied while it was held */
	uint64_t too_long_ns; /* how long a hold would have taken that was left out */
};

/*
 * Let the copy have the mappings that a program may write to: allocators may be of any kind. 0 or
 * -ENOMEM.
 */
int heap_holding_set_regions(struct heap_holding *holding);

/* The same, if there are other mappings now. */
int heap_holding_refresh(struct heap_holding *holding);

/* Refresh, and copy what has content and lies beside what is copied already, or is new. 0 or -ENOMEM. */
int heap_holding_fill(struct heap_holding *holding);

/*
 * Hold and copy. Sets *ret_method, and *ret_changed to how many pages may be of another time. Captures the
 * stack, too, if there was a hold with time for it, and no such page. 0; -ENOMEM; -EBUSY if the process could
 * not be held, or was not to be; -EFBIG if that would take too long: then too_long_ns tells how long.
 */
int heap_holding_copy(struct heap_holding *holding, enum heap_method *ret_method, uint64_t *ret_changed);

#endif

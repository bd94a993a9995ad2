/* SPDX-License-Identifier: MIT */
/*
 * allocation_series: which large allocations come in a time that begins whatever the program does.
 *
 * Each is as likely to be among them, however long the allocator takes for it; a look that finds a thread
 * inside of the allocator is not. So ljspy looks at the counters of one VM again and again. That takes all of
 * its time, and it takes no samples meanwhile: series are short and rare.
 */
#ifndef LJSPY_ALLOCATION_SERIES_H
#define LJSPY_ALLOCATION_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/memory.h"
#include "src/allocations/allocation_shares.h"
#include "unwind/allocation/allocated.h"
#include "unwind/lua/global_state.h"

struct series {
	struct memory *memory;
	const struct global_state *global;
	struct allocation_shares *shares;
	struct listed_object *objects; /* room for LISTED_OBJECTS_MAX */
	/* Asked where nothing was allocated for long: false if the thread has left its CPU. */
	bool (*has_kept_cpu)(const void *context);
	const void *context;
};

/*
 * Take one, and add its pairs to the shares. It ends at once where a signal waits for ljspy: a sample of some
 * process is due, a thread has stopped, or the user wants an end.
 */
void allocation_series_take(const struct series *series);

#endif

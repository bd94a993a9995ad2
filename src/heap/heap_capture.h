/* SPDX-License-Identifier: MIT */
/*
 * heap_capture: the heap of one VM of a process, or of a core file, as it is at one time.
 *
 * First copy the heap's pages while the process runs. Then hold the process, copy what may have
 * changed since and what is new (heap_holding.h), and let it go. A process that sleeps is not
 * stopped: the second copy holds if it has slept on. Everything else is done on the copy. Where
 * the copy is not sound, because the process was stopped in the middle of a change, try again.
 */
#ifndef LJSPY_HEAP_CAPTURE_H
#define LJSPY_HEAP_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "output/heap/heap_account.h"
#include "output/heap/heap_graph.h"
#include "src/inspect/lua_process.h"
#include "src/linux/threads/hold.h"
#include "unwind/heap/heap_read.h"

enum { HEAP_CAPTURE_PAUSE_NS = 100 * 1000 * 1000 };

struct heap_capture_options {
	struct heap_read_options read;
	/*
	 * Hold no longer, and count what may have changed in pages that were not copied in the
	 * hold; 0: HEAP_CAPTURE_PAUSE_NS, and copy all that may have changed.
	 */
	uint64_t max_pause_ns;
	/* Hold the process not at all: -EBUSY if the heap changes while it is copied. */
	bool is_unheld;
};

/*
 * hold is NULL for a core file. pid, process, vm, module and time of *account are the
 * caller's. 0; -ENOMEM; -EIO if the global_State cannot be read, or is none any more; -EBUSY if the process
 * could not be held, or was not to be; -EFBIG if it would be held for longer than HEAP_CAPTURE_PAUSE_NS: then
 * longest_hold_ns is about how long.
 */
int heap_capture(struct lua_process *process, struct hold *hold, size_t global,
		 const struct heap_capture_options *options, struct heap_graph *ret_graph,
		 struct heap_account *account);

#endif

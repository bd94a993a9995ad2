/* SPDX-License-Identifier: MIT */
/*
 * taking: what the parts of footprint share. Private to this room.
 */
#ifndef LJSPY_TAKING_H
#define LJSPY_TAKING_H

#include "output/reports/footprint_report.h"
#include "src/footprint/claims.h"
#include "src/footprint/pieces/window.h"
#include "src/inspect/lua_process.h"
#include "src/linux/pages/page_runs.h"
#include "src/linux/pages/smaps.h"

struct taking {
	struct lua_process *process;
	struct footprint *report;
	pid_t tid; /* a thread through which memory can be read */
	struct smaps smaps;
	struct page_runs runs;
	struct window window;
	struct claims claims;
	size_t lua_allocators; /* how many there are of LuaJIT's own */
	bool unsteady;         /* one of them has changed at each look */
};

/*
 * Claim a piece of memory for a row, and its free chunks for a row of kind free_kind, both of
 * VM g. What is claimed already stays with whom it is. 0 or -ENOMEM.
 */
int taking_claim(struct taking *taking, const struct heap_piece *piece, enum footprint_kind kind,
		 enum footprint_kind free_kind, const char *name, uint64_t g);

/* Is this plain memory: private, writable, not executable, of no file and without a name? */
bool taking_is_plain(const struct mapping *mapping);

/* Each of these claims what it finds. 0 or -ENOMEM. */
int taking_lua(struct taking *taking);    /* segments and machine code */
int taking_nginx(struct taking *taking);  /* zones */
int taking_malloc(struct taking *taking); /* arenas */
int taking_stacks(struct taking *taking);
int taking_data(struct taking *taking);  /* of files, without content in the file */
int taking_large(struct taking *taking); /* large blocks, in what is left */

/* Give each mapping's pages to rows. 0 or -ENOMEM. */
int taking_account(struct taking *taking);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * footprint: tell the memory of a process apart.
 *
 * Only reads, while the process runs on. What has changed meanwhile is read again, some
 * times. Places that are known (LuaJIT's segments, arenas, zones, stacks) are claimed
 * first; a mapping's pages outside of these belong to what the mapping is.
 */
#ifndef LJSPY_FOOTPRINT_H
#define LJSPY_FOOTPRINT_H

#include "output/reports/footprint_report.h"
#include "src/inspect/lua_process.h"
#include "src/linux/pages/smaps.h"

/*
 * Fill the report; pid and name are set already. before: what was in memory before ljspy read
 * anything of the process, for reading files that are mapped brings their pages into its
 * RSS. 0 or a negative errno.
 */
int footprint_take(struct lua_process *process, const struct smaps *before, struct footprint *report);

#endif

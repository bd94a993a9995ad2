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

/* Fill the report; pid and name are set already. 0 or a negative errno. */
int footprint_take(struct lua_process *process, struct footprint *report);

#endif

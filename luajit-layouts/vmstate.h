/* SPDX-License-Identifier: MIT */
/*
 * vmstate: what g->vmstate says, regardless of how a build numbers its states.
 *
 * g->vmstate holds the complement of LJ_VMST_* (lj_obj.h). Zero and above are trace numbers.
 */
#ifndef LJSPY_VMSTATE_H
#define LJSPY_VMSTATE_H

#include <stdbool.h>
#include <stdint.h>

#include "luajit-layouts/layout.h"

/* As LuaJIT numbers them. */
enum {
	VMST_INTERP = ~0,
	VMST_C = ~1,
	VMST_GC = ~2,
	VMST_EXIT = ~3,
	VMST_RECORD = ~4,
	VMST_OPT = ~5,
	VMST_ASM = ~6,
	VMST_LOWEST = -16, /* no build has more states */
};

/* The VMST_* of what is stored in g->vmstate; states that the numbering lacks, and traces, are as stored. */
int32_t vmstate_of(const struct layout *layout, int32_t stored);

/*
 * The numbering, if the interpreter's code stores these states: bit n stands for ~n. False if it is unknown.
 */
bool vmstate_numbering(uint32_t stored, enum layout_vmstates *ret_vmstates);

#endif

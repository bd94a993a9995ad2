/* SPDX-License-Identifier: MIT */
#include "luajit-layouts/vmstate.h"

/*
 * Tarantool's INTERP, LFUNC, FFUNC, CFUNC, GC, EXIT, RECORD, OPT and ASM (lj_obj.h, 111d377d of 2020-12-28).
 */
static const int32_t tarantool[] = {
	VMST_INTERP, VMST_INTERP, VMST_INTERP, VMST_C, VMST_GC, VMST_EXIT, VMST_RECORD, VMST_OPT, VMST_ASM,
};

enum {
	/*
	 * What interpreters store (vm_x64.dasc, vm_x86.dasc), without EXIT, which only the compiler's part
	 * stores.
	 */
	LUAJIT_STORES = 1u << 0 | 1u << 1,
	LUAJIT_EXIT = 1u << 3,
	TARANTOOL_STORES = 1u << 0 | 1u << 1 | 1u << 2 | 1u << 3,
	TARANTOOL_EXIT = 1u << 5,
};

int32_t vmstate_of(const struct layout *layout, int32_t stored)
{
	if (layout->vmstates != VMSTATES_TARANTOOL || stored >= 0 ||
	    ~stored >= (int32_t)(sizeof(tarantool) / sizeof(tarantool[0])))
		return stored;
	return tarantool[~stored];
}

bool vmstate_numbering(uint32_t stored, enum layout_vmstates *ret_vmstates)
{
	if ((stored & ~(uint32_t)LUAJIT_EXIT) == LUAJIT_STORES)
		*ret_vmstates = VMSTATES_LUAJIT;
	else if ((stored & ~(uint32_t)TARANTOOL_EXIT) == TARANTOOL_STORES)
		*ret_vmstates = VMSTATES_TARANTOOL;
	else
		return false;
	return true;
}

/* SPDX-License-Identifier: MIT */
/*
 * one_state: the state of one_global.h, whose registry may change from one hold to the next, as where the
 * state was closed and another one opened in its place.
 *
 * The test includes one_global.h, too, and adds registry_change to registry in its hold_while().
 */
#ifndef LJSPY_ONE_STATE_H
#define LJSPY_ONE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "luajit-layouts/vm.h"
#include "tests/unit/instead_of.h"
#include "unwind/lua/lua_table.h"

static uint64_t registry, registry_change;

INSTEAD_OF(lua_table_registry);
bool __wrap_lua_table_registry(struct memory *of, const struct layout *layout, uint64_t g,
			       uint64_t *ret_table)
{
	(void)of, (void)layout, (void)g;
	*ret_table = registry;
	return true;
}

#endif

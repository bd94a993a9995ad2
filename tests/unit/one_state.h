/* SPDX-License-Identifier: MIT */
/*
 * one_state: a process with one Lua state, whose registry may change from one hold to the next, as where the state was
 * closed and another one opened in its place.
 *
 * The test has `static struct memory memory` before it includes this, and adds registry_change to registry in its
 * hold_while().
 */
#ifndef LJSPY_ONE_STATE_H
#define LJSPY_ONE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "luajit-layouts/vm.h"
#include "src/inspect/lua_process.h"
#include "tests/unit/instead_of.h"
#include "unwind/lua/lua_table.h"

static struct vm_code vm = { .layout.has_jit = true };
static const struct global_state global = { .g = 0x30000, .vm = &vm };
static uint64_t registry, registry_change;

INSTEAD_OF(lua_process_global);
const struct global_state *__wrap_lua_process_global(const struct lua_process *process, size_t index)
{
	(void)process, (void)index;
	return &global;
}

INSTEAD_OF(lua_process_memory);
struct memory *__wrap_lua_process_memory(struct lua_process *process)
{
	(void)process;
	return &memory;
}

INSTEAD_OF(lua_table_registry);
bool __wrap_lua_table_registry(struct memory *of, const struct layout *layout, uint64_t g,
			       uint64_t *ret_table)
{
	(void)of, (void)layout, (void)g;
	*ret_table = registry;
	return true;
}

#endif

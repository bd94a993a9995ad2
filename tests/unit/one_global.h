/* SPDX-License-Identifier: MIT */
/*
 * one_global: a process with one Lua state.
 *
 * The test has `static struct memory memory` before it includes this.
 */
#ifndef LJSPY_ONE_GLOBAL_H
#define LJSPY_ONE_GLOBAL_H

#include <stddef.h>

#include "luajit-layouts/vm.h"
#include "src/inspect/lua_process.h"
#include "tests/unit/instead_of.h"

static struct vm_code vm = { .layout.has_jit = true };
static const struct global_state global = { .g = 0x30000, .vm = &vm };

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

#endif

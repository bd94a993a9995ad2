/* SPDX-License-Identifier: MIT */
/*
 * vm_work: say in words what LuaJIT's own C code does for a Lua function.
 *
 * The words are static strings, the same for all versions of LuaJIT, so that work compares
 * between processes. Three things tell it, the most precise first: the names of LuaJIT's
 * functions (lj_*.c of v2.0 and v2.1), where a program has symbols; the VM state; and the
 * bytecode instruction that is executed, in stripped programs, too.
 */
#ifndef LJSPY_VM_WORK_H
#define LJSPY_VM_WORK_H

#include <stdbool.h>

#include "luajit-layouts/bytecode.h"
#include "output/sample/sample.h"

/* The work of an internal function ("lj_tab_resize"). NULL if its name does not tell. */
const char *vm_work_of_function(const char *name);

/* The work that LuaJIT notes as its state. NULL for states in which it may do anything. */
const char *vm_work_of_state(enum vm_state state);

/* The work for which this instruction calls C code. NULL if it may be several. */
const char *vm_work_of_instruction(enum bytecode_op op);

/* Is this work only a part of more general work, such as growing a table to store in it? */
bool vm_work_is_part(const char *work);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * vm_names: name the interpreter's code at an address without symbols.
 *
 * A state's dispatch table (GG_State.dispatch, lj_dispatch.c) holds the start of
 * each opcode's handler and of each assembler library function. The names are
 * those of LuaJIT's symbols: lj_BC_ADDVV, lj_ff_math_floor.
 */
#ifndef LJSPY_VM_NAMES_H
#define LJSPY_VM_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "luajit-layouts/vm.h"
#include "memory/memory.h"
#include "unwind/lua/builtins.h"

enum { VM_NAME_SIZE = 64 };

struct vm_name {
	uint64_t begin, end;
	char name[VM_NAME_SIZE];
};

struct vm_names {
	struct vm_name *at; /* sorted by address; owned */
	size_t count;
};

/*
 * Collect the names by the dispatch table of the state at g. *ret_names is empty
 * if nothing could be read; the caller clears it. False if nothing could be read,
 * or if some handlers have no name for now: while a call hook is set, and while
 * LuaJIT records a trace.
 */
bool vm_names_collect(struct memory *memory, const struct vm_code *vm, uint64_t g,
		      const struct builtins *builtins, struct vm_names *ret_names);

/*
 * After vm_names_collect() has said false: collect them again, once calls are not hooked. The names stay as
 * they are, and it reads the dispatch table alone, while they are. True if all have a name now.
 */
bool vm_names_complete(struct memory *memory, const struct vm_code *vm, uint64_t g,
		       const struct builtins *builtins, struct vm_names *names);
void vm_names_clear(struct vm_names *names);

/* The name, owned by names. NULL where none is certain: in routines that several handlers share. */
const char *vm_names_find(const struct vm_names *names, uint64_t pc);

#endif

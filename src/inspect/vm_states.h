/* SPDX-License-Identifier: MIT */
/*
 * vm_states: the states of one VM in a process, as they come and go.
 */
#ifndef LJSPY_VM_STATES_H
#define LJSPY_VM_STATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "luajit-layouts/recognise/recognise.h"
#include "memory/memory.h"
#include "src/linux/proc/maps.h"
#include "unwind/capture/lua_image.h"

enum { VM_STATES_MAX = LUA_IMAGE_GLOBALS_MAX };

/* All zero: none. */
struct vm_states {
	uint64_t *g; /* room for VM_STATES_MAX; NULL until there is one */
	size_t count;
	size_t turn;
	/* Searches of all memory may take long. While they find nothing, more and more are skipped. */
	unsigned skip, skipped;
};

void vm_states_clear(struct vm_states *states);

/* False if there is no room. A known state is not added again. */
bool vm_states_add(struct vm_states *states, uint64_t g);
void vm_states_drop(struct vm_states *states, uint64_t g);

/*
 * Search all private writable memory, of a process only pages that were ever
 * touched; pid is 0 for a core file. The states found replace the known ones.
 */
void vm_states_search(struct vm_states *states, struct memory *memory, const struct vm_code *vm,
		      const struct maps *maps, pid_t pid);

/* Is a repeated search due? Call it once for each occasion. */
bool vm_states_search_is_due(struct vm_states *states);

/* The next state in turn that still exists, or 0. Drops states that are gone. */
uint64_t vm_states_next(struct vm_states *states, struct memory *memory, const struct vm_code *vm);

#endif

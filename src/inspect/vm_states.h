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
	uint64_t *g;	/* room for VM_STATES_MAX; NULL until there is one */
	size_t count;
	size_t turn;
	/* Searches of all memory, which may take long, come ever less often while they find nothing. */
	unsigned skip, skipped;
};

void vm_states_clear(struct vm_states *states);

/* False if there is no room for it. One that is known is added no second time. */
bool vm_states_add(struct vm_states *states, uint64_t g);
void vm_states_drop(struct vm_states *states, uint64_t g);

/*
 * Search all that is private and writable, of a process only what was ever
 * touched; pid is 0 for a core file. What is found takes the place of what was known.
 */
void vm_states_search(struct vm_states *states, struct memory *memory, const struct vm_code *vm,
		      const struct maps *maps, pid_t pid);

/* Is a search due, of those that are made again and again? Called once for each occasion. */
bool vm_states_search_is_due(struct vm_states *states);

/* The next one in turn that is there still; 0 if there is none. What has gone is dropped. */
uint64_t vm_states_next(struct vm_states *states, struct memory *memory, const struct vm_code *vm);

#endif

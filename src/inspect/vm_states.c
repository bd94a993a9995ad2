/* SPDX-License-Identifier: MIT */
#include "src/inspect/vm_states.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/linux/proc/resident.h"

enum { SKIP_MAX = 16 };

void vm_states_clear(struct vm_states *states)
{
	free(states->g);
	*states = (struct vm_states){ 0 };
}

static bool make_room(struct vm_states *states)
{
	if (!states->g)
		states->g = calloc(VM_STATES_MAX, sizeof(*states->g));
	return states->g && states->count < VM_STATES_MAX;
}

bool vm_states_add(struct vm_states *states, uint64_t g)
{
	for (size_t i = 0; i < states->count; i++)
		if (states->g[i] == g)
			return true;
	if (!make_room(states))
		return false;
	states->g[states->count++] = g;
	return true;
}

void vm_states_drop(struct vm_states *states, uint64_t g)
{
	size_t kept = 0;

	for (size_t i = 0; i < states->count; i++)
		if (states->g[i] != g)
			states->g[kept++] = states->g[i];
	states->count = kept;
}

/* Huge pages and memfds are mapped as deleted files: "/anon_hugepage (deleted)", "/memfd:arena (deleted)". */
static bool may_contain_states(const struct mapping *mapping)
{
	return (mapping->access & MAPPING_WRITE) && !(mapping->access & MAPPING_SHARED) &&
	       (mapping->inode == 0 || mapping->deleted);
}

static void search_range(struct vm_states *states, struct memory *memory, const struct vm_code *vm,
			 uint64_t begin, uint64_t end)
{
	size_t room = VM_STATES_MAX - states->count;
	size_t found = recognise_states(memory, vm, begin, end, states->g + states->count, room);

	states->count += found < room ? found : room;
}

void vm_states_search(struct vm_states *states, struct memory *memory, const struct vm_code *vm,
		      const struct maps *maps, pid_t pid)
{
	int pages;

	states->count = 0;
	if (!make_room(states))
		return;
	pages = pid ? resident_open(pid) : -ENOENT;
	for (size_t i = 0; i < maps_count(maps); i++) {
		const struct mapping *mapping = maps_at(maps, i);
		uint64_t at = mapping->begin, begin, end;

		if (!may_contain_states(mapping))
			continue;
		while (resident_next(pages, &at, mapping->end, &begin, &end))
			search_range(states, memory, vm, begin, end);
	}
	if (pages >= 0)
		close(pages);
}

bool vm_states_search_is_due(struct vm_states *states)
{
	if (states->skipped++ < states->skip)
		return false;
	states->skipped = 0;
	states->skip = states->skip < SKIP_MAX / 2 ? 2 * states->skip + 1 : SKIP_MAX;
	return true;
}

uint64_t vm_states_next(struct vm_states *states, struct memory *memory, const struct vm_code *vm)
{
	while (states->count > 0) {
		uint64_t g = states->g[states->turn++ % states->count];

		if (recognise_finds_state(memory, vm, g))
			return g;
		vm_states_drop(states, g);
	}
	return 0;
}

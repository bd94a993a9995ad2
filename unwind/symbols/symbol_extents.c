/* SPDX-License-Identifier: MIT */
#include "unwind/symbols/symbol_extents.h"

#include <stdlib.h>
#include <string.h>

#include "memory/array.h"

/* The number of extents that begin at or before the address. */
static size_t count_before(const struct symbol_extents *extents, uint64_t address)
{
	size_t low = 0, high = extents->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (extents->known[middle].extent.begin <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct known_extent *symbol_extents_find(const struct symbol_extents *extents, uint64_t address)
{
	size_t before = count_before(extents, address);

	return before && address < extents->known[before - 1].extent.end ? &extents->known[before - 1] : NULL;
}

static bool make_room(struct symbol_extents *extents)
{
	struct known_extent *known = NULL;

	if (extents->count < SYMBOL_EXTENTS_MAX)
		known = array_grow(extents->known, &extents->size, extents->count + 1, sizeof(*known));
	if (!known)
		return false;
	extents->known = known;
	return true;
}

void symbol_extents_add(struct symbol_extents *extents, struct symbol_extent extent, const char *name)
{
	size_t at = count_before(extents, extent.begin);
	struct known_extent known = { .extent = extent };

	if ((at > 0 && extents->known[at - 1].extent.end > extent.begin) ||
	    (at < extents->count && extents->known[at].extent.begin < extent.end) || !make_room(extents))
		return;
	if (name) {
		known.name = strdup(name);
		if (!known.name)
			return;
	}
	memmove(&extents->known[at + 1], &extents->known[at],
		(extents->count - at) * sizeof(*extents->known));
	extents->known[at] = known;
	extents->count++;
}

void symbol_extents_clear(struct symbol_extents *extents)
{
	for (size_t i = 0; i < extents->count; i++)
		free(extents->known[i].name);
	free(extents->known);
	*extents = (struct symbol_extents){ 0 };
}

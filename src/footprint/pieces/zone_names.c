/* SPDX-License-Identifier: MIT */
#include "src/footprint/pieces/zone_names.h"

#include "memory/memory.h"
#include "src/linux/pages/present_memory.h"
#include "unwind/nginx/zones.h"

struct search {
	struct memory *memory;
	uint64_t begin, end; /* of the mapping */
	bool is_found;
	char *name;
};

static enum zones_verdict compare(void *context, size_t index, const struct shm_zone *shm_zone)
{
	struct search *search = context;
	uint64_t bytes = search->end - search->begin;

	(void)index;
	if (shm_zone->address != search->begin || shm_zone->size > bytes ||
	    bytes - shm_zone->size >= memory_page_size())
		return ZONES_GO_ON;
	search->is_found = shm_zone->name_length < SLAB_ZONE_TEXT_MAX &&
			   zones_read_name(search->memory, shm_zone, search->name, SLAB_ZONE_TEXT_MAX);
	return ZONES_END;
}

bool zone_names_find(const struct window *window, uint64_t cycle, uint64_t begin, uint64_t end,
		     char ret_name[static SLAB_ZONE_TEXT_MAX])
{
	struct present_memory present = present_memory(window->memory, window->runs);
	struct search search = { .memory = &present.memory, .begin = begin, .end = end, .name = ret_name };

	return zones_walk(search.memory, cycle, compare, &search) && search.is_found;
}

/* SPDX-License-Identifier: MIT */
#include "src/footprint/pieces/zone_names.h"

#include "src/linux/pages/page_runs.h"

enum {
	CYCLE_WORDS = 128,   /* ngx_cycle_t; it has about 85 */
	PARTS_MAX = 256,     /* of the list */
	ZONES_MAX = 4096,    /* of a part */
	ZONE_BYTES_MIN = 64, /* ngx_shm_zone_t */
	ZONE_BYTES_MAX = 256,
};

/* ngx_list_t behind its first word, last */
struct list {
	uint64_t elements, count, next; /* ngx_list_part_t */
	uint64_t size, allocated, pool;
};

/* The beginning of ngx_shm_zone_t: data, ngx_shm_t */
struct zone {
	uint64_t data, address, size, name_length, name;
};

static bool part_is_sane(uint64_t count)
{
	return count > 0 && count <= ZONES_MAX;
}

static bool read_name(const struct window *window, const struct zone *zone,
		      char ret_name[static SLAB_ZONE_TEXT_MAX])
{
	if (zone->name_length == 0 || zone->name_length >= SLAB_ZONE_TEXT_MAX ||
	    !window_peek(window, zone->name, ret_name, zone->name_length))
		return false;
	ret_name[zone->name_length] = '\0';
	return true;
}

static bool search_list(const struct window *window, const struct list *list, uint64_t begin, uint64_t end,
			char ret_name[static SLAB_ZONE_TEXT_MAX])
{
	uint64_t part[3] = { list->elements, list->count, list->next };

	for (unsigned i = 0; i < PARTS_MAX && part_is_sane(part[1]); i++) {
		for (uint64_t j = 0; j < part[1]; j++) {
			struct zone zone;

			if (!window_peek(window, part[0] + j * list->size, &zone, sizeof(zone)))
				return false;
			if (zone.address == begin && zone.size <= end - begin &&
			    end - begin - zone.size < PAGE_RUNS_PAGE)
				return read_name(window, &zone, ret_name);
		}
		if (part[2] == 0 || !window_peek(window, part[2], part, sizeof(part)))
			return false;
	}
	return false;
}

bool zone_names_find(const struct window *window, uint64_t cycle, uint64_t begin, uint64_t end,
		     char ret_name[static SLAB_ZONE_TEXT_MAX])
{
	uint64_t words[CYCLE_WORDS];
	size_t count = CYCLE_WORDS;
	struct list list;

	/* The page after it may not be mapped. */
	while (count > 0 && !window_peek(window, cycle, words, count * sizeof(words[0])))
		count--;
	for (size_t i = 2; i + 6 < count; i++) {
		list = (struct list){ words[i + 1], words[i + 2], words[i + 3],
				      words[i + 4], words[i + 5], words[i + 6] };
		/* The cycle's second word is its pool, and the list's. */
		if (list.pool == words[1] && list.size >= ZONE_BYTES_MIN && list.size <= ZONE_BYTES_MAX &&
		    search_list(window, &list, begin, end, ret_name))
			return true;
	}
	return false;
}

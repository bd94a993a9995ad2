/* SPDX-License-Identifier: MIT */
/* What nginx has: zones that its processes share, and the pool of its configuration. */
#include "src/footprint/taking.h"

#include "src/footprint/pieces/nginx_pool.h"
#include "src/footprint/pieces/slab_zone.h"
#include "src/footprint/pieces/zone_names.h"
#include "unwind/elf/dynamic_symbol.h"

enum { POOL_IN_CYCLE = 8 };

/* The address of nginx's ngx_cycle_t; 0 if no program exports it. */
static uint64_t find_cycle(const struct taking *taking)
{
	const struct maps *maps = taking->smaps.maps;
	uint64_t place, cycle;

	for (size_t i = 0; i < maps_file_count(maps); i++) {
		const struct mapped_file *file = maps_file_at(maps, i);

		if (file->executable &&
		    dynamic_symbol_find(taking->window.memory, file->base, "ngx_cycle", &place) &&
		    window_peek(&taking->window, place, &cycle, sizeof(cycle)))
			return cycle;
	}
	return 0;
}

static int claim_zone(struct taking *taking, const struct mapping *mapping, uint64_t cycle)
{
	struct heap_piece piece = { .begin = mapping->begin, .end = mapping->end };
	struct slab_zone slab = { .size = mapping->end - mapping->begin };
	bool is_slab = slab_zone_read(&taking->window, mapping->begin, mapping->end, &slab);
	bool is_named = cycle &&
			zone_names_find(&taking->window, cycle, mapping->begin, mapping->end, slab.name);
	struct footprint_zone zone = {
		.name = is_named || *slab.name ? slab.name : NULL,
		.kind = *slab.kind ? slab.kind : NULL,
		.size = slab.size,
		.usable = slab.usable,
		.free = slab.free,
		.knows_free = slab.knows_free,
	};
	int error;

	if (!is_slab && !is_named)
		return 0;
	error = footprint_add_zone(taking->report, &zone);
	return error ? error
		     : taking_claim(taking, &piece, FOOTPRINT_ZONE, FOOTPRINT_ZONE,
				    zone.name ? zone.name : "without a name", 0);
}

static void note_pool(struct taking *taking, uint64_t cycle)
{
	struct footprint_pool *report = &taking->report->pool;
	struct nginx_pool pool;
	uint64_t address;

	report->is_nginx = cycle != 0;
	report->is_known = cycle &&
			   window_peek(&taking->window, cycle + POOL_IN_CYCLE, &address, sizeof(address)) &&
			   nginx_pool_read(&taking->window, address, &pool);
	if (!report->is_known)
		return;
	report->bytes = pool.bytes;
	report->unused = pool.unused;
	report->large = pool.large;
}

int taking_nginx(struct taking *taking)
{
	uint64_t cycle = find_cycle(taking);
	int error = 0;

	note_pool(taking, cycle);
	for (size_t i = 0; i < maps_count(taking->smaps.maps) && !error; i++) {
		const struct mapping *mapping = maps_at(taking->smaps.maps, i);

		if ((mapping->access & MAPPING_SHARED) && (mapping->access & MAPPING_WRITE) &&
		    (mapping->access & MAPPING_READ))
			error = claim_zone(taking, mapping, cycle);
	}
	return error;
}

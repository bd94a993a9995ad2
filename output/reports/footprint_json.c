/* SPDX-License-Identifier: MIT */
/* The memory of processes as JSON. */
#include "output/labels/json_values.h"
#include "output/reports/footprint_report.h"

/* A number of bytes, of which 0 is one. */
static json_t *bytes(uint64_t number)
{
	return json_integer((json_int_t)number);
}

static json_t *bytes_if(bool known, uint64_t number)
{
	return known ? bytes(number) : json_null();
}

static json_t *vm_address(uint64_t g)
{
	return g ? json_value_address(g) : json_null();
}

static json_t *rows_json(const struct footprint *footprint)
{
	json_t *rows = json_array();

	for (size_t i = 0; rows && i < footprint->row_count; i++) {
		const struct footprint_row *row = &footprint->rows[i];

		rows = json_value_append(rows, json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:I}", "kind",
							 footprint_kind_name(row->kind), "name",
							 json_value_text(row->name), "vm", vm_address(row->g),
							 "rss_bytes", bytes(row->rss), "pss_bytes",
							 bytes(row->pss), "size_bytes", bytes(row->size),
							 "count", (json_int_t)row->count));
	}
	return rows;
}

static json_t *vm_json(const struct footprint_vm *vm)
{
	bool is_own = vm->allocator == FOOTPRINT_LJ_ALLOC;
	bool is_told = is_own && vm->segments_untold == 0;
	bool knows_large = is_own && !vm->shares_large;

	return json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "g", json_value_address(vm->g),
			 "file", json_value_text(vm->module), "allocator",
			 footprint_allocator_name(vm->allocator), "gc_total_bytes",
			 bytes_if(vm->knows_total, vm->gc_total), "segments",
			 bytes_if(is_own, vm->segment_count), "segment_bytes",
			 bytes_if(is_own, vm->segment_bytes), "free_bytes", bytes_if(is_told, vm->free_bytes),
			 "large_blocks", bytes_if(knows_large, vm->large_count), "large_bytes",
			 bytes_if(knows_large, vm->large_bytes), "mcode_bytes", bytes(vm->mcode_bytes));
}

static json_t *vms_json(const struct footprint *footprint)
{
	json_t *vms = json_array();

	for (size_t i = 0; vms && i < footprint->vm_count; i++)
		vms = json_value_append(vms, vm_json(&footprint->vms[i]));
	return vms;
}

static json_t *zones_json(const struct footprint *footprint)
{
	json_t *zones = json_array();

	for (size_t i = 0; zones && i < footprint->zone_count; i++) {
		const struct footprint_zone *zone = &footprint->zones[i];

		zones = json_value_append(
			zones, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "name",
					 json_value_text(zone->name), "kind", json_value_text(zone->kind),
					 "size_bytes", bytes(zone->size), "usable_bytes", bytes(zone->usable),
					 "free_bytes", bytes_if(zone->knows_free, zone->free), "used_bytes",
					 bytes_if(zone->knows_free, zone->usable - zone->free)));
	}
	return zones;
}

static json_t *malloc_json(const struct footprint_malloc *malloc)
{
	bool is_told = malloc->arenas > 0 && malloc->pieces_untold == 0;

	return json_pack("{s:o, s:I, s:o, s:o}", "library", json_value_text(malloc->name), "arenas",
			 (json_int_t)malloc->arenas, "arena_bytes", bytes_if(is_told, malloc->arena_bytes),
			 "free_bytes", bytes_if(is_told, malloc->free_bytes));
}

static json_t *pool_json(const struct footprint_pool *pool)
{
	return pool->is_known ? json_pack("{s:o, s:o, s:I}", "bytes", bytes(pool->bytes), "unused_bytes",
					  bytes(pool->unused), "large_blocks", (json_int_t)pool->large)
			      : json_null();
}

json_t *footprint_json(const struct footprint *footprint)
{
	return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:o, s:o, s:o, s:o, s:o}", "pid",
			 (int)footprint->pid, "name", json_value_text(footprint->name), "rss_bytes",
			 bytes(footprint->rss), "pss_bytes", bytes(footprint->pss), "swap_bytes",
			 bytes(footprint->swap), "hugetlb_bytes", bytes(footprint->hugetlb), "looked_bytes",
			 bytes(footprint->looked), "steady", !footprint->changed, "confirmed",
			 !footprint->unconfirmed, "rows", rows_json(footprint), "vms", vms_json(footprint),
			 "malloc", malloc_json(&footprint->malloc), "zones", zones_json(footprint),
			 "nginx_configuration", pool_json(&footprint->pool));
}

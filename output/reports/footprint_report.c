/* SPDX-License-Identifier: MIT */
#include "output/reports/footprint_report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "output/sample/text_copy.h"

static const char *const kind_names[FOOTPRINT_KIND_COUNT] = {
	[FOOTPRINT_LUA_HEAP] = "lua_heap",
	[FOOTPRINT_LUA_FREE] = "lua_free",
	[FOOTPRINT_LUA_LARGE] = "lua_large",
	[FOOTPRINT_MCODE] = "mcode",
	[FOOTPRINT_MALLOC] = "malloc",
	[FOOTPRINT_MALLOC_FREE] = "malloc_free",
	[FOOTPRINT_MALLOC_LARGE] = "malloc_large",
	[FOOTPRINT_ZONE] = "zone",
	[FOOTPRINT_SHARED] = "shared",
	[FOOTPRINT_STACK] = "stack",
	[FOOTPRINT_CODE] = "code",
	[FOOTPRINT_DATA] = "data",
	[FOOTPRINT_FILE] = "file",
	[FOOTPRINT_ANONYMOUS] = "anonymous",
	[FOOTPRINT_KERNEL] = "kernel",
};

const char *footprint_kind_name(enum footprint_kind kind)
{
	return kind_names[kind];
}

const char *footprint_allocator_name(enum footprint_allocator allocator)
{
	static const char *const names[FOOTPRINT_ALLOCATOR_COUNT] = {
		[FOOTPRINT_LJ_ALLOC] = "lj_alloc",
		[FOOTPRINT_LJ_ALLOC_OTHERS] = "lj_alloc of another VM",
		[FOOTPRINT_FOREIGN] = "foreign",
		[FOOTPRINT_ALLOCATOR_UNKNOWN] = "unknown",
	};

	return names[allocator];
}

struct footprint *footprint_new(pid_t pid, const char *name)
{
	struct footprint *footprint = calloc(1, sizeof(*footprint));

	if (!footprint)
		return NULL;
	footprint->pid = pid;
	if (!text_copy(name, &footprint->name)) {
		free(footprint);
		return NULL;
	}
	return footprint;
}

void footprint_reset(struct footprint *footprint)
{
	struct footprint fresh = { .pid = footprint->pid, .name = footprint->name };

	for (size_t i = 0; i < footprint->row_count; i++)
		free(footprint->rows[i].name);
	for (size_t i = 0; i < footprint->vm_count; i++)
		free(footprint->vms[i].module);
	for (size_t i = 0; i < footprint->zone_count; i++) {
		free(footprint->zones[i].name);
		free(footprint->zones[i].kind);
	}
	free(footprint->rows);
	free(footprint->vms);
	free(footprint->zones);
	*footprint = fresh;
}

void footprint_free(struct footprint *footprint)
{
	if (!footprint)
		return;
	footprint_reset(footprint);
	free(footprint->name);
	free(footprint);
}

static bool same_name(const char *one, const char *other)
{
	return one && other ? strcmp(one, other) == 0 : one == other;
}

int footprint_row(struct footprint *footprint, enum footprint_kind kind, const char *name, uint64_t g,
		  size_t *ret_index)
{
	struct footprint_row *moved;
	char *copy = NULL;

	for (size_t i = 0; i < footprint->row_count; i++) {
		const struct footprint_row *row = &footprint->rows[i];

		if (row->kind == kind && row->g == g && same_name(row->name, name)) {
			*ret_index = i;
			return 0;
		}
	}
	moved = array_grow(footprint->rows, &footprint->row_room, footprint->row_count + 1, sizeof(*moved));
	if (moved)
		footprint->rows = moved;
	if (name)
		copy = strdup(name);
	if (!moved || (name && !copy)) {
		free(copy);
		return -ENOMEM;
	}
	*ret_index = footprint->row_count++;
	moved[*ret_index] = (struct footprint_row){ .kind = kind, .name = copy, .g = g };
	return 0;
}

int footprint_add_vm(struct footprint *footprint, const struct footprint_vm *vm)
{
	struct footprint_vm *moved = array_grow(footprint->vms, &footprint->vm_room, footprint->vm_count + 1,
						sizeof(*moved));
	char *module = strdup(vm->module);

	if (moved)
		footprint->vms = moved;
	if (!moved || !module) {
		free(module);
		return -ENOMEM;
	}
	moved[footprint->vm_count] = *vm;
	moved[footprint->vm_count++].module = module;
	return 0;
}

int footprint_add_zone(struct footprint *footprint, const struct footprint_zone *zone)
{
	struct footprint_zone *moved = array_grow(footprint->zones, &footprint->zone_room,
						  footprint->zone_count + 1, sizeof(*moved));
	char *name = zone->name ? strdup(zone->name) : NULL, *kind = zone->kind ? strdup(zone->kind) : NULL;

	if (moved)
		footprint->zones = moved;
	if (!moved || (zone->name && !name) || (zone->kind && !kind)) {
		free(name);
		free(kind);
		return -ENOMEM;
	}
	moved[footprint->zone_count] = *zone;
	moved[footprint->zone_count].name = name;
	moved[footprint->zone_count++].kind = kind;
	return 0;
}

static int compare_rows(const void *a, const void *b)
{
	const struct footprint_row *x = a, *y = b;

	if (x->kind != y->kind)
		return (x->kind > y->kind) - (x->kind < y->kind);
	if (x->rss != y->rss)
		return (x->rss < y->rss) - (x->rss > y->rss);
	return strcmp(x->name ? x->name : "", y->name ? y->name : "");
}

void footprint_sort(struct footprint *footprint)
{
	size_t kept = 0;

	for (size_t i = 0; i < footprint->row_count; i++) {
		if (footprint->rows[i].rss || footprint->rows[i].pss)
			footprint->rows[kept++] = footprint->rows[i];
		else
			free(footprint->rows[i].name);
	}
	footprint->row_count = kept;
	if (kept)
		qsort(footprint->rows, kept, sizeof(*footprint->rows), compare_rows);
}

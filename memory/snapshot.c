#include "memory/snapshot.h"

#include <stdlib.h>
#include <string.h>

/* One captured piece; its bytes are at arena + offset. */
struct region {
	uint64_t address;
	size_t length;
	size_t offset;
};

struct snapshot {
	struct memory memory;	/* must be first: the interface handed out */
	struct memory *live;
	uint8_t *arena;
	size_t used, size;
	struct region *regions;	/* sorted by address once looked up */
	size_t region_count, region_size;
	uint64_t longest;	/* length of the longest region */
	bool sorted;
	bool sealed;
};

static bool grow(void **array, size_t *size, size_t wanted, size_t item)
{
	size_t larger = *size ? *size : 64;
	void *moved;

	if (wanted <= *size)
		return true;
	while (larger < wanted)
		larger *= 2;
	moved = realloc(*array, larger * item);
	if (!moved)
		return false;
	*array = moved;
	*size = larger;
	return true;
}

static int compare_regions(const void *a, const void *b)
{
	const struct region *left = a, *right = b;

	if (left->address != right->address)
		return left->address < right->address ? -1 : 1;
	return (left->length < right->length) - (left->length > right->length);
}

static void sort_regions(struct snapshot *snapshot)
{
	if (!snapshot->sorted && snapshot->region_count)
		qsort(snapshot->regions, snapshot->region_count,
		      sizeof(*snapshot->regions), compare_regions);
	snapshot->sorted = true;
}

/*
 * The captured region that holds all of [address, address + length). Regions
 * may overlap, so those that start before the address are tried as long as
 * the longest one could still reach it.
 */
static const struct region *find(struct snapshot *snapshot, uint64_t address, size_t length)
{
	size_t low = 0, high = snapshot->region_count;

	sort_regions(snapshot);
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (snapshot->regions[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	while (low-- > 0) {
		const struct region *region = &snapshot->regions[low];

		if (address - region->address >= snapshot->longest)
			return NULL;
		if (address - region->address <= region->length &&
		    length <= region->length - (address - region->address))
			return region;
	}
	return NULL;
}

void snapshot_capture(struct snapshot *snapshot, struct memory_range *ranges, size_t count)
{
	size_t total = snapshot->used, offset;

	for (size_t i = 0; i < count; i++) {
		if (ranges[i].length > SNAPSHOT_BYTES_MAX ||
		    total + ranges[i].length > SNAPSHOT_BYTES_MAX)
			ranges[i].length = 0;
		total += ranges[i].length;
	}
	/* Something to point into, even if nothing is captured. */
	if (!grow((void **)&snapshot->arena, &snapshot->size, total ? total : 1, 1) ||
	    !grow((void **)&snapshot->regions, &snapshot->region_size,
		  snapshot->region_count + count, sizeof(*snapshot->regions))) {
		for (size_t i = 0; i < count; i++)
			ranges[i].status = MEMORY_NOT_CAPTURED;
		return;
	}

	offset = snapshot->used;
	for (size_t i = 0; i < count; i++) {
		ranges[i].copy = snapshot->arena + offset;
		offset += ranges[i].length;
	}
	memory_read_ranges(snapshot->live, ranges, count);

	for (size_t i = 0; i < count; i++) {
		if (ranges[i].length == 0) {
			ranges[i].status = MEMORY_NOT_CAPTURED;
			continue;
		}
		if (ranges[i].status != MEMORY_OK)
			continue;
		snapshot->regions[snapshot->region_count++] = (struct region){
			.address = ranges[i].address,
			.length = ranges[i].length,
			.offset = (size_t)((uint8_t *)ranges[i].copy - snapshot->arena),
		};
		if (ranges[i].length > snapshot->longest)
			snapshot->longest = ranges[i].length;
		snapshot->sorted = false;
	}
	snapshot->used = total;
}

/* Every region that holds some of it: regions may overlap. What none holds is no part of the copy. */
void snapshot_overlay(struct snapshot *snapshot, uint64_t address, const void *bytes, size_t length)
{
	for (size_t i = 0; i < snapshot->region_count; i++) {
		const struct region *region = &snapshot->regions[i];
		uint64_t begin = address > region->address ? address : region->address;
		uint64_t end = region->address + region->length;

		if (end > address + length)
			end = address + length;
		if (begin < end)
			memcpy(snapshot->arena + region->offset + (begin - region->address),
			       (const uint8_t *)bytes + (begin - address), (size_t)(end - begin));
	}
}

static void read_one(struct snapshot *snapshot, struct memory_range *range)
{
	const struct region *region;

	if (range->length == 0) {
		range->status = MEMORY_OK;
		return;
	}
	region = find(snapshot, range->address, range->length);
	if (!region && !snapshot->sealed) {
		struct memory_range wanted = *range;

		snapshot_capture(snapshot, &wanted, 1);
		if (wanted.status != MEMORY_OK) {
			range->status = wanted.status;
			return;
		}
		region = find(snapshot, range->address, range->length);
	}
	if (!region) {
		range->status = MEMORY_NOT_CAPTURED;
		return;
	}
	memcpy(range->copy,
	       snapshot->arena + region->offset + (range->address - region->address),
	       range->length);
	range->status = MEMORY_OK;
}

static void snapshot_read_ranges(struct memory *memory, struct memory_range *ranges, size_t count)
{
	struct snapshot *snapshot = (struct snapshot *)memory;

	for (size_t i = 0; i < count; i++)
		read_one(snapshot, &ranges[i]);
}

struct snapshot *snapshot_new(struct memory *live)
{
	struct snapshot *snapshot = calloc(1, sizeof(*snapshot));

	if (!snapshot)
		return NULL;
	snapshot->memory.read_ranges = snapshot_read_ranges;
	snapshot->live = live;
	return snapshot;
}

void snapshot_free(struct snapshot *snapshot)
{
	if (!snapshot)
		return;
	free(snapshot->arena);
	free(snapshot->regions);
	free(snapshot);
}

void snapshot_clear(struct snapshot *snapshot)
{
	snapshot->used = 0;
	snapshot->region_count = 0;
	snapshot->longest = 0;
	snapshot->sorted = true;
	snapshot->sealed = false;
}

void snapshot_seal(struct snapshot *snapshot)
{
	snapshot->sealed = true;
}

const void *snapshot_view(struct snapshot *snapshot, uint64_t address, size_t length)
{
	const struct region *region = find(snapshot, address, length);

	return region ? snapshot->arena + region->offset + (address - region->address) : NULL;
}

struct memory *snapshot_memory(struct snapshot *snapshot)
{
	return &snapshot->memory;
}

/* SPDX-License-Identifier: MIT */
#include "unwind/nginx/zones.h"

#include <string.h>

enum {
	WORD = 8,
	CYCLE_WORDS = 128,    /* ngx_cycle_t; it has about 85 */
	CYCLE_WORDS_MIN = 32, /* the same, read piece by piece where the page after it is not mapped */
	PARTS_MAX = 64,       /* of the list */
	SHM_ZONE_BYTES_MIN = 64,
	SHM_ZONE_BYTES_MAX = 256,
	POOL_WORDS = 64,  /* where to search for the pool's mutex */
	MUTEX_BYTES = 64, /* at most: lock, wait, semaphore, sem_t, spin */
	ZONE_SIZE_MIN = 4096,
	PID_MAX = 1 << 22, /* PID_MAX_LIMIT of Linux */
};

/* ngx_list_t behind its first word, last */
struct list {
	uint64_t elements, count, next; /* ngx_list_part_t */
	uint64_t size, allocated, pool;
};

/* The beginning of ngx_shm_zone_t: data, ngx_shm_t */
struct shm_zone {
	uint64_t data, address, size, name_length, name;
};

/* The pool's mutex refers to its lock word, the first of the zone's memory, and the word after it. */
static bool find_mutex(struct memory *memory, uint64_t begin, uint64_t *ret_mutex)
{
	uint64_t words[POOL_WORDS];

	if (memory_read(memory, begin, words, sizeof(words)) != MEMORY_OK)
		return false;
	/* Without a semaphore there is no count of those who wait, and one word less. */
	for (size_t i = 1; i < POOL_WORDS; i++)
		if (words[i] == begin) {
			*ret_mutex = begin + i * WORD;
			return true;
		}
	return false;
}

static void read_name(struct memory *memory, const struct shm_zone *shm_zone, struct zone *zone)
{
	size_t length = shm_zone->name_length < ZONE_NAME_BYTES ? (size_t)shm_zone->name_length
								: ZONE_NAME_BYTES - 1;

	if (memory_read(memory, shm_zone->name, zone->name, length) != MEMORY_OK)
		length = 0;
	zone->name[length] = '\0';
}

static bool read_zone(struct memory *memory, uint64_t address, struct zone *ret_zone)
{
	struct shm_zone shm_zone;
	struct zone zone = { .begin = 0 };

	if (memory_read(memory, address, &shm_zone, sizeof(shm_zone)) != MEMORY_OK || shm_zone.address == 0 ||
	    shm_zone.address % WORD || shm_zone.size < ZONE_SIZE_MIN || shm_zone.name_length == 0 ||
	    !find_mutex(memory, shm_zone.address, &zone.mutex))
		return false;
	zone.begin = shm_zone.address;
	zone.size = shm_zone.size;
	read_name(memory, &shm_zone, &zone);
	*ret_zone = zone;
	return zone.name[0] != '\0';
}

/* Add the zones of a list. False if it holds anything else. */
static bool read_list(struct memory *memory, const struct list *list, struct zones *zones)
{
	uint64_t part[3] = { list->elements, list->count, list->next };

	zones->count = 0;
	for (unsigned i = 0; i < PARTS_MAX; i++) {
		if (part[1] > list->allocated)
			return false;
		for (uint64_t j = 0; j < part[1] && zones->count < ZONES_MAX; j++)
			if (read_zone(memory, part[0] + j * list->size, &zones->list[zones->count]))
				zones->count++;
			else
				return false;
		if (part[2] == 0)
			return zones->count > 0;
		if (memory_read(memory, part[2], part, sizeof(part)) != MEMORY_OK)
			return false;
	}
	return false;
}

static size_t read_cycle(struct memory *memory, uint64_t cycle, uint64_t words[static CYCLE_WORDS])
{
	size_t count = CYCLE_WORDS;

	while (count >= CYCLE_WORDS_MIN &&
	       memory_read(memory, cycle, words, count * sizeof(words[0])) != MEMORY_OK)
		count--;
	return count >= CYCLE_WORDS_MIN ? count : 0;
}

bool zones_find(struct memory *memory, uint64_t cycle, struct zones *ret_zones)
{
	uint64_t address, words[CYCLE_WORDS];
	size_t count;

	if (cycle == 0 || !memory_u64(memory, cycle, &address))
		return false;
	count = read_cycle(memory, address, words);
	for (size_t i = 2; i + 6 < count; i++) {
		const struct list list = { words[i + 1], words[i + 2], words[i + 3],
					   words[i + 4], words[i + 5], words[i + 6] };

		/* The cycle's second word is its pool, and the list's. */
		if (list.pool == words[1] && list.size >= SHM_ZONE_BYTES_MIN &&
		    list.size <= SHM_ZONE_BYTES_MAX && read_list(memory, &list, ret_zones))
			return true;
	}
	ret_zones->count = 0;
	return false;
}

const struct zone *zones_at(struct memory *memory, const struct zones *zones, uint64_t address)
{
	struct shm_zone shm_zone;

	if (memory_read(memory, address, &shm_zone, sizeof(shm_zone)) != MEMORY_OK)
		return NULL;
	for (size_t i = 0; i < zones->count; i++)
		if (zones->list[i].begin == shm_zone.address && zones->list[i].size == shm_zone.size)
			return &zones->list[i];
	return NULL;
}

const struct zone *zones_of_mutex(const struct zones *zones, uint64_t address)
{
	for (size_t i = 0; i < zones->count; i++)
		if (address - zones->list[i].mutex < MUTEX_BYTES)
			return &zones->list[i];
	return NULL;
}

void zones_read_holders(struct memory *memory, const struct zones *zones,
			uint64_t ret_holders[static ZONES_MAX])
{
	struct memory_range ranges[ZONES_MAX];

	for (size_t i = 0; i < zones->count; i++)
		ranges[i] = (struct memory_range){ .address = zones->list[i].begin,
						   .copy = &ret_holders[i],
						   .length = WORD };
	memory_read_ranges(memory, ranges, zones->count);
	for (size_t i = 0; i < zones->count; i++)
		if (ranges[i].status != MEMORY_OK)
			ret_holders[i] = 0;
}

bool zones_read_holder(struct memory *memory, uint64_t begin, pid_t *ret_holder)
{
	uint64_t word;

	if (!memory_u64(memory, begin, &word) || word > PID_MAX)
		return false;
	*ret_holder = (pid_t)word;
	return true;
}

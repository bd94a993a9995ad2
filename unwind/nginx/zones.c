/* SPDX-License-Identifier: MIT */
#include "unwind/nginx/zones.h"

#include <string.h>

enum {
	WORD = 8,
	CYCLE_WORDS = 128,    /* ngx_cycle_t; it has about 85 */
	CYCLE_WORDS_MIN = 32, /* the same, read piece by piece where the page after it is not mapped */
	PARTS_MAX = 256,      /* of the list */
	ZONES_WALKED_MAX = 4096,
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

/*---- The list ----*/

struct walk {
	struct memory *memory;
	zones_visit *visit;
	void *context;
	size_t count; /* of zones so far */
};

static bool is_entry(const struct shm_zone *shm_zone)
{
	return shm_zone->address != 0 && shm_zone->address % WORD == 0 && shm_zone->size >= ZONE_SIZE_MIN &&
	       shm_zone->name_length != 0;
}

static enum zones_verdict visit_part(struct walk *walk, uint64_t elements, uint64_t count, uint64_t stride)
{
	for (uint64_t i = 0; i < count; i++) {
		struct shm_zone shm_zone;
		enum zones_verdict verdict;

		if (walk->count == ZONES_WALKED_MAX ||
		    memory_read(walk->memory, elements + i * stride, &shm_zone, sizeof(shm_zone)) !=
			    MEMORY_OK ||
		    !is_entry(&shm_zone))
			return ZONES_OTHER;
		verdict = walk->visit(walk->context, walk->count++, &shm_zone);
		if (verdict != ZONES_GO_ON)
			return verdict;
	}
	return ZONES_GO_ON;
}

static bool walk_list(struct walk *walk, const struct list *list)
{
	uint64_t part[3] = { list->elements, list->count, list->next };

	walk->count = 0;
	for (unsigned i = 0; i < PARTS_MAX && part[1] <= list->allocated; i++) {
		enum zones_verdict verdict = visit_part(walk, part[0], part[1], list->size);

		if (verdict != ZONES_GO_ON)
			return verdict == ZONES_END;
		if (part[2] == 0)
			return walk->count > 0;
		if (memory_read(walk->memory, part[2], part, sizeof(part)) != MEMORY_OK)
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

bool zones_walk(struct memory *memory, uint64_t cycle, zones_visit *visit, void *context)
{
	struct walk walk = { .memory = memory, .visit = visit, .context = context };
	uint64_t words[CYCLE_WORDS];
	size_t count = read_cycle(memory, cycle, words);

	for (size_t i = 2; i + 6 < count; i++) {
		const struct list list = { words[i + 1], words[i + 2], words[i + 3],
					   words[i + 4], words[i + 5], words[i + 6] };

		/* The cycle's second word is its pool, and the list's. */
		if (list.pool == words[1] && list.size >= SHM_ZONE_BYTES_MIN &&
		    list.size <= SHM_ZONE_BYTES_MAX && walk_list(&walk, &list))
			return true;
	}
	return false;
}

bool zones_read_name(struct memory *memory, const struct shm_zone *shm_zone, char *ret_name, size_t room)
{
	size_t length = shm_zone->name_length < room ? (size_t)shm_zone->name_length : room - 1;

	if (memory_read(memory, shm_zone->name, ret_name, length) != MEMORY_OK)
		return false;
	ret_name[length] = '\0';
	return true;
}

/*---- Zones ----*/

struct search {
	struct memory *memory;
	struct zones *zones;
};

static enum zones_verdict note_zone(void *context, size_t index, const struct shm_zone *shm_zone)
{
	const struct search *search = context;
	struct zone *zone;

	if (index >= ZONES_MAX)
		return ZONES_GO_ON;
	zone = &search->zones->list[index];
	*zone = (struct zone){ .begin = shm_zone->address, .size = shm_zone->size };
	search->zones->count = index;
	if (!find_mutex(search->memory, zone->begin, &zone->mutex) ||
	    !zones_read_name(search->memory, shm_zone, zone->name, sizeof(zone->name)) || !zone->name[0])
		return ZONES_OTHER;
	search->zones->count = index + 1;
	return ZONES_GO_ON;
}

bool zones_find(struct memory *memory, uint64_t cycle, struct zones *ret_zones)
{
	struct search search = { memory, ret_zones };
	uint64_t address;

	ret_zones->count = 0;
	if (cycle != 0 && memory_u64(memory, cycle, &address) &&
	    zones_walk(memory, address, note_zone, &search))
		return true;
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

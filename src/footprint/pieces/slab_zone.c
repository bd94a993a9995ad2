/* SPDX-License-Identifier: MIT */
#include "src/footprint/pieces/slab_zone.h"

#include <string.h>

#include "memory/memory.h"

enum {
	WORD = 8,
	PAGE_RECORD = 24,    /* ngx_slab_page_t: slab, next, prev */
	MIN_SHIFT = 3,       /* every release: ngx_init_zone_pool() */
	TAIL_WORDS_MAX = 16, /* from end to log_ctx: the mutex, at most 8 words with a semaphore */
	TRIES = 4,           /* the program may change what is being read */
};

static const char name_prefix[] = " in ";

/* Which fields ngx_slab_pool_t has, newest first: last 1.7.2, stats 1.11.7, pfree 1.11.7. */
static const struct {
	bool has_last, has_stats, has_pfree;
} shapes[] = {
	{ true, true, true },
	{ true, true, false },
	{ true, false, false },
	{ false, false, false },
};

enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]), LOCKS = 2 };

struct pool {
	uint64_t begin, end; /* of the mapping */
	uint64_t min_size, min_shift, pages, last, free, start, pool_end, pfree;
	uint64_t free_list; /* address of the list's head */
	uint64_t tail;      /* address behind end */
	bool has_pfree;
};

/* Read words one after the other. */
struct cursor {
	struct window *window;
	uint64_t at;
	bool failed;
};

static uint64_t take(struct cursor *cursor)
{
	uint64_t word = 0;

	cursor->failed |= !window_word(cursor->window, cursor->at, &word);
	cursor->at += WORD;
	return word;
}

/* lock_words: with a semaphore, ngx_shmtx_sh_t counts who waits, too. */
static bool read_pool(struct window *window, size_t shape, unsigned lock_words, struct pool *pool)
{
	struct cursor cursor = { window, pool->begin + lock_words * WORD, false };

	pool->min_size = take(&cursor);
	pool->min_shift = take(&cursor);
	pool->pages = take(&cursor);
	pool->last = shapes[shape].has_last ? take(&cursor) : 0;
	pool->free_list = cursor.at;
	take(&cursor); /* free.slab */
	pool->free = take(&cursor);
	take(&cursor); /* free.prev */
	if (shapes[shape].has_stats)
		take(&cursor);
	pool->has_pfree = shapes[shape].has_pfree;
	pool->pfree = pool->has_pfree ? take(&cursor) : 0;
	pool->start = take(&cursor);
	pool->pool_end = take(&cursor);
	pool->tail = cursor.at;
	return !cursor.failed;
}

static bool is_inside(const struct pool *pool, uint64_t address)
{
	return address >= pool->begin && address < pool->end;
}

/* How many pages the zone has for data; 0 if the pool does not agree with itself. */
static uint64_t count_pages(const struct pool *pool)
{
	uint64_t pages;

	if (pool->min_shift != MIN_SHIFT || pool->min_size != 1u << MIN_SHIFT ||
	    pool->pool_end <= pool->begin || pool->pool_end > pool->end ||
	    pool->end - pool->pool_end >= memory_page_size() || !is_inside(pool, pool->pages) ||
	    pool->start % memory_page_size() || pool->start <= pool->pages || pool->start >= pool->pool_end)
		return 0;
	pages = (pool->pool_end - pool->start) / memory_page_size();
	if (pool->last) {
		if (pool->last <= pool->pages || pool->last > pool->start ||
		    (pool->last - pool->pages) % PAGE_RECORD ||
		    (pool->last - pool->pages) / PAGE_RECORD > pages)
			return 0;
		pages = (pool->last - pool->pages) / PAGE_RECORD;
	}
	return pages;
}

enum free_list { FREE_LIST_RIGHT, FREE_LIST_WRONG, FREE_LIST_ABSENT };

/*
 * Add up the list of free pages. It is wrong while it changes. It is absent where the
 * process has never touched it: nginx's other processes may have.
 */
static enum free_list count_free(struct window *window, const struct pool *pool, uint64_t pages,
				 uint64_t *ret_free)
{
	uint64_t at = pool->free, free = 0;

	while (at != pool->free_list) {
		uint64_t slab, next;

		if (at < pool->pages || at >= pool->start || (at - pool->pages) % PAGE_RECORD)
			return FREE_LIST_WRONG;
		if (!window_word(window, at, &slab) || !window_word(window, at + WORD, &next))
			return FREE_LIST_ABSENT;
		if (slab == 0 || slab > pages - free)
			return FREE_LIST_WRONG;
		free += slab;
		at = next;
	}
	*ret_free = free;
	return FREE_LIST_RIGHT;
}

/* " in lua_shared_dict zone \"dogs\"" */
static bool take_name(const char *text, struct slab_zone *zone)
{
	const char *kind = text + sizeof(name_prefix) - 1, *quote, *last;

	if (strncmp(text, name_prefix, sizeof(name_prefix) - 1) != 0)
		return false;
	quote = strchr(kind, '"');
	last = strrchr(kind, '"');
	if (!quote || quote == last || quote == kind || quote[-1] != ' ')
		return false;
	memcpy(zone->kind, kind, (size_t)(quote - kind - 1));
	zone->kind[quote - kind - 1] = '\0';
	memcpy(zone->name, quote + 1, (size_t)(last - quote - 1));
	zone->name[last - quote - 1] = '\0';
	return true;
}

/* The name that a word behind the pool's end points to, if any. */
static void find_name(struct window *window, const struct pool *pool, struct slab_zone *zone)
{
	for (unsigned i = 0; i < TAIL_WORDS_MAX; i++) {
		char text[SLAB_ZONE_TEXT_MAX] = "";
		uint64_t word, length;

		if (!window_word(window, pool->tail + i * WORD, &word))
			return;
		if (!is_inside(pool, word))
			continue;
		length = pool->end - word < sizeof(text) - 1 ? pool->end - word : sizeof(text) - 1;
		if (window_peek(window, word, text, length) && take_name(text, zone))
			return;
	}
}

static bool read_shape(struct window *window, size_t shape, unsigned lock_words, struct pool *pool,
		       struct slab_zone *ret_zone)
{
	struct slab_zone zone = { .size = pool->end - pool->begin };

	for (unsigned i = 0; i < TRIES && !zone.knows_free; i++) {
		enum free_list list;
		uint64_t pages, free = 0;

		window_forget(window);
		pages = read_pool(window, shape, lock_words, pool) ? count_pages(pool) : 0;
		if (pages == 0)
			return false;
		list = count_free(window, pool, pages, &free);
		if (list == FREE_LIST_ABSENT && pool->has_pfree)
			free = pool->pfree;
		zone.knows_free = (list == FREE_LIST_RIGHT ||
				   (list == FREE_LIST_ABSENT && pool->has_pfree)) &&
				  free <= pages && (!pool->has_pfree || free == pool->pfree);
		zone.usable = pages * memory_page_size();
		zone.free = zone.knows_free ? free * memory_page_size() : 0;
	}
	find_name(window, pool, &zone);
	*ret_zone = zone;
	return true;
}

bool slab_zone_read(struct window *window, uint64_t begin, uint64_t end, struct slab_zone *ret_zone)
{
	struct pool pool = { .begin = begin, .end = end };

	for (size_t shape = 0; shape < SHAPES; shape++)
		for (unsigned lock_words = 1; lock_words <= LOCKS; lock_words++)
			if (read_shape(window, shape, lock_words, &pool, ret_zone))
				return true;
	return false;
}

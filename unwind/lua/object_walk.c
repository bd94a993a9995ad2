/* SPDX-License-Identifier: MIT */
#include "unwind/lua/object_walk.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/lua/luajit.h"

enum {
	PAGE_SIZE = 4096,
	/* Cached during a slice: as many pages as the heap has twice over, a power of two. */
	PAGES_MIN = 64,
	PAGES_MAX = 1024,
	PAGES_AT_ONCE = 8,
	/* The cost limit of a slice keeps it below a millisecond. */
	SLICE_COST = 8192,             /* each object costs 1 */
	READ_COST = 32,                /* of a read */
	OVERTIME_MAX = 8 * SLICE_COST, /* of a slice that meets only dead objects, or goes round among them */
	FRUITLESS_MAX = 256,           /* slices that got nowhere in that */
	LONG_MAX = 2,                  /* walks that were longer than the list can be */
	RESTARTS_MAX = 1024,           /* a target may run whole GC cycles while ljspy waits for a CPU */
	LINKS = 16,                    /* last links, which must still hold for the walk to continue */
	ANCHORS = 64,                  /* objects to continue from if they do not */
	ANCHOR_EACH = 16,              /* every so many objects, one becomes an anchor */
	OBJECT_BYTES_MIN = 16,         /* no object is smaller */
	OBJECTS_BEYOND = 1 << 20,      /* allowance beyond the heap's size, as the heap may grow meanwhile */
};

/* GCState (lj_obj.h), lj_gc.h */
enum { WHITES = 3 };

struct page {
	uint64_t address; /* 0: none */
	uint8_t *bytes;
	bool readable;
};

struct link {
	uint64_t object, next;
	uint8_t gct;
};

/* The walk's position. */
struct position {
	uint64_t next;                /* the next object to visit */
	struct link links[LINKS];     /* the last links before it, in a ring */
	struct link anchors[ANCHORS]; /* some earlier live objects, in a ring */
	size_t anchor_count;
	uint64_t visited;
	unsigned int restarts;
	uint8_t currentwhite;
	bool ended;
};

struct object_walk {
	struct memory *live;
	const struct global_state *global;
	const struct layout *layout;
	uint8_t gct; /* of the objects to find */
	struct page *pages;
	size_t page_count;
	uint8_t *bytes; /* of all pages */
	uint64_t mainthread, vmthread;
	uint64_t visited_max;
	struct position at, slice; /* now, and at the slice's start */
	unsigned int left;         /* of SLICE_COST */
	unsigned int overtime;     /* cost of this slice beyond that */
	unsigned int fruitless, long_walks;
	bool has_begun, broken;
};

static bool read_global(const struct object_walk *walk, int32_t offset, void *copy, size_t length)
{
	return memory_read(walk->live, walk->global->g + (uint64_t)offset, copy, length) == MEMORY_OK;
}

/* gc.total: the size of the heap. */
static bool read_total(const struct object_walk *walk, uint64_t *ret_total)
{
	*ret_total = 0;
	return read_global(walk, walk->layout->g_gc_total, ret_total, layout_ref_size(walk->layout));
}

static size_t pages_for(uint64_t heap_bytes)
{
	size_t count = PAGES_MIN;

	while (count < PAGES_MAX && count * PAGE_SIZE < 2 * heap_bytes)
		count *= 2;
	return count;
}

struct object_walk *object_walk_new(struct memory *live, const struct global_state *global, uint8_t gct)
{
	struct object_walk *walk = calloc(1, sizeof(*walk));
	uint64_t total;

	if (!walk)
		return NULL;
	walk->live = live;
	walk->global = global;
	walk->layout = &global->vm->layout;
	walk->gct = gct;
	read_total(walk, &total); /* the first slice says what cannot be read */
	walk->page_count = pages_for(total);
	walk->pages = calloc(walk->page_count, sizeof(*walk->pages));
	walk->bytes = malloc(walk->page_count * PAGE_SIZE);
	if (!walk->pages || !walk->bytes) {
		object_walk_free(walk);
		return NULL;
	}
	/*
	 * Use the memory now: while the target is held, it would wait for the kernel to find some, 2 us for
	 * each page.
	 */
	for (size_t i = 0; i < walk->page_count; i++) {
		walk->pages[i].bytes = walk->bytes + i * PAGE_SIZE;
		*walk->pages[i].bytes = 0;
	}
	return walk;
}

void object_walk_free(struct object_walk *walk)
{
	if (!walk)
		return;
	free(walk->pages);
	free(walk->bytes);
	free(walk);
}

/*---- Headers ----*/

static struct page *page_of(struct object_walk *walk, uint64_t address)
{
	return &walk->pages[address / PAGE_SIZE % walk->page_count];
}

static void pay(struct object_walk *walk, unsigned int cost)
{
	unsigned int paid = cost < walk->left ? cost : walk->left;

	walk->left -= paid;
	walk->overtime += cost - paid;
}

/* Read several pages at once: objects created in sequence lie side by side. */
static void read_pages(struct object_walk *walk, uint64_t address)
{
	struct memory_range ranges[PAGES_AT_ONCE];
	uint64_t first = address & ~(uint64_t)(PAGE_SIZE * PAGES_AT_ONCE - 1);

	for (size_t i = 0; i < PAGES_AT_ONCE; i++) {
		struct page *page = page_of(walk, first + i * PAGE_SIZE);

		page->address = first + i * PAGE_SIZE;
		ranges[i] = (struct memory_range){ .address = page->address,
						   .copy = page->bytes,
						   .length = PAGE_SIZE };
	}
	pay(walk, READ_COST);
	memory_read_ranges(walk->live, ranges, PAGES_AT_ONCE);
	for (size_t i = 0; i < PAGES_AT_ONCE; i++)
		page_of(walk, ranges[i].address)->readable = ranges[i].status == MEMORY_OK;
}

struct header {
	uint64_t next;
	uint8_t marked, gct;
};

/* Read bytes of an object. It is aligned to 8 bytes, so its header may cross into another page. */
static bool read_bytes(struct object_walk *walk, uint64_t address, uint8_t *copy, size_t length)
{
	while (length) {
		struct page *page = page_of(walk, address);
		size_t skip = address % PAGE_SIZE, part = PAGE_SIZE - skip;

		if (page->address != address - skip)
			read_pages(walk, address);
		if (!page->readable)
			return false;
		if (part > length)
			part = length;
		memcpy(copy, page->bytes + skip, part);
		copy += part;
		address += part;
		length -= part;
	}
	return true;
}

static bool read_header(struct object_walk *walk, uint64_t object, struct header *ret_header)
{
	const struct layout *layout = walk->layout;
	uint8_t bytes[OBJECT_BYTES_MIN];
	struct header header;

	if (object % SLOT_SIZE || !read_bytes(walk, object, bytes, sizeof(bytes)))
		return false;
	header = (struct header){
		.next = load_bytes(bytes, layout->GChead_nextgc, layout_ref_size(layout)),
		.marked = bytes[layout->GChead_marked],
		.gct = bytes[layout->GChead_gct],
	};
	if (header.gct < GCT_STRING || header.gct > GCT_USERDATA)
		return false;
	*ret_header = header;
	return true;
}

/* It has the previous cycle's white: the sweep will free it (lj_gc.h: isdead). */
static bool is_dead(const struct object_walk *walk, const struct header *header)
{
	return header->marked & (walk->at.currentwhite ^ WHITES) & WHITES;
}

/*---- Slices ----*/

/* gc.currentwhite is the byte just before gc.state (lj_obj.h: GCState). */
static bool read_currentwhite(const struct object_walk *walk, uint8_t *ret_white)
{
	return read_global(walk, walk->layout->g_gc_state - 1, ret_white, sizeof(*ret_white));
}

static bool begin_again(struct object_walk *walk)
{
	const struct layout *layout = walk->layout;
	unsigned int restarts = walk->at.restarts + 1;
	unsigned int ref = layout_ref_size(layout);
	uint64_t total;

	if (restarts > RESTARTS_MAX)
		return false;
	walk->at = (struct position){ .restarts = restarts };
	walk->mainthread = walk->vmthread = 0;
	if (!read_currentwhite(walk, &walk->at.currentwhite) ||
	    !read_global(walk, layout->g_gc_root, &walk->at.next, ref) || !read_total(walk, &total) ||
	    !read_global(walk, layout->g_mainthref, &walk->mainthread, ref))
		return false;
	if (layout->g_vmthref != LAYOUT_ABSENT)
		read_global(walk, layout->g_vmthref, &walk->vmthread, ref);
	walk->visited_max = total / OBJECT_BYTES_MIN + OBJECTS_BEYOND;
	return true;
}

/* Do the last links still lead to the walk's position? */
static bool links_are_good(struct object_walk *walk)
{
	for (size_t i = 0; i < LINKS; i++) {
		const struct link *link = &walk->at.links[i];
		struct header header;

		if (link->object && (!read_header(walk, link->object, &header) || header.next != link->next))
			return false;
	}
	return true;
}

/*
 * The collector has marked the live objects and begun to sweep. An object that it
 * frees has the previous white, and keeps it while its memory is unchanged. So an
 * anchor without that white is still on the list.
 */
static bool go_back_to_anchor(struct object_walk *walk)
{
	for (size_t i = 0; i < ANCHORS && i < walk->at.anchor_count; i++) {
		const struct link *anchor = &walk->at.anchors[(walk->at.anchor_count - 1 - i) % ANCHORS];
		struct header header;

		if (!read_header(walk, anchor->object, &header) || header.gct != anchor->gct ||
		    is_dead(walk, &header))
			continue;
		walk->at.next = header.next;
		memset(walk->at.links, 0, sizeof(walk->at.links));
		return true;
	}
	return false;
}

/* Move to an object that is on the list now. False if there is none. */
static bool find_position(struct object_walk *walk)
{
	uint8_t currentwhite;

	if (!walk->has_begun || !read_currentwhite(walk, &currentwhite))
		return begin_again(walk);
	if (currentwhite == walk->at.currentwhite)
		return links_are_good(walk) || begin_again(walk);
	walk->at.currentwhite = currentwhite;
	return go_back_to_anchor(walk) || begin_again(walk);
}

void object_walk_begin_slice(struct object_walk *walk)
{
	for (size_t i = 0; i < walk->page_count; i++)
		walk->pages[i].address = 0;
	walk->slice = walk->at;
	walk->left = SLICE_COST;
	walk->overtime = 0;
	if (!walk->at.ended)
		walk->broken = !find_position(walk);
	walk->has_begun = true;
}

void object_walk_undo_slice(struct object_walk *walk)
{
	unsigned int restarts = walk->at.restarts;

	walk->at = walk->slice;
	walk->at.restarts = restarts; /* keep the count, or the walk might never end */
}

void object_walk_rest(struct object_walk *walk)
{
	walk->left = 0;
}

/* Go to the next object. False if the link leads nowhere. */
static bool step(struct object_walk *walk, struct header *ret_header)
{
	uint64_t object = walk->at.next;
	struct link link;

	if (walk->at.visited >= walk->visited_max || !read_header(walk, object, ret_header))
		return false;
	link = (struct link){ object, ret_header->next, ret_header->gct };
	if (walk->at.visited % ANCHOR_EACH == 0 && !is_dead(walk, ret_header))
		walk->at.anchors[walk->at.anchor_count++ % ANCHORS] = link;
	walk->at.links[walk->at.visited++ % LINKS] = link;
	walk->at.next = ret_header->next;
	return true;
}

/* May the walk pause here: is this an object that no sweep frees before the next cycle? */
static bool may_rest(struct object_walk *walk)
{
	struct header header;

	return read_header(walk, walk->at.next, &header) && !is_dead(walk, &header);
}

/* Once more from where the slice began. Later there may be less to free on the way; a circle stays one. */
static enum object_walk_step give_slice_up(struct object_walk *walk)
{
	object_walk_undo_slice(walk);
	walk->broken = ++walk->fruitless > FRUITLESS_MAX;
	return walk->broken ? OBJECT_WALK_BROKEN : OBJECT_WALK_PAUSE;
}

/* Where the list leads nowhere, it may have changed meanwhile. False if that has been so too often. */
static bool try_again(struct object_walk *walk)
{
	if (walk->at.visited >= walk->visited_max && ++walk->long_walks > LONG_MAX)
		return false;
	return begin_again(walk);
}

enum object_walk_step object_walk_next(struct object_walk *walk, uint64_t *ret_object)
{
	while (!walk->broken) {
		uint64_t object = walk->at.next;
		struct header header;

		/* The main thread is the oldest object on the list. Only userdata follow it. */
		if (object == 0 || object == walk->mainthread)
			walk->at.ended = true;
		if (walk->at.ended)
			return OBJECT_WALK_END;
		if (walk->left == 0 && may_rest(walk))
			return OBJECT_WALK_PAUSE;
		if (walk->overtime > OVERTIME_MAX)
			return give_slice_up(walk);
		pay(walk, 1);
		if (!step(walk, &header)) {
			walk->broken = !try_again(walk);
			continue;
		}
		if (header.gct == walk->gct && object != walk->vmthread && !is_dead(walk, &header)) {
			*ret_object = object;
			return OBJECT_WALK_FOUND;
		}
	}
	return OBJECT_WALK_BROKEN;
}

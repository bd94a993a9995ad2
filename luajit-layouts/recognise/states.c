/* SPDX-License-Identifier: MIT */
/* Finds the states of a VM in a range of memory by mutual pointers. */
#include "luajit-layouts/recognise/recognise.h"

#include <stdlib.h>
#include <string.h>

enum {
	CHUNK_BYTES = 1 << 20,
	PAGE_BYTES = 4096,
	OBJECT_ALIGNMENT = 8,
	GCT_THREAD = 6,        /* ~LJ_TTHREAD */
	MAIN_THREAD_MAX = 256, /* the main lua_State is 64 to 112 bytes long, and g follows it */
	DISPATCH_SAMPLES = 4,
	GC_WHITES = 3, /* LJ_GC_WHITES */
};

struct search {
	struct memory *memory;
	const struct vm_code *vm;
	uint64_t *found;
	size_t count, max;
};

static uint64_t load_reference(const struct layout *layout, const uint8_t *at)
{
	uint64_t wide;
	uint32_t narrow;

	if (layout->gc64) {
		memcpy(&wide, at, sizeof(wide));
		return wide;
	}
	memcpy(&narrow, at, sizeof(narrow));
	return narrow;
}

static bool read_reference(const struct search *search, uint64_t address, uint64_t *ret)
{
	uint8_t bytes[8];

	if (memory_read(search->memory, address, bytes, layout_ref_size(&search->vm->layout)) != MEMORY_OK)
		return false;
	*ret = load_reference(&search->vm->layout, bytes);
	return true;
}

/*
 * Does g lead back to its main thread, and does its dispatch table (ASMFunction:
 * machine pointers, not references) lead into this VM?
 */
static bool is_state(const struct search *search, uint64_t L, uint64_t g)
{
	const struct vm_code *vm = search->vm;
	uint64_t handlers[DISPATCH_SAMPLES], mainthread;

	if (!read_reference(search, g + (uint64_t)vm->layout.g_mainthref, &mainthread) || mainthread != L ||
	    memory_read(search->memory, g + (uint64_t)vm->layout.GG_dispatch, handlers, sizeof(handlers)) !=
		    MEMORY_OK)
		return false;
	for (size_t i = 0; i < DISPATCH_SAMPLES; i++) {
		if (handlers[i] < vm->begin || handlers[i] >= vm->end)
			return false;
	}
	return true;
}

static void search_chunk(struct search *search, uint64_t address, const uint8_t *chunk, size_t length)
{
	const struct layout *layout = &search->vm->layout;
	const size_t glref = (size_t)layout->L_glref, gct = (size_t)layout->GChead_gct;

	for (size_t at = 0; at + MAIN_THREAD_MAX <= length; at += OBJECT_ALIGNMENT) {
		uint64_t L = address + at, g;

		if (chunk[at + gct] != GCT_THREAD)
			continue;
		g = load_reference(layout, &chunk[at + glref]);
		if (g <= L || g - L > MAIN_THREAD_MAX || g % OBJECT_ALIGNMENT != 0 || !is_state(search, L, g))
			continue;
		if (search->count < search->max)
			search->found[search->count] = g;
		search->count++;
	}
}

/* Search the bytes before the first page that cannot be read. Returns their number. */
static size_t search_readable(struct search *search, uint64_t address, uint8_t *chunk, size_t length)
{
	size_t readable = length;

	if (memory_read(search->memory, address, chunk, length) != MEMORY_OK) {
		for (readable = 0; readable + PAGE_BYTES <= length; readable += PAGE_BYTES) {
			if (memory_read(search->memory, address + readable, chunk + readable, PAGE_BYTES) !=
			    MEMORY_OK)
				break;
		}
	}
	if (readable > 0)
		search_chunk(search, address, chunk, readable);
	return readable;
}

size_t recognise_states(struct memory *memory, const struct vm_code *vm, uint64_t range_begin,
			uint64_t range_end, uint64_t *ret_g, size_t max)
{
	struct search search = { .memory = memory, .vm = vm, .found = ret_g, .max = max };
	uint64_t address = (range_begin + OBJECT_ALIGNMENT - 1) & ~(uint64_t)(OBJECT_ALIGNMENT - 1);
	uint8_t *chunk;

	if (!vm->layout.gc64 && range_end > UINT32_MAX)
		range_end = UINT32_MAX;
	chunk = malloc(CHUNK_BYTES);
	if (chunk == NULL)
		return 0;
	while (address < range_end && range_end - address >= MAIN_THREAD_MAX) {
		size_t length = range_end - address < CHUNK_BYTES ? range_end - address : CHUNK_BYTES;
		size_t searched = search_readable(&search, address, chunk, length);

		/* A thread may straddle two chunks: they overlap by one step less than MAIN_THREAD_MAX. */
		if (searched <= MAIN_THREAD_MAX)
			address += searched + PAGE_BYTES;
		else if (searched == length && length < CHUNK_BYTES)
			break;
		else
			address += searched - (MAIN_THREAD_MAX - OBJECT_ALIGNMENT);
	}
	free(chunk);
	return search.count;
}

/* While LuaJIT closes a state, everything is white (lj_gc.c, lj_gc_freeall()). */
static bool is_closing(struct memory *memory, const struct layout *layout, uint64_t g)
{
	uint8_t currentwhite; /* the byte before gc.state */

	return memory_read(memory, g + (uint64_t)layout->g_gc_state - 1, &currentwhite,
			   sizeof(currentwhite)) != MEMORY_OK ||
	       (currentwhite & GC_WHITES) == GC_WHITES;
}

bool recognise_finds_state(struct memory *memory, const struct vm_code *vm, uint64_t g)
{
	const struct search search = { .memory = memory, .vm = vm };
	const struct layout *layout = &vm->layout;
	uint64_t L, back;
	uint8_t gct;

	return read_reference(&search, g + (uint64_t)layout->g_mainthref, &L) &&
	       memory_read(memory, L + (uint64_t)layout->GChead_gct, &gct, sizeof(gct)) == MEMORY_OK &&
	       gct == GCT_THREAD && read_reference(&search, L + (uint64_t)layout->L_glref, &back) &&
	       back == g && is_state(&search, L, g);
}

bool recognise_is_state(struct memory *memory, const struct vm_code *vm, uint64_t g)
{
	return recognise_finds_state(memory, vm, g) && !is_closing(memory, &vm->layout, g);
}

/* SPDX-License-Identifier: MIT */
/* What LuaJIT has: the segments of its allocator, and machine code. */
#include "src/footprint/taking.h"

#include <errno.h>

#include "luajit-layouts/field.h"
#include "src/footprint/pieces/lj_alloc.h"

enum {
	MCODE_AREAS_MAX = 1 << 14,
	ALLOCD_BEFORE_GC = 8, /* g.allocd precedes g.gc, which begins with gc.total, in every release */
};

/* Areas are chained by their first words: MCLink of lj_jit.h, next and size. */
static int claim_mcode(struct taking *taking, const struct global_state *global, struct footprint_vm *vm)
{
	const struct layout *layout = &global->vm->layout;
	struct memory *memory = taking->window.memory;
	uint64_t area = 0, link[2];
	int error = 0;

	if (!layout->has_jit ||
	    !memory_u64(memory, global->g + (uint64_t)layout->GG_J + (uint64_t)layout->J_mcarea, &area))
		return 0;
	for (unsigned i = 0; i < MCODE_AREAS_MAX && area && !error; i++) {
		struct heap_piece piece = { .begin = area };

		if (area % PAGE_RUNS_PAGE || !window_peek(&taking->window, area, link, sizeof(link)) ||
		    link[1] % PAGE_RUNS_PAGE || link[1] == 0 || link[1] > UINT64_MAX - area)
			break;
		piece.end = area + link[1];
		error = taking_claim(taking, &piece, FOOTPRINT_MCODE, FOOTPRINT_MCODE, NULL, global->g);
		vm->mcode_bytes += link[1];
		area = link[0];
	}
	return error;
}

static bool is_claimed(const struct taking *taking, uint64_t address)
{
	size_t at = claims_from(&taking->claims, address);

	return at < taking->claims.count && taking->claims.list[at].begin <= address;
}

static int claim_segments(struct taking *taking, const struct lj_alloc *alloc, struct footprint_vm *vm)
{
	int error = 0;

	vm->allocator = FOOTPRINT_LJ_ALLOC;
	vm->segment_count = alloc->count;
	taking->lua_allocators++;
	for (size_t i = 0; i < alloc->count && !error; i++) {
		const struct heap_piece *segment = &alloc->segments[i];

		error = taking_claim(taking, segment, FOOTPRINT_LUA_HEAP, FOOTPRINT_LUA_FREE, NULL, vm->g);
		vm->segment_bytes += segment->end - segment->begin;
		vm->free_bytes += segment->free;
		vm->segments_untold += !segment->is_told;
	}
	return error;
}

static int claim_heap(struct taking *taking, uint64_t allocd, struct footprint_vm *vm)
{
	struct lj_alloc alloc;
	int error = 0;

	switch (lj_alloc_read(&taking->window, allocd, &alloc)) {
	case LJ_ALLOC_OK:
		if (is_claimed(taking, allocd))
			vm->allocator = FOOTPRINT_LJ_ALLOC_OTHERS;
		else
			error = claim_segments(taking, &alloc, vm);
		lj_alloc_clear(&alloc);
		return error;
	case LJ_ALLOC_NONE: vm->allocator = FOOTPRINT_FOREIGN; return 0;
	case LJ_ALLOC_UNSTEADY:
		taking->unsteady = true;
		taking->lua_allocators++; /* it has large blocks, too */
		return 0;
	case LJ_ALLOC_NO_MEMORY: break;
	}
	return -ENOMEM;
}

int taking_lua(struct taking *taking)
{
	struct memory *memory = taking->window.memory;
	int error = 0;

	for (size_t i = 0; i < lua_process_global_count(taking->process) && !error; i++) {
		const struct global_state *global = lua_process_global(taking->process, i);
		const struct layout *layout = &global->vm->layout;
		uint64_t gc = global->g + (uint64_t)layout->g_gc_total, allocd;
		char *module = (char *)(uintptr_t)lua_process_global_path(taking->process, i);
		struct footprint_vm vm = { .g = global->g,
					   .module = module,
					   .allocator = FOOTPRINT_ALLOCATOR_UNKNOWN };

		vm.knows_total = field_read(memory, gc, layout_ref_size(layout), &vm.gc_total);
		if (memory_u64(memory, gc - ALLOCD_BEFORE_GC, &allocd))
			error = claim_heap(taking, allocd, &vm);
		if (!error)
			error = claim_mcode(taking, global, &vm);
		if (!error)
			error = footprint_add_vm(taking->report, &vm);
	}
	return error;
}

/* SPDX-License-Identifier: MIT */
#include "unwind/names/namer_parts.h"

#include <stdlib.h>

#include "memory/page_cache.h"

enum {
	VM_NAMES_TRIES = 256,
	LIBRARIES_MAX = 64, /* enough for all shared names; there may be thousands of states */
};

static void free_library(struct library *library)
{
	builtins_clear(&library->builtins);
	vm_names_clear(&library->vm_names);
	free(library);
}

static void forget_library(struct namer *namer, struct library *library)
{
	HASH_DEL(namer->libraries, library);
	free_library(library);
}

void namer_forget_libraries(struct namer *namer)
{
	struct library *library, *next;

	HASH_ITER(hh, namer->libraries, library, next) {
		forget_library(namer, library);
	}
}

static void forget_program(struct namer *namer, struct program *program)
{
	HASH_DEL(namer->programs, program);
	package_path_clear(&program->path);
	free(program);
}

void namer_forget_programs(struct namer *namer)
{
	struct program *program, *next;

	HASH_ITER(hh, namer->programs, program, next) {
		forget_program(namer, program);
	}
}

void namer_add_roots(const struct namer *namer, char *list, size_t size)
{
	for (const struct program *program = namer->programs; program; program = program->hh.next)
		if (program->path.text)
			package_path_add_roots(program->path.text, list, size);
}

/* Read through a page cache: the library is thousands of small objects close together. */
static void read_library(struct namer *namer, const struct global_state *global, struct library *library)
{
	struct page_cache *cache = page_cache_new(namer->live);
	struct memory *memory = cache ? page_cache_memory(cache) : namer->live;

	builtins_collect(memory, &global->vm->layout, global->g, &library->builtins);
	if (!vm_names_collect(memory, global->vm, global->g, &library->builtins, &library->vm_names))
		library->tries_left = VM_NAMES_TRIES;
	page_cache_free(cache);
}

const struct library *namer_library(struct namer *namer, const struct global_state *global)
{
	struct library *library;

	HASH_FIND(hh, namer->libraries, &global->g, sizeof(global->g), library);
	if (library || HASH_COUNT(namer->libraries) >= LIBRARIES_MAX)
		return library;
	library = calloc(1, sizeof(*library));
	if (!library)
		return NULL;
	library->g = global->g;
	library->vm = global->vm;
	read_library(namer, global, library);
	HASH_ADD(hh, namer->libraries, g, sizeof(library->g), library);
	if (!hash_added(&library->hh)) {
		free_library(library);
		return NULL;
	}
	return library;
}

const char *namer_builtin_name(struct namer *namer, const struct global_state *global, uint8_t ffid)
{
	const struct library *library;

	for (library = namer->libraries; library; library = library->hh.next)
		if (library->vm == global->vm && library->builtins.at[ffid].name[0])
			return library->builtins.at[ffid].name;
	library = namer_library(namer, global);
	return library && library->builtins.at[ffid].name[0] ? library->builtins.at[ffid].name : NULL;
}

const char *namer_offered_name(struct namer *namer, const struct global_state *global, uint64_t f)
{
	const struct library *library;

	for (library = namer->libraries; library; library = library->hh.next) {
		const char *name = library->vm == global->vm ? builtins_offered(&library->builtins, f) : NULL;

		if (name)
			return name;
	}
	library = namer_library(namer, global);
	return library ? builtins_offered(&library->builtins, f) : NULL;
}

static bool is_last_of_vm(const struct namer *namer, const struct library *library)
{
	for (const struct library *other = namer->libraries; other; other = other->hh.next)
		if (other != library && other->vm == library->vm)
			return false;
	return true;
}

/*
 * Keep the last library of a VM: its names hold for all of it. Key it by an address that no global_State has.
 */
void namer_forget_global(struct namer *namer, uint64_t g)
{
	struct library *library;
	struct program *program;

	HASH_FIND(hh, namer->programs, &g, sizeof(g), program);
	if (program)
		forget_program(namer, program);
	HASH_FIND(hh, namer->libraries, &g, sizeof(g), library);
	if (!library)
		return;
	if (!is_last_of_vm(namer, library)) {
		forget_library(namer, library);
		return;
	}
	HASH_DEL(namer->libraries, library);
	library->g = library->vm->begin;
	library->tries_left = 0;
	HASH_ADD(hh, namer->libraries, g, sizeof(library->g), library);
	if (!hash_added(&library->hh))
		free_library(library);
}

/* NULL if there are too many, or memory is short. */
static struct program *program_of(struct namer *namer, uint64_t g)
{
	struct program *program;

	HASH_FIND(hh, namer->programs, &g, sizeof(g), program);
	if (program || HASH_COUNT(namer->programs) >= LIBRARIES_MAX)
		return program;
	program = calloc(1, sizeof(*program));
	if (!program)
		return NULL;
	program->g = g;
	HASH_ADD(hh, namer->programs, g, sizeof(program->g), program);
	if (hash_added(&program->hh))
		return program;
	free(program);
	return NULL;
}

uint32_t namer_find_root(struct namer *namer, const struct global_state *global, const char *file)
{
	struct program *program = *file == '@' ? program_of(namer, global->g) : NULL;
	size_t length;

	if (!program)
		return 0;
	if (program->read_for != namer->stacks) {
		package_path_read(namer->live, &global->vm->layout, global->g, &program->path);
		program->read_for = namer->stacks;
	}
	length = program->path.text ? package_path_root(program->path.text, file + 1) : 0;
	return length ? 1 + (uint32_t)length : 0;
}

void namer_complete_vm_names(struct namer *namer)
{
	struct library *library, *next;

	HASH_ITER(hh, namer->libraries, library, next) {
		const struct global_state *global = lua_image_find(namer->lua, library->g);

		if (library->tries_left == 0 || !global)
			continue;
		library->tries_left--;
		if (vm_names_complete(namer->live, global->vm, global->g, &library->builtins,
				      &library->vm_names)) {
			library->tries_left = 0;
			namer_forget_names(namer);
		}
	}
}

const char *namer_find_vm_name(struct namer *namer, const struct vm_code *vm, uint64_t pc)
{
	const struct library *library;

	for (library = namer->libraries; library; library = library->hh.next)
		if (library->vm == vm && library->vm_names.count)
			return vm_names_find(&library->vm_names, pc);
	for (size_t i = 0; i < lua_image_count(namer->lua); i++) {
		const struct global_state *global = lua_image_global(namer->lua, i);

		if (global->vm != vm)
			continue;
		library = namer_library(namer, global);
		if (library && library->vm_names.count)
			return vm_names_find(&library->vm_names, pc);
	}
	return NULL;
}

/* SPDX-License-Identifier: MIT */
#include "src/inspect/lua_process.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "memory/page_cache.h"
#include "src/inspect/core_maps.h"
#include "src/inspect/lua_process_parts.h"
#include "unwind/elf/registers.h"

struct memory *lua_process_memory(struct lua_process *process)
{
	return process->memory;
}

const struct core_file *lua_process_core(const struct lua_process *process)
{
	return process->core;
}

void lua_process_begin_still(struct lua_process *process, enum still still)
{
	struct page_cache **pages = &process->pages[still];

	if (!*pages)
		*pages = page_cache_new(process->memory);
	if (!*pages)
		return;
	if (still == STILL_SAME)
		page_cache_renew(*pages);
	else
		page_cache_forget(*pages);
	process->memory = page_cache_memory(*pages);
}

void lua_process_end_still(struct lua_process *process)
{
	process->memory = process->live ? live_memory_memory(process->live) : core_file_memory(process->core);
}

const struct maps *lua_process_maps(const struct lua_process *process)
{
	return process->maps;
}

int lua_process_refresh_maps(struct lua_process *process, bool *ret_changed)
{
	int error = maps_refresh(process->maps, ret_changed);

	if (!error && *ret_changed)
		live_memory_forget_maps(process->live);
	return error;
}

struct known_files *lua_process_files(const struct lua_process *process)
{
	return process->files;
}

/* Open what processes and core files have in common; process->memory is set. 0 or -ENOMEM. */
static int open_parts(struct lua_process *process, const char *root, struct functions *functions,
		      struct known_files *files, const struct namer_options *options)
{
	if (!files)
		files = process->own_files = known_files_new();
	if (!files)
		return -ENOMEM;
	process->files = files;
	process->options = *options;
	if (process_open_details(process))
		return -ENOMEM;
	process->maps = maps_new(process->pid);
	if (process->live && process->maps)
		live_memory_beware(process->live, process->maps, known_files_memory_errands(files));
	process->objects = lua_objects_new();
	process->image = image_new(process->memory);
	process->snapshot = snapshot_new(process->memory);
	process->decoder = vm_decoder_new();
	if (process->image) {
		image_set_root(process->image, root);
		process->lua = lua_image_new(process->image);
		process->symbols = symbols_new(process->image, process->memory, known_files_symbols(files));
	}
	if (process->symbols && process->lua) {
		process->native = native_unwinder_new(process->image, process->symbols);
		process->namer = namer_new(process->lua, process->memory, process->symbols, functions,
					   options);
	}
	return process->maps && process->objects && process->snapshot && process->decoder &&
			       process->native && process->namer
		       ? 0
		       : -ENOMEM;
}

int lua_process_open(pid_t pid, struct functions *functions, struct known_files *files,
		     const struct namer_options *options, struct lua_process **ret_process)
{
	struct lua_process *process = calloc(1, sizeof(*process));
	char root[IMAGE_ROOT_SIZE];
	int error = -ENOMEM;

	if (!process)
		return -ENOMEM;
	process->pid = pid;
	process->machine = MACHINE_OWN;
	process->live = live_memory_new(pid);
	if (process->live) {
		process->memory = live_memory_memory(process->live);
		snprintf(root, sizeof(root), "/proc/%d/root", pid);
		error = open_parts(process, root, functions, files, options);
	}
	if (error) {
		lua_process_close(process);
		return error;
	}
	*ret_process = process;
	return 0;
}

int lua_process_open_core(struct core_file *core, struct functions *functions,
			  const struct namer_options *options, struct lua_process **ret_process)
{
	struct lua_process *process = calloc(1, sizeof(*process));
	int error;

	if (!process)
		return -ENOMEM;
	process->pid = core_file_pid(core);
	process->machine = core_file_machine(core);
	process->core = core;
	process->memory = core_file_memory(core);
	error = open_parts(process, "", functions, NULL, options);
	if (!error)
		error = core_maps_load(core, process->maps);
	if (error) {
		lua_process_close(process);
		return error;
	}
	*ret_process = process;
	return 0;
}

static void free_luajits(struct luajit_module *luajits)
{
	while (luajits) {
		struct luajit_module *luajit = luajits;

		luajits = luajit->next;
		free(luajit->identity);
		vm_states_clear(&luajit->states);
		free(luajit->path);
		free(luajit);
	}
}

void lua_process_close(struct lua_process *process)
{
	if (!process)
		return;
	merged_stack_clear(&process->stack);
	namer_free(process->namer);
	native_unwinder_free(process->native);
	symbols_free(process->symbols);
	vm_decoder_free(process->decoder);
	lua_objects_free(process->objects);
	snapshot_free(process->snapshot);
	value_capture_free(process->values);
	process_close_details(process);
	lua_image_free(process->lua);
	image_free(process->image);
	maps_free(process->maps);
	for (size_t i = 0; i < STILL_COUNT; i++)
		page_cache_free(process->pages[i]);
	live_memory_free(process->live);
	free(process->places);
	known_files_free(process->own_files);
	free_luajits(process->luajits);
	free_luajits(process->unmapped);
	free(process);
}

void lua_process_give_layout(struct lua_process *process, const struct given_layout *given)
{
	process->given = given;
}

/* -EPERM if reading memory is refused: the kernel may show the mappings even then. */
static int check_access(struct lua_process *process)
{
	for (size_t i = 0; i < maps_file_count(process->maps); i++) {
		const struct mapped_file *file = maps_file_at(process->maps, i);
		char byte;

		if (file->executable)
			return memory_read(lua_process_memory(process), file->base, &byte, sizeof(byte)) ==
					       MEMORY_REFUSED
				       ? -EPERM
				       : 0;
	}
	return 0;
}

/* changed: what is mapped has. 0 or -ENOMEM. */
static int renew_modules(struct lua_process *process, bool changed)
{
	if (changed || !process->has_modules)
		process_find_unpacked(process);
	process->has_new_modules = !process->has_modules || (changed && process_modules_differ(process));
	if (!process->has_new_modules) {
		process_find_late_files(process);
		process->has_new_modules = process_read_unread(process);
		if (process->has_new_modules)
			process_find_unpacked(process); /* it may be another one by now */
	}
	return process->has_new_modules ? process_set_modules(process) : 0;
}

static int refresh(struct lua_process *process, bool thorough)
{
	bool changed = false;
	int error = process->core ? 0 : maps_refresh(process->maps, &changed);

	if (error)
		return error;
	if (changed)
		live_memory_forget_maps(process->live);
	if (!process->has_modules)
		error = check_access(process);
	if (error)
		return error;
	error = renew_modules(process, changed);
	if (error)
		return error;
	process->clues_left = CLUES;
	process->stack_searches_left = STACK_SEARCHES;
	process_drop_closed(process);
	for (struct luajit_module *luajit = process->luajits; luajit; luajit = luajit->next) {
		if (luajit->known.status != RECOGNISE_OK)
			continue;
		if (thorough || ((process->wants_search || !process_has_global(process, &luajit->known.vm)) &&
				 vm_states_search_is_due(&luajit->states)))
			process_find_states(process, luajit);
		process_confirm_running(process, luajit);
	}
	process->wants_search = false;
	process_find_gateways(process);
	process_find_request_places(process);
	process_refresh_details(process);
	return 0;
}

int lua_process_refresh(struct lua_process *process, bool thorough)
{
	const int error = refresh(process, thorough);

	process_close_pagemap(process);
	return error;
}

bool lua_process_has_new_modules(const struct lua_process *process)
{
	return process->has_new_modules;
}

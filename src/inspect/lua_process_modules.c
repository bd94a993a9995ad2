/* SPDX-License-Identifier: MIT */
/* What is mapped in a process, and which of it is LuaJIT. */
#include "src/inspect/lua_process_parts.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory/page_cache.h"
#include "src/inspect/loop_clock.h"
#include "src/linux/clocks/clock.h"
#include "src/linux/clocks/time_namespace.h"
#include "src/linux/files/file_backed.h"
#include "src/linux/files/file_image.h"
#include "src/linux/proc/process.h"
#include "src/linux/proc/resident.h"
#include "unwind/elf/dynamic_symbol.h"
#include "unwind/nginx/gateway.h"

void process_keep_verdict(void *context, const char *probe, const char *verdict)
{
	struct luajit_module *luajit = context;

	snprintf(luajit->known.verdict, sizeof(luajit->known.verdict), "%s: %s", probe, verdict);
}

/* Where the list that begins at luajits has this file, or its end. */
static struct luajit_module **find_luajit(struct luajit_module **luajits, const struct mapped_file *file)
{
	while (*luajits && ((*luajits)->device != file->device || (*luajits)->inode != file->inode ||
			    (*luajits)->base != file->base || strcmp((*luajits)->path, file->path) != 0))
		luajits = &(*luajits)->next;
	return luajits;
}

/* One does for all files: there may be many of them, in many processes. */
static int pagemap_of(struct lua_process *process)
{
	if (!process->has_pagemap)
		process->pagemap = resident_open(process_thread_with_memory(process->pid));
	process->has_pagemap = true;
	return process->pagemap;
}

void process_close_pagemap(struct lua_process *process)
{
	if (process->has_pagemap && process->pagemap >= 0)
		close(process->pagemap);
	process->has_pagemap = false;
}

/*
 * Does its code come from its file alone? Packed programs write theirs when they start, each process for
 * itself.
 */
static bool has_code_of_file(struct lua_process *process, const struct luajit_module *luajit)
{
	for (size_t i = 0; i < maps_file_count(process->maps); i++) {
		const struct mapped_file *file = maps_file_at(process->maps, i);

		if (file->base == luajit->base)
			return file->inode == luajit->inode && file->device == luajit->device &&
			       file_backed_is_all_code(process->maps, pagemap_of(process), file);
	}
	return false;
}

/* What is said of code holds for the same code, which known_files.h compares. Where there is none, ask. */
static bool is_shared(struct lua_process *process, const struct luajit_module *luajit,
		      const struct known_vm *known)
{
	return known->status != RECOGNISE_NO_VM || has_code_of_file(process, luajit);
}

void process_take_over(struct lua_process *process, struct luajit_module *luajit)
{
	struct known_vm known;

	if (luajit->identity &&
	    known_files_find(process->files, luajit->identity, process->memory, luajit->base, &known) &&
	    is_shared(process, luajit, &known))
		luajit->known = known;
}

void process_pass_on(struct lua_process *process, const struct luajit_module *luajit)
{
	if (luajit->identity && is_shared(process, luajit, &luajit->known))
		known_files_note(process->files, luajit->identity, process->memory, luajit->base,
				 &luajit->known);
}

/* Share only what the file decides: NULL with a given layout and for core files, which lack data. */
static struct file_identity *identify(const struct lua_process *process, const struct module *module)
{
	struct file_identity *identity;

	if (process->given || process->core)
		return NULL;
	identity = malloc(sizeof(*identity));
	if (identity && file_identity_read(module, process->memory, identity))
		return identity;
	free(identity);
	return NULL;
}

/*
 * Does the module's file, where it is what is mapped, show that there is no LuaJIT in it? Else its memory
 * tells.
 */
static bool file_lacks_luajit(const struct lua_process *process, struct luajit_module *luajit,
			      const char *path)
{
	struct file_image *image = NULL;
	struct file_backed *backed = NULL;
	bool lacks;

	if (path && !process->core && !process->given)
		image = file_image_open(known_files_errands(process->files), path, luajit->base);
	if (image)
		backed = file_backed_new(file_image_memory(image), process->memory, process->maps,
					 process->pid, luajit->base);
	lacks = backed && recognise_find(file_backed_memory(backed), process->machine, luajit->base,
					 process_keep_verdict, luajit) == RECOGNISE_NO_VM;
	file_backed_free(backed);
	file_image_close(image);
	return lacks;
}

/*
 * Reads tables and code in many small steps, mostly from the same pages. path is where its file can be
 * opened, or NULL.
 */
static void recognise(struct lua_process *process, struct luajit_module *luajit, const char *path)
{
	struct page_cache *cache;
	struct memory *memory;
	struct request_layout requests;
	struct inquiry inquiry;

	luajit->known = (struct known_vm){ .status = RECOGNISE_UNREADABLE };
	process_take_over(process, luajit);
	if (luajit->known.status != RECOGNISE_UNREADABLE)
		return;
	cache = page_cache_new(process->memory);
	memory = cache ? page_cache_memory(cache) : process->memory;
	inquiry = (struct inquiry){ memory, process_keep_verdict, luajit };
	luajit->known.has_requests = request_layout_find(memory, process->machine, luajit->base, &requests);
	if (file_lacks_luajit(process, luajit, path))
		luajit->known.status = RECOGNISE_NO_VM;
	else if (process->given)
		luajit->known.status = recognise_vm_as(&inquiry, process->machine, luajit->base,
						       &process->given->layout, process->given->is_trusted,
						       &luajit->known.vm);
	else
		luajit->known.status = recognise_vm(memory, process->machine, luajit->base,
						    process_keep_verdict, luajit, &luajit->known.vm);
	page_cache_free(cache);
	if (luajit->known.status != RECOGNISE_UNREADABLE)
		process_pass_on(process, luajit);
}

/* NULL when memory is short. */
static struct luajit_module *new_luajit(const struct mapped_file *file)
{
	struct luajit_module *luajit = calloc(1, sizeof(*luajit));

	if (!luajit)
		return NULL;
	luajit->path = strdup(file->path);
	if (!luajit->path) {
		free(luajit);
		return NULL;
	}
	luajit->device = file->device;
	luajit->inode = file->inode;
	luajit->base = file->base;
	return luajit;
}

static void move_to(struct luajit_module **list, struct luajit_module *luajit)
{
	luajit->next = *list;
	*list = luajit;
}

static struct luajit_module *take_from(struct luajit_module **at)
{
	struct luajit_module *luajit = *at;

	if (luajit)
		*at = luajit->next;
	return luajit;
}

/* The VM that this module contains; recognise it once while it is mapped. NULL when memory is short. */
static const struct luajit_module *find_vm(struct lua_process *process, const struct mapped_file *file,
					   const struct module *module)
{
	struct luajit_module *luajit = *find_luajit(&process->luajits, file);

	if (!luajit) {
		luajit = take_from(find_luajit(&process->unmapped, file));
		if (!luajit)
			luajit = new_luajit(file);
		if (!luajit)
			return NULL;
		free(luajit->identity);
		luajit->identity = identify(process, module);
		recognise(process, luajit, module->file);
		move_to(&process->luajits, luajit);
	}
	luajit->is_mapped = true;
	return luajit;
}

/* What is mapped no longer has no states: another LuaJIT may be at its address, with states of its own. */
static void set_unmapped_aside(struct lua_process *process)
{
	struct luajit_module **at = &process->luajits;

	while (*at) {
		struct luajit_module *luajit = *at;

		if (luajit->is_mapped) {
			at = &luajit->next;
			continue;
		}
		process_drop_vm(process, &luajit->known.vm);
		vm_states_clear(&luajit->states);
		luajit->samples = luajit->doubts = luajit->doubts_until_check = luajit->doubted = 0;
		luajit->tries = 0;
		move_to(&process->unmapped, take_from(at));
	}
}

/* True if it cannot be read, too: then treat it like any other file. */
static bool begins_as_elf(const struct lua_process *process, uint64_t base)
{
	char magic[SELFMAG];

	return memory_read(process->memory, base, magic, SELFMAG) != MEMORY_OK ||
	       memcmp(magic, ELFMAG, SELFMAG) == 0;
}

/* The place is the module's from now on. */
static void give_file(struct module *module, const struct file_place *place)
{
	const struct timespec *changed = &place->status.st_mtim;

	module->path = place->shown;
	module->file = place->path;
	module->file_is_late = place->is_late;
	module->changed_ns = (uint64_t)changed->tv_sec * NS_PER_SECOND + (uint64_t)changed->tv_nsec;
}

/* False if there is none, as memory is short. *is_short: it was, so a VM in it may not be known. */
static bool add_module(struct lua_process *process, struct module *module, const struct mapped_file *file,
		       bool *is_short)
{
	const struct luajit_module *luajit;
	struct file_place place;

	if (!process_find_file(process, file, &place)) {
		*is_short = true;
		return false;
	}
	*module = (struct module){
		.begin = file->begin,
		.end = file->end,
		.base = file->base,
		.made = !begins_as_elf(process, file->base),
		.device = file->device,
		.inode = file->inode,
	};
	give_file(module, &place);
	luajit = find_vm(process, file, module);
	*is_short |= !luajit;
	if (luajit && luajit->known.status == RECOGNISE_OK)
		module->vm = &luajit->known.vm;
	else if (luajit && luajit->known.status == RECOGNISE_UNKNOWN_LAYOUT)
		module->unknown_vm = &luajit->known.vm;
	return true;
}

static bool add_vdso(const struct lua_process *process, struct module *module)
{
	const struct mapping *vdso = maps_find_path(process->maps, "[vdso]");

	if (!vdso)
		return false;
	*module = (struct module){
		.begin = vdso->begin,
		.end = vdso->end,
		.base = vdso->begin,
		.path = strdup("vdso"),
	};
	return module->path != NULL;
}

void process_find_unpacked(struct lua_process *process)
{
	process->unpacked_count = unpacked_find(process->maps, process->memory, process->unpacked,
						&process->unpacked_more);
}

/* What may have LuaJIT in it: the executable files, and then what is unpacked. NULL behind the last one. */
static const struct mapped_file *program_at(const struct lua_process *process, size_t index)
{
	const size_t files = maps_file_count(process->maps);

	if (index < files)
		return maps_file_at(process->maps, index);
	return index - files < process->unpacked_count ? &process->unpacked[index - files] : NULL;
}

bool process_modules_differ(struct lua_process *process)
{
	const struct mapped_file *file;
	size_t known = 0;

	for (size_t i = 0; (file = program_at(process, i)); i++) {
		const struct module *module;

		if (!file->executable)
			continue;
		module = image_find(process->image, file->base);
		if (!module || module->begin != file->begin || module->end != file->end ||
		    !file_place_shows(file, module->path))
			return true;
		known++;
	}
	return known + (maps_find_path(process->maps, "[vdso]") ? 1 : 0) !=
	       image_module_count(process->image);
}

/* In lua-nginx-module, or an nginx that contains it. Its address, or 0 if there is none. */
static uint64_t find_request_layout(struct lua_process *process)
{
	struct request_layout layout = { .known = false };
	uint64_t base = 0;

	for (const struct luajit_module *luajit = process->luajits; luajit && !layout.known;
	     luajit = luajit->next)
		if (luajit->known.has_requests &&
		    request_layout_find(process->memory, process->machine, luajit->base, &layout))
			base = luajit->base;
	if (layout.known)
		layout.ctx_ref = gateway_ref_member(process->memory, base, &layout);
	lua_image_set_request_layout(process->lua, &layout);
	return base;
}

/* In the module that exports ngx_cycle; else, without symbols, in the one that contains lua-nginx-module. */
static void find_request_members(struct lua_process *process, uint64_t lua_base)
{
	struct page_cache *cache = page_cache_new(process->memory);
	struct memory *memory = cache ? page_cache_memory(cache) : process->memory;
	struct request_members members = { .known = false };
	uint64_t cycle;

	for (size_t i = 0; i < image_module_count(process->image) && !members.known; i++) {
		const struct module *module = image_module(process->image, i);

		if (!module->made && (module->base == lua_base ||
				      dynamic_symbol_find(memory, module->base, "ngx_cycle", &cycle)))
			request_members_find(memory, process->machine, module->base, &members);
	}
	if (lua_base && members.known)
		members.known = request_members_agree(memory, lua_base, &members);
	lua_image_set_request_members(process->lua, &members);
	page_cache_free(cache);
}

/* Of what may be to no avail for a moment, or for good: try again, more and more rarely. */
static bool is_next_try(unsigned int *calls)
{
	++*calls;
	return (*calls & (*calls - 1)) == 0; /* a power of two */
}

/* What symbols, unwind tables and names were read from is not what it was. */
static void forget_names(struct lua_process *process)
{
	symbols_reset(process->symbols);
	native_reset(process->native);
	namer_reset(process->namer);
}

/* True if it is late no longer. */
static bool find_late_file(const struct lua_process *process, const struct mapped_file *file,
			   struct module *module)
{
	struct file_place place;

	if (!process_find_file(process, file, &place))
		return false;
	if (place.is_late) {
		file_place_clear(&place);
		return false;
	}
	free(module->path);
	free(module->file);
	give_file(module, &place);
	return true;
}

static bool has_late_file(const struct lua_process *process)
{
	for (size_t i = 0; i < image_module_count(process->image); i++)
		if (image_module(process->image, i)->file_is_late)
			return true;
	return false;
}

void process_find_late_files(struct lua_process *process)
{
	bool has_found = false;

	if (!has_late_file(process))
		return;
	if (!is_next_try(&process->late_looks))
		return;
	for (size_t i = 0; i < maps_file_count(process->maps); i++) {
		const struct mapped_file *file = maps_file_at(process->maps, i);
		struct module *module = image_find(process->image, file->base);

		if (module && module->file_is_late && module->base == file->base)
			has_found |= find_late_file(process, file, module);
	}
	if (!has_found)
		return;
	process->late_looks = 0;
	forget_names(process);
}

int process_set_modules(struct lua_process *process)
{
	const struct mapped_file *file;
	struct module *modules;
	size_t count = 0;
	bool is_short = false;

	modules = calloc(maps_file_count(process->maps) + process->unpacked_count + 1, sizeof(*modules));
	if (!modules)
		return -ENOMEM;
	for (struct luajit_module *luajit = process->luajits; luajit; luajit = luajit->next)
		luajit->is_mapped = false;
	for (size_t i = 0; (file = program_at(process, i)); i++)
		if (file->executable && add_module(process, &modules[count], file, &is_short))
			count++;
	if (add_vdso(process, &modules[count]))
		count++;
	image_set_modules(process->image, modules, count);
	set_unmapped_aside(process);
	find_request_members(process, find_request_layout(process));
	forget_names(process);
	process->has_modules = !is_short; /* then the next refresh looks again */
	process->late_looks = 0;
	process->has_sought_clock = false;
	process->loop_clock = 0;
	process->loop_clock_is_apart = false;
	process->clock_searches = 0;
	process->connections_cycle = 0;
	return is_short ? -ENOMEM : 0;
}

/* What tells its time namespace may not be readable. */
static void find_loop_clock(struct lua_process *process)
{
	uint64_t clock = 0;

	if (!is_next_try(&process->clock_searches))
		return;
	for (size_t i = 0; i < image_module_count(process->image) && !clock; i++)
		loop_clock_find(process->memory, image_module(process->image, i)->base, &clock);
	process->loop_clock_is_apart = clock &&
				       !time_namespace_offset(process->pid, &process->loop_clock_ahead_ns);
	process->has_sought_clock = !process->loop_clock_is_apart;
	if (process->has_sought_clock)
		process->loop_clock = clock;
}

uint64_t lua_process_loop_clock(struct lua_process *process)
{
	if (!process->has_sought_clock)
		find_loop_clock(process);
	return process->loop_clock
		       ? loop_clock_read(process->memory, process->loop_clock, process->loop_clock_ahead_ns)
		       : 0;
}

bool lua_process_loop_clock_is_apart(const struct lua_process *process)
{
	return process->loop_clock_is_apart;
}

struct luajit_module *process_luajit_module(const struct lua_process *process, const struct vm_code *vm)
{
	struct luajit_module *luajit = process->luajits;

	while (luajit && &luajit->known.vm != vm)
		luajit = luajit->next;
	return luajit;
}

static const char *shown_path(const struct lua_process *process, const struct luajit_module *luajit)
{
	const struct module *module = image_find(process->image, luajit->base);

	return module ? module->path : luajit->path;
}

static bool is_lua_module(const struct luajit_module *luajit)
{
	return luajit->known.status == RECOGNISE_OK || luajit->known.status == RECOGNISE_UNKNOWN_LAYOUT;
}

/* What programs make themselves is no file of LuaJIT's. */
static bool is_unread(const struct luajit_module *luajit, const struct module *module)
{
	return luajit->known.status == RECOGNISE_UNREADABLE && !(module && module->made);
}

/* A program may write code in the place of its file's at any time. */
static bool may_be_unpacked(const struct luajit_module *luajit, const struct module *module)
{
	return luajit->known.status == RECOGNISE_NO_VM && !(module && module->made);
}

bool process_read_unread(struct lua_process *process)
{
	bool has_read = false;

	for (struct luajit_module *luajit = process->luajits; luajit && !process->core;
	     luajit = luajit->next) {
		const struct module *module = image_find(process->image, luajit->base);
		const enum recognise_status status = luajit->known.status;

		if (!is_unread(luajit, module) && !may_be_unpacked(luajit, module))
			continue;
		if (!is_next_try(&luajit->unread))
			continue;
		if (may_be_unpacked(luajit, module) && has_code_of_file(process, luajit))
			continue;
		recognise(process, luajit, module ? module->file : NULL);
		has_read |= luajit->known.status != status;
	}
	return has_read;
}

const char *lua_process_unread_file(const struct lua_process *process, size_t *ret_count)
{
	const char *path = NULL;

	*ret_count = 0;
	for (const struct luajit_module *luajit = process->luajits; luajit; luajit = luajit->next) {
		if (!is_unread(luajit, image_find(process->image, luajit->base)))
			continue;
		path = shown_path(process, luajit);
		++*ret_count;
	}
	return path;
}

size_t lua_process_unsearched_programs(const struct lua_process *process)
{
	return process->unpacked_more;
}

size_t lua_process_module_count(const struct lua_process *process)
{
	size_t count = 0;

	for (const struct luajit_module *luajit = process->luajits; luajit; luajit = luajit->next)
		count += is_lua_module(luajit) ? 1 : 0;
	return count;
}

int lua_process_lacks_luajit(const struct lua_process *process)
{
	size_t unread;

	if (lua_process_module_count(process))
		return 0;
	return lua_process_unread_file(process, &unread) ? -ENODATA : -ENOEXEC;
}

const char *lua_process_unknown_layout(const struct lua_process *process)
{
	struct luajit_module *const lists[] = { process->luajits, process->unmapped };

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		for (const struct luajit_module *luajit = lists[i]; luajit; luajit = luajit->next)
			if (luajit->known.status == RECOGNISE_UNKNOWN_LAYOUT)
				return luajit->known.verdict;
	return NULL;
}

struct lua_module lua_process_module(const struct lua_process *process, size_t index)
{
	const struct luajit_module *luajit = process->luajits;

	while (!is_lua_module(luajit) || index-- > 0)
		luajit = luajit->next;
	return (struct lua_module){
		.path = shown_path(process, luajit),
		.status = luajit->known.status,
		.vm = luajit->known.status == RECOGNISE_OK ? &luajit->known.vm : NULL,
		.base = luajit->base,
		.is_unconfirmed = process_is_unconfirmed(luajit),
		.verdict = luajit->known.verdict,
	};
}

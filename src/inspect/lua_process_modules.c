/* What is mapped in a process, and which of it is LuaJIT. */
#include "src/inspect/lua_process_parts.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory/page_cache.h"
#include "src/inspect/loop_clock.h"

void process_keep_verdict(void *context, const char *probe, const char *verdict)
{
	struct looked_at *one = context;

	snprintf(one->known.verdict, sizeof(one->known.verdict), "%s: %s", probe, verdict);
}

static struct looked_at *find_looked_at(const struct lua_process *process,
					const struct mapped_file *file)
{
	for (struct looked_at *one = process->looked_at; one; one = one->next)
		if (one->device == file->device && one->inode == file->inode &&
		    one->base == file->base && strcmp(one->path, file->path) == 0)
			return one;
	return NULL;
}

void process_take_over(const struct lua_process *process, struct looked_at *one)
{
	if (one->identity)
		known_files_find(process->files, one->identity, process->memory, one->base,
				 &one->known);
}

void process_pass_on(const struct lua_process *process, const struct looked_at *one)
{
	if (one->identity)
		known_files_note(process->files, one->identity, process->memory, one->base,
				 &one->known);
}

/* Only what the file decides is shared: not what is given, nor what a core file lacks. */
static struct file_identity *identify(const struct lua_process *process,
				      const struct module *module)
{
	struct file_identity *identity;

	if (process->given || process->core)
		return NULL;
	identity = malloc(sizeof(*identity));
	if (identity && file_identity_read(module, process->memory, known_files_errands(process->files), identity))
		return identity;
	free(identity);
	return NULL;
}

/* Tables and code are read in many small steps, most of them of the pages before. */
static void recognise(struct lua_process *process, struct looked_at *one)
{
	struct page_cache *cache;
	struct memory *memory;
	struct request_layout requests;

	one->known.status = RECOGNISE_UNREADABLE;
	process_take_over(process, one);
	if (one->known.status != RECOGNISE_UNREADABLE)
		return;
	cache = page_cache_new(process->memory);
	memory = cache ? page_cache_memory(cache) : process->memory;
	one->known.has_requests = request_layout_find(memory, process->machine,
						      one->base, &requests);
	one->known.status = process->given
		? recognise_vm_as(memory, process->machine, one->base, process->given,
				  process->given_is_trusted, process_keep_verdict, one, &one->known.vm)
		: recognise_vm(memory, process->machine, one->base, process_keep_verdict, one, &one->known.vm);
	page_cache_free(cache);
	if (one->known.status != RECOGNISE_UNREADABLE)
		process_pass_on(process, one);
}

/* Is there a VM in this module? Asked once. */
static const struct looked_at *look_at(struct lua_process *process, const struct mapped_file *file,
				       const struct module *module)
{
	struct looked_at *one = find_looked_at(process, file);

	if (one)
		return one;
	one = calloc(1, sizeof(*one));
	if (!one)
		return NULL;
	one->path = strdup(file->path);
	if (!one->path) {
		free(one);
		return NULL;
	}
	one->device = file->device;
	one->inode = file->inode;
	one->base = file->base;
	one->identity = identify(process, module);
	recognise(process, one);
	one->next = process->looked_at;
	process->looked_at = one;
	return one;
}

/* What cannot be read is taken for a file like any other. */
static bool begins_as_elf(const struct lua_process *process, uint64_t base)
{
	char magic[SELFMAG];

	return memory_read(process->memory, base, magic, SELFMAG) != MEMORY_OK ||
	       memcmp(magic, ELFMAG, SELFMAG) == 0;
}

static bool add_module(struct lua_process *process, struct module *module,
		       const struct mapped_file *file)
{
	const struct looked_at *looked;

	*module = (struct module){
		.begin = file->begin,
		.end = file->end,
		.base = file->base,
		.made = !begins_as_elf(process, file->base),
		.device = file->device,
		.inode = file->inode,
		.path = strdup(file->path),
		.file = process_openable_path(process, file),
	};
	looked = look_at(process, file, module);
	if (looked && looked->known.status == RECOGNISE_OK)
		module->vm = &looked->known.vm;
	else if (looked && looked->known.status == RECOGNISE_UNKNOWN_LAYOUT)
		module->unknown_vm = &looked->known.vm;
	return module->path != NULL;
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

bool process_modules_differ(const struct lua_process *process)
{
	size_t known = 0;

	for (size_t i = 0; i < maps_file_count(process->maps); i++) {
		const struct mapped_file *file = maps_file_at(process->maps, i);
		const struct module *module;

		if (!file->executable)
			continue;
		module = image_find(process->image, file->base);
		if (!module || module->begin != file->begin || module->end != file->end ||
		    strcmp(module->path, file->path) != 0)
			return true;
		known++;
	}
	return known + (maps_find_path(process->maps, "[vdso]") ? 1 : 0) !=
	       image_module_count(process->image);
}

/* lua-nginx-module, or nginx with it inside. */
static void find_request_layout(struct lua_process *process)
{
	struct request_layout layout = { .known = false };

	for (const struct looked_at *one = process->looked_at; one && !layout.known; one = one->next)
		if (one->known.has_requests)
			request_layout_find(process->memory, process->machine, one->base, &layout);
	lua_image_set_request_layout(process->lua, &layout);
}

int process_set_modules(struct lua_process *process)
{
	struct module *modules = calloc(maps_file_count(process->maps) + 1, sizeof(*modules));
	size_t count = 0;

	if (!modules)
		return -ENOMEM;
	for (size_t i = 0; i < maps_file_count(process->maps); i++) {
		const struct mapped_file *file = maps_file_at(process->maps, i);

		if (file->executable && add_module(process, &modules[count], file))
			count++;
	}
	if (add_vdso(process, &modules[count]))
		count++;
	image_set_modules(process->image, modules, count);
	find_request_layout(process);
	symbols_reset(process->symbols);
	native_reset(process->native);
	namer_reset(process->namer);
	process->has_modules = true;
	process->has_sought_clock = false;
	return 0;
}

uint64_t lua_process_loop_clock(struct lua_process *process)
{
	if (!process->has_sought_clock) {
		process->has_sought_clock = true;
		process->loop_clock = 0;
		for (size_t i = 0; i < image_module_count(process->image) && !process->loop_clock; i++)
			loop_clock_find(process->memory, image_module(process->image, i)->base,
					&process->loop_clock);
	}
	return process->loop_clock ? loop_clock_read(process->memory, process->loop_clock) : 0;
}

struct looked_at *process_looked_at(const struct lua_process *process, const struct vm_code *vm)
{
	struct looked_at *one = process->looked_at;

	while (one && &one->known.vm != vm)
		one = one->next;
	return one;
}

static bool is_lua_module(const struct looked_at *one)
{
	return one->known.status == RECOGNISE_OK || one->known.status == RECOGNISE_UNKNOWN_LAYOUT;
}

size_t lua_process_module_count(const struct lua_process *process)
{
	size_t count = 0;

	for (const struct looked_at *one = process->looked_at; one; one = one->next)
		count += is_lua_module(one) ? 1 : 0;
	return count;
}

struct lua_module lua_process_module(const struct lua_process *process, size_t index)
{
	const struct looked_at *one = process->looked_at;

	while (!is_lua_module(one) || index-- > 0)
		one = one->next;
	return (struct lua_module){
		.path = one->path,
		.status = one->known.status,
		.vm = one->known.status == RECOGNISE_OK ? &one->known.vm : NULL,
		.base = one->base,
		.verdict = one->known.verdict,
	};
}

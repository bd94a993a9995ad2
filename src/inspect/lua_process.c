#include "src/inspect/lua_process.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory/page_cache.h"
#include "memory/snapshot.h"
#include "src/inspect/core_maps.h"
#include "src/inspect/known_files.h"
#include "src/inspect/loop_clock.h"
#include "src/inspect/vm_states.h"
#include "src/linux/proc/live_memory.h"
#include "src/linux/proc/maps.h"
#include "unwind/capture/unknown_states.h"
#include "unwind/capture/lua_image.h"
#include "unwind/elf/image.h"
#include "unwind/lua/lua_names.h"
#include "unwind/lua/lua_objects.h"
#include "unwind/native/native.h"
#include "unwind/stack/arm64_thread.h"
#include "unwind/stack/merge.h"
#include "unwind/stack/merge_lua.h"
#include "unwind/symbols/symbols.h"

enum {
	/*
	 * It takes milliseconds, so it is tried while the target runs: an
	 * object in the middle of a change fails it then, but nothing passes
	 * it wrongly. After that it is done while a thread is held, and if
	 * that fails so often the layout is held to be wrong.
	 */
	SETTLE_TRIES_RUNNING = 8,
	SETTLE_TRIES_MAX = 50,
	HEAD_BYTES = 1024,	/* by which a file is told from another one */
	/* Stacks that do not fit: of fewer, every layout leaves something open. */
	DOUBTS_MIN = 3,
	DOUBT_ONE_IN = 20,
	/*
	 * A clue that leads to no state costs a microsecond or two of the hold,
	 * and so many are followed from one look at the process to the next.
	 */
	CLUES = 256,
	/* Stacks that are searched for C frames after one of an unknown state was found. */
	SEARCHES = 1000,
	CAPTURES_MAX = 3,	/* of one sample: of states within states, one may lead to the next */
};

/* What was found in one loading of a file; kept for as long as the process, since frames point to it. */
struct looked_at {
	dev_t device;
	uint64_t inode;
	uint64_t base;
	char *path;
	struct file_identity *identity;	/* NULL: what is found out is this process's alone */
	struct known_vm known;
	unsigned int tries;	/* that failed in a row, while the target was held */
	/* Since the layout was confirmed last, of stacks with its frames; how many may not fit until the next look. */
	uint64_t samples, doubts, doubts_until_look;
	uint64_t doubted;	/* the state whose objects are to be looked at while held; 0 if none */
	struct vm_states states;
	struct looked_at *next;
};

struct lua_process {
	pid_t pid;
	uint16_t machine;		/* EM_X86_64; of a core file, EM_AARCH64 too */
	struct live_memory *live;	/* NULL for a core file */
	struct core_file *core;		/* NULL for a process; not owned */
	struct memory *memory;		/* of either */
	struct known_files *files, *own_files;	/* the latter NULL if they are shared */
	struct maps *maps;
	struct image *image;
	struct lua_image *lua;
	struct lua_objects *objects;
	struct snapshot *snapshot;
	const struct layout *given;	/* NULL: layouts are recognised */
	bool given_is_trusted;
	struct symbols *symbols;
	struct native_unwinder *native;
	struct vm_decoder *decoder;
	struct namer *namer;
	struct looked_at *looked_at;
	unsigned int clues_left, searches_left;
	bool wants_search;	/* a thread ran no state that is known */
	bool wants_look, has_new_modules;
	bool has_modules;
	bool has_sought_clock;
	uint64_t loop_clock;		/* address of an event loop's clock; 0 if there is none */
	struct capture capture;
	struct merged_stack stack;
};

struct memory *lua_process_memory(struct lua_process *process)
{
	return process->memory;
}

/* Whatever is the same for processes and core files; the memory is set. 0 or -ENOMEM. */
static int open_parts(struct lua_process *process, const char *root, struct functions *functions,
		      struct known_files *files, const struct namer_options *options)
{
	if (!files)
		files = process->own_files = known_files_new();
	if (!files)
		return -ENOMEM;
	process->files = files;
	process->maps = maps_new(process->pid);
	process->objects = lua_objects_new();
	process->image = image_new(process->memory);
	process->snapshot = snapshot_new(process->memory);
	process->decoder = vm_decoder_new();
	if (process->image) {
		image_set_root(process->image, root);
		process->lua = lua_image_new(process->image);
		process->symbols = symbols_new(process->image, process->memory,
					       known_files_symbols(files));
	}
	if (process->symbols && process->lua) {
		process->native = native_unwinder_new(process->image, process->symbols);
		process->namer = namer_new(process->lua, process->memory, process->symbols,
					   functions, options);
	}
	return process->maps && process->objects && process->snapshot && process->decoder &&
	       process->native && process->namer ? 0 : -ENOMEM;
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
	process->machine = EM_X86_64;
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
	lua_image_free(process->lua);
	image_free(process->image);
	maps_free(process->maps);
	live_memory_free(process->live);
	known_files_free(process->own_files);
	while (process->looked_at) {
		struct looked_at *one = process->looked_at;

		process->looked_at = one->next;
		free(one->identity);
		vm_states_clear(&one->states);
		free(one->path);
		free(one);
	}
	free(process);
}

void lua_process_give_layout(struct lua_process *process, const struct layout *layout, bool trusted)
{
	process->given = layout;
	process->given_is_trusted = trusted;
}

/*---- Modules ----*/

static void keep_verdict(void *context, const char *probe, const char *verdict)
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

/* The beginning of a mapped ELF file is never changed, and holds its build id. */
static bool begins_alike(const struct lua_process *process, const struct mapped_file *file,
			 const char *path)
{
	unsigned char mapped[HEAD_BYTES], read_here[HEAD_BYTES];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool alike;

	if (fd < 0)
		return false;
	alike = pread(fd, read_here, sizeof(read_here), 0) == (ssize_t)sizeof(read_here) &&
		memory_read(live_memory_memory(process->live), file->base, mapped,
			    sizeof(mapped)) == MEMORY_OK &&
		memcmp(mapped, read_here, sizeof(mapped)) == 0;
	close(fd);
	return alike;
}

/*
 * Is that path the file which is mapped? Device and inode of the mapping are
 * those of the filesystem below where that is an overlay, and a path may lead
 * elsewhere from here than from the target's root.
 */
static bool leads_to(const struct lua_process *process, const struct mapped_file *file,
		     const char *path)
{
	struct stat status;

	if (stat(path, &status) || !S_ISREG(status.st_mode))
		return false;
	return (status.st_ino == file->inode && status.st_dev == file->device) ||
	       begins_alike(process, file, path);
}

enum place {
	PLACE_TARGETS_ROOT,
	PLACE_OUR_ROOT,		/* the target may have another one in the same mount namespace */
	PLACE_PROGRAM,		/* the next two serve for files that were deleted or replaced */
	PLACE_MAPPING,		/* takes privileges */
	PLACE_COUNT
};

static char *path_at(const struct lua_process *process, const struct mapped_file *file, enum place place)
{
	const struct mapping *mapping;
	char *path = NULL;
	int length = -1;

	switch (place) {
	case PLACE_TARGETS_ROOT:
		length = asprintf(&path, "%s%s", image_root(process->image), file->path);
		break;
	case PLACE_OUR_ROOT:
		return strdup(file->path);
	case PLACE_PROGRAM:
		length = asprintf(&path, "/proc/%d/exe", process->pid);
		break;
	case PLACE_MAPPING:
		mapping = maps_find(process->maps, file->base);
		if (mapping)
			length = asprintf(&path, "/proc/%d/map_files/%lx-%lx", process->pid,
					  (unsigned long)mapping->begin, (unsigned long)mapping->end);
		break;
	case PLACE_COUNT:
		break;
	}
	return length < 0 ? NULL : path;
}

/* Where ljspy can open the file, or NULL. */
static char *openable_path(const struct lua_process *process, const struct mapped_file *file)
{
	if (process->core)
		return core_file_has_file(process->core, file->path) ? strdup(file->path) : NULL;
	for (int place = 0; place < PLACE_COUNT; place++) {
		char *path = path_at(process, file, (enum place)place);

		if (path && leads_to(process, file, path))
			return path;
		free(path);
	}
	return NULL;
}

/*---- What other processes with the same file have told ----*/

static void take_over(const struct lua_process *process, struct looked_at *one)
{
	if (one->identity)
		known_files_find(process->files, one->identity, process->memory, one->base,
				 &one->known);
}

static void pass_on(const struct lua_process *process, const struct looked_at *one)
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
	if (identity && file_identity_read(module, process->memory, identity))
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
	take_over(process, one);
	if (one->known.status != RECOGNISE_UNREADABLE)
		return;
	cache = page_cache_new(process->memory);
	memory = cache ? page_cache_memory(cache) : process->memory;
	one->known.has_requests = request_layout_find(memory, process->machine,
						      one->base, &requests);
	one->known.status = process->given
		? recognise_vm_as(memory, process->machine, one->base, process->given,
				  process->given_is_trusted, keep_verdict, one, &one->known.vm)
		: recognise_vm(memory, process->machine, one->base, keep_verdict, one, &one->known.vm);
	page_cache_free(cache);
	if (one->known.status != RECOGNISE_UNREADABLE)
		pass_on(process, one);
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
		.file = openable_path(process, file),
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

/* Do the executable files differ from the image's modules? */
static bool modules_differ(const struct lua_process *process)
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

static int set_modules(struct lua_process *process)
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

/*---- States ----*/

static void add_universes(struct lua_process *process, const struct looked_at *one)
{
	for (size_t i = 0; i < one->states.count; i++)
		lua_image_add(process->lua, one->states.g[i], &one->known.vm);
}

static void find_states(struct lua_process *process, struct looked_at *one)
{
	vm_states_search(&one->states, process->memory, &one->known.vm, process->maps,
			 process->core ? 0 : process->pid);
	if (one->known.vm.confirmed)
		add_universes(process, one);
}

static bool is_open(const struct looked_at *one)
{
	return one->known.status == RECOGNISE_OK && one->states.count &&
	       (!one->known.vm.confirmed || one->known.vm.traces_open);
}

/* The self-tests look at thousands of small things. */
static bool confirm(struct lua_process *process, struct looked_at *one, uint64_t g)
{
	struct page_cache *cache = page_cache_new(process->memory);
	bool confirmed = cache && recognise_settle(page_cache_memory(cache), &one->known.vm, g,
						   keep_verdict, one) == RECOGNISE_OK;

	page_cache_free(cache);
	return confirmed;
}

static bool is_trusted(const struct lua_process *process)
{
	return process->given && process->given_is_trusted;
}

static bool settle_by(struct lua_process *process, struct looked_at *one, uint64_t g)
{
	if (!is_trusted(process) && !confirm(process, one, g))
		return false;
	one->known.vm.confirmed = true;
	one->tries = 0;
	pass_on(process, one);
	add_universes(process, one);
	return true;
}

/* One state may just be opened, closed, or have no trace: each gets its turn. */
static bool settle(struct lua_process *process, struct looked_at *one)
{
	uint64_t g = vm_states_next(&one->states, process->memory, &one->known.vm);

	return g && settle_by(process, one, g);
}

/* Another process may have had what it takes to tell: a state, or traces. */
static void take_over_settled(struct lua_process *process, struct looked_at *one)
{
	bool was_confirmed = one->known.vm.confirmed;

	take_over(process, one);
	if (one->known.vm.confirmed && !was_confirmed)
		add_universes(process, one);
}

static void settle_running(struct lua_process *process, struct looked_at *one)
{
	if (is_open(one))
		take_over_settled(process, one);
	for (unsigned i = 0; i < SETTLE_TRIES_RUNNING && is_open(one); i++)
		if (settle(process, one))
			return;
}

bool lua_process_needs_settling(const struct lua_process *process)
{
	for (const struct looked_at *one = process->looked_at; one; one = one->next)
		if (is_open(one) && !one->known.vm.confirmed)
			return true;
	return false;
}

/*---- Doubts ----*/

/* Does the stack look as one does if the layout is wrong? */
static bool speaks_against_layout(const struct merged_stack *stack)
{
	static const bool against[LOST_COUNT] = {
		[LOST_NO_VM_FRAME] = true,
		[LOST_UNREADABLE] = true,
		[LOST_BROKEN_CHAIN] = true,
		[LOST_HALF_DONE] = true,
		[LOST_IN_TRACE] = true,
	};

	for (size_t i = 0; i < stack->count; i++)
		if (stack->frames[i].kind == MERGED_LOST && against[stack->frames[i].lost])
			return true;
	return false;
}

static bool is_doubtful(const struct looked_at *one)
{
	return one->doubts >= DOUBTS_MIN && one->doubts > one->doubts_until_look &&
	       one->doubts * DOUBT_ONE_IN > one->samples;
}

/* From then on it takes more for another look, which costs milliseconds. */
static void dispel_doubts(struct looked_at *one)
{
	one->doubts_until_look = 2 * one->doubts;
	one->samples = one->doubts = one->doubted = 0;
	one->tries = 0;
}

/* The VM of the thread captured last, if its layout is held to be right. */
static struct looked_at *running_vm(const struct lua_process *process, uint64_t *ret_g)
{
	const struct capture *capture = &process->capture;
	const struct lua_universe *universe =
		capture->thread_count ? capture->threads[0].universe :
		capture->universe_count ? capture->universes[0].universe : NULL;

	for (struct looked_at *one = process->looked_at; universe && one; one = one->next) {
		if (&one->known.vm == universe->vm && one->known.vm.confirmed) {
			*ret_g = universe->g;
			return one;
		}
	}
	return NULL;
}

/*
 * What a stack says of the layout. The objects are looked at while the target
 * runs; a layout that they do not confirm then is looked at when it is held next.
 */
static void weigh_stack(struct lua_process *process)
{
	uint64_t g;
	struct looked_at *one = running_vm(process, &g);

	if (!one || is_trusted(process))
		return;
	one->samples++;
	if (!speaks_against_layout(&process->stack))
		return;
	one->doubts++;
	if (!is_doubtful(one) || one->doubted)
		return;
	if (confirm(process, one, g))
		dispel_doubts(one);
	else
		one->doubted = g;
}

/* While the target is held. */
static void look_again(struct lua_process *process, struct looked_at *one)
{
	if (!is_doubtful(one) ||
	    !recognise_is_state(process->memory, &one->known.vm, one->doubted) ||
	    confirm(process, one, one->doubted)) {
		dispel_doubts(one);
		return;
	}
	if (++one->tries < SETTLE_TRIES_MAX)
		return;
	one->known.status = RECOGNISE_UNKNOWN_LAYOUT;
	lua_image_forget_vm(process->lua, &one->known.vm);
	process->capture.thread_count = process->capture.universe_count = 0;
	process->stack.count = 0;
}

void lua_process_settle(struct lua_process *process)
{
	for (struct looked_at *one = process->looked_at; one; one = one->next) {
		if (one->known.status == RECOGNISE_OK && one->doubted)
			look_again(process, one);
		if (!is_open(one) || one->known.vm.confirmed || settle(process, one))
			continue;
		/* A state that has gone meanwhile says nothing against the layout. */
		if (is_open(one) && ++one->tries == SETTLE_TRIES_MAX)
			one->known.status = RECOGNISE_UNKNOWN_LAYOUT;
	}
}

/*---- States that come and go ----*/

static struct looked_at *looked_at_of(const struct lua_process *process, const struct vm_code *vm)
{
	struct looked_at *one = process->looked_at;

	while (one && &one->known.vm != vm)
		one = one->next;
	return one;
}

/* Is that a state? Then it is known from now on. */
static bool take_up(struct lua_process *process, const struct state_clue *clue)
{
	struct looked_at *one = looked_at_of(process, clue->vm);

	if (!one || one->known.status != RECOGNISE_OK || process->clues_left == 0)
		return false;
	process->clues_left--;
	if (!recognise_is_state(process->memory, clue->vm, clue->g) ||
	    !vm_states_add(&one->states, clue->g))
		return false;
	process->clues_left++;
	/* It may be gone when the next thread is held. */
	if (!one->known.vm.confirmed && !settle_by(process, one, clue->g)) {
		if (++one->tries == SETTLE_TRIES_MAX)
			one->known.status = RECOGNISE_UNKNOWN_LAYOUT;
		return false;
	}
	add_universes(process, one);
	return lua_image_find(process->lua, clue->g);
}

/* The states that the captured thread, which is held, runs though nothing was known of them. */
static bool take_up_running(struct lua_process *process)
{
	struct state_clue clues[STATE_CLUES_MAX];
	size_t count = unknown_states_in_registers(&process->capture, process->image, clues);
	bool found = false;

	for (size_t i = 0; i < count; i++)
		found |= take_up(process, &clues[i]);
	if (!found && process->searches_left > 0) {
		process->searches_left--;
		count = unknown_states_on_stack(&process->capture, process->image, process->memory, clues);
		for (size_t i = 0; i < count; i++)
			found |= take_up(process, &clues[i]);
	}
	if (found)
		process->searches_left = SEARCHES;
	return found;
}

static bool has_lost(const struct merged_stack *stack, enum lost_reason reason)
{
	for (size_t i = 0; i < stack->count; i++)
		if (stack->frames[i].kind == MERGED_LOST && stack->frames[i].lost == reason)
			return true;
	return false;
}

/*
 * Did a state that is not known run there? Then it is looked for where threads are
 * held next. And native code without a way on may be of a library that was just loaded.
 */
static void note_unknown(struct lua_process *process)
{
	if (has_lost(&process->stack, LOST_STATE_UNKNOWN))
		process->searches_left = SEARCHES;
	process->wants_look = has_lost(&process->stack, LOST_NATIVE_UNWIND);
	/* What cannot be unwound may have been called from a trace of such a state. */
	if (process->wants_look && process->stack.vm_state == VM_STATE_NONE && process->searches_left == 0)
		process->searches_left = 1;
}

bool lua_process_wants_look(const struct lua_process *process)
{
	return process->wants_look;
}

static void drop_universe(struct lua_process *process, const struct lua_universe *universe)
{
	struct looked_at *one = looked_at_of(process, universe->vm);
	uint64_t g = universe->g;

	if (one)
		vm_states_drop(&one->states, g);
	namer_forget_universe(process->namer, g);
	lua_image_forget(process->lua, g);
	process->capture.thread_count = process->capture.universe_count = 0;
	process->capture.running = NULL;
	process->stack.count = 0;
}

/* Another state may come to be where one was. */
static void drop_closed(struct lua_process *process)
{
	for (size_t i = lua_image_count(process->lua); i-- > 0;) {
		const struct lua_universe *universe = lua_image_universe(process->lua, i);

		if (!recognise_is_state(process->memory, universe->vm, universe->g))
			drop_universe(process, universe);
	}
}

/* The mappings may be shown where reading memory is refused: then nothing was looked at. */
static int check_access(struct lua_process *process)
{
	for (size_t i = 0; i < maps_file_count(process->maps); i++) {
		const struct mapped_file *file = maps_file_at(process->maps, i);
		char byte;

		if (file->executable)
			return memory_read(lua_process_memory(process), file->base, &byte,
					   sizeof(byte)) == MEMORY_REFUSED ? -EPERM : 0;
	}
	return 0;
}

static bool has_universe(const struct lua_process *process, const struct vm_code *vm)
{
	for (size_t i = 0; i < lua_image_count(process->lua); i++)
		if (lua_image_universe(process->lua, i)->vm == vm)
			return true;
	return false;
}

int lua_process_refresh(struct lua_process *process, bool thorough)
{
	bool changed = false;
	int error = process->core ? 0 : maps_refresh(process->maps, &changed);

	if (error)
		return error;
	if (!process->has_modules)
		error = check_access(process);
	if (error)
		return error;
	process->has_new_modules = !process->has_modules || (changed && modules_differ(process));
	if (process->has_new_modules) {
		error = set_modules(process);
		if (error)
			return error;
	}
	process->clues_left = CLUES;
	drop_closed(process);
	for (struct looked_at *one = process->looked_at; one; one = one->next) {
		if (one->known.status != RECOGNISE_OK)
			continue;
		if (thorough || ((process->wants_search || !has_universe(process, &one->known.vm)) &&
				 vm_states_search_is_due(&one->states)))
			find_states(process, one);
		settle_running(process, one);
	}
	process->wants_search = false;
	return 0;
}

bool lua_process_has_new_modules(const struct lua_process *process)
{
	return process->has_new_modules;
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

size_t lua_process_universe_count(const struct lua_process *process)
{
	return lua_image_count(process->lua);
}

const struct lua_universe *lua_process_universe(const struct lua_process *process, size_t index)
{
	return lua_image_universe(process->lua, index);
}

const char *lua_process_universe_path(const struct lua_process *process, size_t index)
{
	const struct module *module = image_find(process->image,
						 lua_image_universe(process->lua, index)->vm->begin);

	return module ? module->path : "?";
}

/*---- Stacks ----*/

bool lua_process_wants_rehearsal(const struct capture_hints *hints)
{
	return hints->sp != 0 && hints->reads > 1;
}

void lua_process_rehearse(struct lua_process *process, struct capture_hints *hints)
{
	snapshot_clear(process->snapshot);
	capture_rehearse(&process->capture, process->lua, process->objects, process->snapshot,
			 hints);
}

void lua_process_capture(struct lua_process *process, const struct registers *registers,
			 struct capture_hints *hints)
{
	for (unsigned i = 0; i < CAPTURES_MAX; i++) {
		snapshot_clear(process->snapshot);
		capture_thread(&process->capture, process->lua, process->objects,
			       process->snapshot, registers, hints);
		if (process->core || !take_up_running(process))
			break;
	}
}

enum capture_verdict lua_process_capture_running(struct lua_process *process, uint64_t stack_address,
						 struct capture_hints *hints)
{
	const struct mapping *mapping = maps_find(process->maps, stack_address);
	struct memory_range native_stack = { .address = 0, .length = SIZE_MAX };
	enum capture_verdict verdict;

	if (stack_address && !mapping)
		return CAPTURE_NO_LUA;
	if (stack_address)
		native_stack = (struct memory_range){ .address = mapping->begin,
						      .length = mapping->end - mapping->begin };
	snapshot_clear(process->snapshot);
	verdict = capture_running(&process->capture, process->lua, process->objects,
				  process->snapshot, process->memory, &native_stack, hints);
	process->wants_search |= verdict == CAPTURE_NO_LUA;
	return verdict;
}

uint64_t lua_process_first_stack(const struct lua_process *process)
{
	const struct mapping *mapping = maps_find_path(process->maps, "[stack]");

	return mapping ? mapping->begin : 0;
}

void lua_process_forget_functions(struct lua_process *process)
{
	namer_forget_names(process->namer);
}

int lua_process_unwind(struct lua_process *process, const struct frame **ret_frames,
		       size_t *ret_count, enum vm_state *ret_state)
{
	int error = process->capture.running
		? merge_running(&process->capture, process->objects, &process->stack)
		: merge_stacks(&process->capture, process->image, process->objects,
			       process->native, process->decoder, &process->stack);

	if (error)
		return error;
	if (!process->capture.running) {
		weigh_stack(process);
		note_unknown(process);
	}
	*ret_state = process->stack.vm_state;
	return namer_name(process->namer, &process->stack, ret_frames, ret_count);
}

int lua_process_unwind_arm64(struct lua_process *process, const struct arm64_registers *registers,
			     const struct frame **ret_frames, size_t *ret_count)
{
	const struct mapping *stack = maps_find(process->maps, registers->sp);
	struct arm64_thread thread;
	int error;

	arm64_thread_find(process->memory, process->lua, registers,
			  stack ? stack->end : registers->sp, &thread);
	snapshot_clear(process->snapshot);
	process->capture.thread_count = 0;
	if (thread.universe)
		capture_coroutines(&process->capture, process->objects, process->snapshot,
				   thread.universe, thread.threads, thread.thread_count);
	error = merge_lua_threads(&process->capture, process->memory, process->objects, &thread.top,
				  &process->stack);
	return error ? error : namer_name(process->namer, &process->stack, ret_frames, ret_count);
}

/* The requests that the coroutines work for, while nothing runs; of those that have ended they say nothing. */
static void capture_requests(struct lua_process *process)
{
	const struct request_layout *layout = lua_image_request_layout(process->lua);
	struct memory_range ranges[REQUEST_RANGES];
	struct request_coroutines coroutines;

	request_coroutines_begin(&coroutines);
	for (size_t i = 0; layout->known && i < process->capture.thread_count; i++) {
		struct lua_thread *thread = &process->capture.threads[i];
		struct request_context context;

		if (thread->layout->L_exdata < 0)
			continue;
		thread->has_request_context = true;
		thread->request_context = 0;
		if (request_context(process->memory, layout, thread->exdata, ranges, &context) &&
		    request_has_coroutine(process->memory, layout, &context, thread->address, thread->exdata2,
					  &coroutines))
			thread->request_context = context.phase;
	}
}

void lua_process_capture_coroutines(struct lua_process *process, size_t universe,
				    const uint64_t *addresses, size_t count)
{
	snapshot_clear(process->snapshot);
	capture_coroutines(&process->capture, process->objects, process->snapshot,
			   lua_image_universe(process->lua, universe), addresses, count);
	capture_requests(process);
}

size_t lua_process_coroutine_count(const struct lua_process *process)
{
	return process->capture.thread_count;
}

enum coroutine_state lua_process_coroutine_state(const struct lua_process *process, size_t index)
{
	const struct capture *capture = &process->capture;

	return lua_thread_state(&capture->threads[index],
				capture->universe_count ? capture->universes[0].cur_L : 0);
}

int lua_process_unwind_coroutine(struct lua_process *process, size_t index,
				 const struct frame **ret_frames, size_t *ret_count)
{
	const struct lua_thread *thread = &process->capture.threads[index];
	int error = merge_coroutine(&process->capture, index, process->objects, &process->stack);

	process->capture.has_request_context = thread->has_request_context;
	process->capture.request_context = thread->request_context;
	return error ? error : namer_name(process->namer, &process->stack, ret_frames, ret_count);
}

const struct trace *lua_process_trace(const struct lua_process *process)
{
	const struct merged_stack *stack = &process->stack;

	/* Only native code may lie on it: above Lua frames, it does not run but has called. */
	for (size_t i = 0; i < stack->count; i++) {
		if (stack->frames[i].kind == MERGED_TRACE)
			return stack->frames[i].trace;
		if (stack->frames[i].kind != MERGED_NATIVE && stack->frames[i].kind != MERGED_VM)
			return NULL;
	}
	return NULL;
}

const char *lua_process_phase(const struct lua_process *process)
{
	const struct merged_stack *stack = &process->stack;

	if (process->capture.has_request_context)
		return request_phase(process->capture.request_context);
	/* Without it, what the innermost chunk is called, if it is one of the configuration's. */
	for (size_t i = 0; i < stack->count; i++)
		if (stack->frames[i].kind == MERGED_LUA && lua_is_main_chunk(stack->frames[i].proto))
			return request_phase_of_chunk(stack->frames[i].proto->chunkname);
	return NULL;
}

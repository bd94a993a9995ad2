/* SPDX-License-Identifier: MIT */
/*
 * lua_process_parts: what the parts of lua_process share. Private to lua_process*.c.
 */
#ifndef LJSPY_LUA_PROCESS_PARTS_H
#define LJSPY_LUA_PROCESS_PARTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "memory/snapshot.h"
#include "src/inspect/known_files.h"
#include "src/inspect/lua_process.h"
#include "src/inspect/vm_states.h"
#include "src/linux/proc/live_memory.h"
#include "src/linux/proc/maps.h"
#include "unwind/capture/lua_image.h"
#include "unwind/native/native.h"
#include "unwind/stack/merge.h"
#include "unwind/symbols/symbols.h"

enum {
	CONFIRM_TRIES_MAX = 50,	/* of one layout, each while a thread is held */
	/*
	 * A clue that leads to no state costs a microsecond or two of the hold,
	 * and so many are followed from one look at the process to the next.
	 */
	CLUES = 256,
	STACK_SEARCHES = 50,	/* of threads that are not held, from one look to the next */
};

/* What was found in one loading of a file; kept for as long as the process, since frames point to it. */
struct luajit_module {
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
	struct luajit_module *next;
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
	struct luajit_module *luajits;
	unsigned int clues_left, searches_left, stack_searches_left;
	bool wants_search;	/* a thread ran no state that is known */
	bool wants_look, has_new_modules;
	bool has_modules;
	bool has_sought_clock;
	uint64_t loop_clock;		/* address of an event loop's clock; 0 if there is none */
	struct capture capture;
	struct merged_stack stack;
};

/*---- Files ----*/

/* Where ljspy can open the file, or NULL. */
char *process_openable_path(const struct lua_process *process, const struct mapped_file *file);

/*---- Modules ----*/

/* Keep what a probe found of the file, the context: a recognise_evidence. */
void process_keep_verdict(void *context, const char *probe, const char *verdict);

/* What another process with the same file has told, and what this one tells others. */
void process_take_over(const struct lua_process *process, struct luajit_module *luajit);

void process_pass_on(const struct lua_process *process, const struct luajit_module *luajit);

/* Do the executable files differ from the image's modules? */
bool process_modules_differ(const struct lua_process *process);

/* Replace the image's modules by what is mapped now. 0 or -ENOMEM. */
int process_set_modules(struct lua_process *process);

/* The loading of a file that holds the VM, or NULL. */
struct luajit_module *process_luajit_module(const struct lua_process *process, const struct vm_code *vm);

/*---- Layouts ----*/

/* The states of a VM whose layout is confirmed are known from now on. */
void process_add_globals(struct lua_process *process, const struct luajit_module *luajit);

/* Confirm the layout by the objects of this state. */
bool process_confirm_by(struct lua_process *process, struct luajit_module *luajit, uint64_t g);

/* Settle it while the target runs, if that can be. */
void process_confirm_running(struct lua_process *process, struct luajit_module *luajit);

/*
 * What a stack says of the layout. The objects are looked at while the target
 * runs; a layout that they do not confirm then is looked at when it is held next.
 */
void process_weigh_stack(struct lua_process *process);

/*---- States that come and go ----*/

/* Search for states of the VM. */
void process_find_states(struct lua_process *process, struct luajit_module *luajit);

/* The states that the captured thread, which is held, runs though nothing was known of them. */
bool process_take_up_running(struct lua_process *process);

/* The same of a thread that is not held, by what lies on its stack, which may be NULL. */
bool process_take_up_on_stack(struct lua_process *process, const struct mapping *stack);

/*
 * Did a state that is not known run there? Then it is looked for where threads are
 * held next. And native code without a way on may be of a library that was just loaded.
 */
void process_note_unknown(struct lua_process *process);

/* Another state may come to be where one was. */
void process_drop_closed(struct lua_process *process);

/* Is any state of the VM known? */
bool process_has_global(const struct lua_process *process, const struct vm_code *vm);

#endif

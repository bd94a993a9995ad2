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
#include "src/linux/files/file_place.h"
#include "src/linux/files/unpacked.h"
#include "src/linux/proc/live_memory.h"
#include "src/linux/proc/maps.h"
#include "unwind/capture/lua_image.h"
#include "unwind/native/native.h"
#include "unwind/nginx/connections.h"
#include "unwind/stack/merge.h"
#include "unwind/symbols/symbols.h"

enum {
	CONFIRM_TRIES_MAX = 50, /* per layout, each while a thread is held */
	/*
	 * How many clues that lead to no state ljspy follows between two refreshes of
	 * the process. Each costs a microsecond or two of the hold.
	 */
	CLUES = 256,
	STACK_SEARCHES = 50, /* between two refreshes, on stacks of threads that are not held */
};

/* What ljspy found in a file where it is mapped. Lives as long as the process: frames point to it. */
struct luajit_module {
	dev_t device;
	uint64_t inode;
	uint64_t base;
	char *path;
	struct file_identity *identity; /* NULL: no other process shares what is found */
	struct known_vm known;
	unsigned int tries;  /* tries in holds that failed in a row */
	unsigned int unread; /* refreshes since it could not be read, or had no LuaJIT in it */
	/*
	 * Since the last confirmation: stacks with its frames, those that do not fit, and how many cause a
	 * check.
	 */
	uint64_t samples, doubts, doubts_until_check;
	uint64_t doubted; /* the state whose objects the next hold checks; 0 if none */
	struct vm_states states;
	bool is_mapped;
	struct luajit_module *next;
};

struct lua_process {
	pid_t pid;
	int pagemap;                           /* as from resident_open() */
	uint16_t machine;                      /* EM_X86_64; for a core file also EM_AARCH64 */
	bool has_pagemap;                      /* this refresh has asked for it */
	bool wants_variables;                  /* values are wanted for lua_process_variables() */
	struct live_memory *live;              /* NULL for a core file */
	struct core_file *core;                /* NULL for a process; not owned */
	struct memory *memory;                 /* of either */
	struct page_cache *pages[STILL_COUNT]; /* of memory, while nothing runs; NULL before */
	struct known_files *files, *own_files; /* own_files is NULL if they are shared */
	struct maps *maps;
	struct mapped_file unpacked[UNPACKED_MAX]; /* as of the last look at the modules */
	size_t unpacked_count, unpacked_more;      /* that have no room */
	struct image *image;
	struct lua_image *lua;
	struct lua_objects *objects;
	struct snapshot *snapshot;
	struct value_capture *values; /* NULL: values are not wanted */
	struct namer_options options;
	const struct given_layout *given; /* NULL: ljspy recognises layouts */
	struct symbols *symbols;
	struct native_unwinder *native;
	struct vm_decoder *decoder;
	struct namer *namer;
	struct luajit_module *luajits;
	struct luajit_module *unmapped; /* they were mapped once */
	unsigned int clues_left, searches_left, stack_searches_left;
	bool wants_search; /* a thread ran no known state */
	bool wants_refresh, has_new_modules;
	bool has_modules;
	unsigned int late_looks;     /* for files that are late, since the last one was found */
	unsigned int clock_searches; /* for that, so far */
	uint64_t loop_clock;         /* address of an event loop's clock; 0 if there is none */
	int64_t loop_clock_ahead_ns; /* of ljspy's CLOCK_MONOTONIC */
	bool loop_clock_is_apart;    /* how far is unknown: then loop_clock is 0 */
	bool has_sought_clock;
	struct connections connections; /* of the ngx_cycle_t at connections_cycle; 0: not known yet */
	uint64_t connections_cycle;
	struct request_places *places; /* NULL: it is no nginx; owned */
	bool has_timer_flags;          /* lua_process_has_timer_flags() */
	unsigned int timer_flag_tries;
	struct capture capture;
	bool lacks_native;       /* of a capture of a running thread: see lua_process_capture_running() */
	char route[ROUTE_BYTES]; /* of the request captured last */
	struct detail_capture *details; /* NULL: details are not wanted */
	struct zones *zones;            /* lua_process_find_zones(); NULL: not wanted; owned */
	struct resty_lock_memo lock;
	struct merged_stack stack;
};

/*---- Files ----*/

/* Where ljspy can open the file; to be cleared. False when memory is short. */
bool process_find_file(const struct lua_process *process, const struct mapped_file *file,
		       struct file_place *ret_place);

/*---- Modules ----*/

/* A recognise_evidence: keep what a probe found of the file, the context. */
void process_keep_verdict(void *context, const char *probe, const char *verdict);

/* Take over what another process with the same file has found; pass on what this one has found. */
void process_take_over(struct lua_process *process, struct luajit_module *luajit);

void process_pass_on(struct lua_process *process, const struct luajit_module *luajit);

/* What a refresh has opened to tell whether code is its file's: at its end. */
void process_close_pagemap(struct lua_process *process);

/* Look for unpacked programs, before the next two functions. */
void process_find_unpacked(struct lua_process *process);

/* Do the executable files, and unpacked programs, differ from the image's modules? */
bool process_modules_differ(struct lua_process *process);

/*
 * Read files again that could not be read: a disk may answer by now, ljspy may wait by now. The same of those
 * without LuaJIT whose code is no longer the file's. Tries ever more seldom.
 * True if one is read now, with another result: then set the modules.
 */
bool process_read_unread(struct lua_process *process);

/* Look again for files of modules that were late, ever more seldom while none is there. */
void process_find_late_files(struct lua_process *process);

/* Replace the image's modules with what is mapped now. 0 or -ENOMEM. */
int process_set_modules(struct lua_process *process);

/* The module that contains the VM, or NULL. */
struct luajit_module *process_luajit_module(const struct lua_process *process, const struct vm_code *vm);

/*---- Layouts ----*/

/* Make the states of a VM whose layout is confirmed known. */
void process_add_globals(struct lua_process *process, const struct luajit_module *luajit);

/* Is a state known, but its objects have not confirmed the layout? */
bool process_is_unconfirmed(const struct luajit_module *luajit);

/* Confirm the layout by the objects of this state. False if they do not. */
bool process_confirm_by(struct lua_process *process, struct luajit_module *luajit, uint64_t g);

/* Confirm the layout while the target runs, if possible. */
void process_confirm_running(struct lua_process *process, struct luajit_module *luajit);

/*
 * Judge the layout by the stack. If too many stacks do not fit, check the objects
 * while the target runs; if they do not confirm the layout, check them in the next hold.
 */
void process_weigh_stack(struct lua_process *process);

/*---- Details ----*/

/* 0 or -ENOMEM. */
int process_open_details(struct lua_process *process);
void process_close_details(struct lua_process *process);

/* Find Kong or APISIX in the states that may have one. */
void process_find_gateways(struct lua_process *process);

/* Find where the requests of nginx may be. */
void process_find_request_places(struct lua_process *process);

/* Find what of the process does not change while it runs. */
void process_refresh_details(struct lua_process *process);

/* While the thread is held or asleep: read what details need beside the capture. */
void process_capture_details(struct lua_process *process, const struct capture_hints *hints);

/* There is no such moment, or nothing of it is of interest. */
void process_forget_details(struct lua_process *process);

/*
 * Add the frames of details and errors to those of the stack named last; of a coroutine that does not run
 * only details: what has ended it is no longer being raised. 0 or -ENOMEM.
 */
int process_add_details(struct lua_process *process, bool runs, const struct frame **ret_frames,
			size_t *ret_count);

/*---- States that come and go ----*/

/* Search for states of the VM. */
void process_find_states(struct lua_process *process, struct luajit_module *luajit);

/* Make known the unknown states that the captured thread, which is held, runs. True if there are any. */
bool process_take_up_running(struct lua_process *process);

/* The same for a thread that is not held, by what is on its stack, which may be empty. */
bool process_take_up_on_stack(struct lua_process *process, const struct memory_range *stack);

/*
 * Note what the stack does not explain. If an unknown state ran, search for it in the
 * next holds. Native code that cannot be unwound may be of a library just loaded.
 */
void process_note_unknown(struct lua_process *process);

/* Drop states that are closed: another state may take their place. */
void process_drop_closed(struct lua_process *process);

/* Drop the VM's states: its code is mapped no longer, or its layout is not the known one. */
void process_drop_vm(struct lua_process *process, const struct vm_code *vm);

/* Is any state of the VM known? */
bool process_has_global(const struct lua_process *process, const struct vm_code *vm);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * lua_process: one process, and all that ljspy needs to read stacks from it.
 *
 * Connects what is mapped in the process to the unwinder: its modules, the LuaJIT
 * VMs in them and their states. The process may run; only lua_process_capture()
 * needs its thread to be stopped or asleep.
 */
#ifndef LJSPY_LUA_PROCESS_H
#define LJSPY_LUA_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "luajit-layouts/recognise/recognise.h"
#include "memory/core_file.h"
#include "output/sample/functions.h"
#include "output/sample/sample.h"
#include "src/inspect/given_layout.h"
#include "src/inspect/stack_states.h"
#include "unwind/allocation/allocation.h"
#include "unwind/capture/capture.h"
#include "unwind/details/resty_lock.h"
#include "unwind/elf/registers.h"
#include "unwind/names/namer.h"
#include "unwind/nginx/connections.h"
#include "unwind/nginx/light_threads.h"
#include "unwind/nginx/zones.h"
#include "unwind/stack/merged_stack.h"
#include "unwind/values/frame_values.h"

struct known_files;
struct lua_process;
struct maps;

/*
 * files keeps what ljspy finds out about files, for other processes; NULL if there
 * are none. functions and files must outlive the process. 0 or a negative errno.
 */
int lua_process_open(pid_t pid, struct functions *functions, struct known_files *files,
		     const struct namer_options *options, struct lua_process **ret_process);
void lua_process_close(struct lua_process *process);

/* The same for a process that left a core file, which must outlive it. It never changes. */
int lua_process_open_core(struct core_file *core, struct functions *functions,
			  const struct namer_options *options, struct lua_process **ret_process);

/*
 * Before the first refresh: use this layout for every VM in place of recognising it;
 * NULL: recognise it. It must outlive the process. A layout from a file is compared
 * neither with the code nor with the objects of a state.
 */
void lua_process_give_layout(struct lua_process *process, const struct given_layout *given);

/*
 * Read what is mapped: modules, VMs, states. This is cheap if nothing has
 * changed and the states of every VM are known; a thorough refresh always searches
 * for states. 0, or a negative errno when the process cannot be read.
 */
int lua_process_refresh(struct lua_process *process, bool thorough);
/* Did the last refresh find any? */
bool lua_process_has_new_modules(const struct lua_process *process);
/* May the last capture be in a new mapping? */
bool lua_process_wants_refresh(const struct lua_process *process);

/*
 * Read from a state what only a state can tell of a layout, and check whether its
 * objects confirm the layout. Do this while the thread is stopped or asleep: an
 * object in the middle of a change confirms nothing. Until the layout is confirmed,
 * the states found are not used. Confirming does nothing if nothing is open.
 */
bool lua_process_needs_confirming(const struct lua_process *process);
void lua_process_confirm(struct lua_process *process); /* also checks a layout in doubt again */

/* A module that contains a VM, whether its layout is known or not. */
struct lua_module {
	const char *path;
	enum recognise_status status; /* RECOGNISE_OK or RECOGNISE_UNKNOWN_LAYOUT */
	const struct vm_code *vm;     /* NULL unless the status is RECOGNISE_OK */
	uint64_t base;
	bool is_unconfirmed; /* a state is known, but its objects have not confirmed the layout */
	const char *verdict; /* the last thing found out about its layout, in words */
};

size_t lua_process_module_count(const struct lua_process *process);
/*
 * A file that may hold an interpreter, but could not be read, and how many there are; NULL and 0 if there are
 * none.
 */
const char *lua_process_unread_file(const struct lua_process *process, size_t *ret_count);
/* How many unpacked programs ljspy has not looked into, for lack of room (src/linux/files/unpacked.h). */
size_t lua_process_unsearched_programs(const struct lua_process *process);
/*
 * As of the last refresh: 0 if it runs LuaJIT, -ENOEXEC if not, -ENODATA if an unread file may be LuaJIT's.
 */
int lua_process_lacks_luajit(const struct lua_process *process);
struct lua_module lua_process_module(const struct lua_process *process, size_t index);
/* The verdict on a VM whose layout is not known, also if it is mapped no longer; NULL if there is none. */
const char *lua_process_unknown_layout(const struct lua_process *process);
size_t lua_process_global_count(const struct lua_process *process);
const struct global_state *lua_process_global(const struct lua_process *process, size_t index);
/* Which VM has its global_State there? False if none that is known so far. */
bool lua_process_find_global(const struct lua_process *process, uint64_t g, size_t *ret_index);
const char *lua_process_global_path(const struct lua_process *process, size_t index); /* of its VM's file */
struct memory *lua_process_memory(struct lua_process *process);
const struct core_file *lua_process_core(const struct lua_process *process); /* NULL for a process */

enum still {
	/* what was read at the last such moment is likely to be read again: it is copied in one read */
	STILL_SAME,
	STILL_OTHER, /* each such moment reads something else */
	STILL_COUNT,
};

/*
 * From begin to end, nothing of the process runs: each page that something is read from is copied once. For
 * many small reads close together; copies of stacks still go by their own bounds. No effect if memory is
 * short.
 */
void lua_process_begin_still(struct lua_process *process, enum still still);
void lua_process_end_still(struct lua_process *process);

/* What is mapped in it, as of the last refresh. */
const struct maps *lua_process_maps(const struct lua_process *process);
int lua_process_refresh_maps(struct lua_process *process, bool *ret_changed); /* as maps_refresh() */
struct known_files *lua_process_files(const struct lua_process *process);     /* those given, or its own */
/* When its event loop began the current turn, see loop_clock.h; 0 if unknown. */
uint64_t lua_process_loop_clock(struct lua_process *process);
/* After that: the loop has a clock, but how far it is ahead of ljspy's is unknown (time_namespace.h). */
bool lua_process_loop_clock_is_apart(const struct lua_process *process);

/*
 * Call this just before a thread is held, see capture_rehearse(). It is worthwhile,
 * and wanted, if the guesses were not good enough the last time.
 */
bool lua_process_wants_rehearsal(const struct capture_hints *hints);
void lua_process_rehearse(struct lua_process *process, struct capture_hints *hints);

/* Copy what belongs to a thread that is stopped or sleeps with these registers. */
void lua_process_capture(struct lua_process *process, const struct registers *registers,
			 struct capture_hints *hints);

/*
 * The same while the thread runs on, see capture_running(). place says
 * where its native stack is. Native frames are unknown; with
 * lacks_native, which is for recordings whose other stacks have them, the stack says so.
 * Unwind only a whole capture.
 */
enum capture_verdict lua_process_capture_running(struct lua_process *process, const struct stack_place *place,
						 bool lacks_native, struct capture_hints *hints);

/* An address on the native stack of the first thread; 0 if unknown. */
uint64_t lua_process_first_stack(const struct lua_process *process);

/* Copy coroutines of a global_State while nothing runs; leave out addresses that hold no Lua thread. */
void lua_process_capture_coroutines(struct lua_process *process, size_t global, const uint64_t *addresses,
				    size_t count);

/*
 * Of the coroutines captured last: how many, the state of each, and its frames as from lua_process_unwind().
 */
size_t lua_process_coroutine_count(const struct lua_process *process);
/* Were details asked for, which are values of the program? */
bool lua_process_wants_details(const struct lua_process *process);

uint64_t lua_process_coroutine_address(const struct lua_process *process, size_t index);
enum coroutine_state lua_process_coroutine_state(const struct lua_process *process, size_t index);
int lua_process_unwind_coroutine(struct lua_process *process, size_t index, const struct frame **ret_frames,
				 size_t *ret_count);

/*
 * Frames of the thread captured last, leaf first; valid until the next call.
 * *ret_state tells what its VM was doing. 0 or -ENOMEM. If many stacks do not fit
 * the layout, ljspy confirms it again. If that fails in many holds
 * (lua_process_confirm()), ljspy stops using the layout.
 */
int lua_process_unwind(struct lua_process *process, const struct frame **ret_frames, size_t *ret_count,
		       enum vm_state *ret_state);

/* The stack unwound last, as its frames were before they were named; valid until the next capture. */
const struct merged_stack *lua_process_stack(const struct lua_process *process);

/*
 * Note how much of its native stack the thread unwound last has in use, for its next capture. Will that show
 * more of the same stack?
 */
bool lua_process_note_unwound(const struct lua_process *process, struct capture_hints *hints);

/* From now on, copy what the values in Lua stacks lead to. 0 or -ENOMEM. */
int lua_process_want_values(struct lua_process *process);
bool lua_process_wants_values(const struct lua_process *process);

/*
 * Add the variables of a frame of the stack unwound last; before the next capture. 0 or -ENOMEM.
 * It adds none unless values are wanted.
 */
int lua_process_variables(struct lua_process *process, size_t frame, struct variables *variables);

/* What a builtin or lua_CFunction of a VM is, though no frame runs it. NULL when out of memory. */
const struct function *lua_process_function(struct lua_process *process, size_t global,
					    const struct function_object *function);

/* Append the package roots of its programs to a list, as package_path_add_roots() does. */
void lua_process_add_roots(const struct lua_process *process, char *list, size_t size);

/* Drop all pointers to functions; frames handed out are no longer valid. */
void lua_process_forget_functions(struct lua_process *process);

/*
 * The trace that the thread unwound last runs, for sample.trace; NULL if none. Valid until the next capture.
 */
const struct trace *lua_process_trace(const struct lua_process *process);

/* The global_State of that trace, for sample.trace_g; 0 if there is none. */
uint64_t lua_process_trace_g(const struct lua_process *process);

/*
 * The instruction of that trace, or else of the innermost Lua function that is not compiled, for
 * sample.code_pc.
 */
uint64_t lua_process_code_pc(const struct lua_process *process);

/*
 * The prototype of the innermost Lua function of the stack unwound last, for sample.proto; 0 if there is
 * none.
 */
uint64_t lua_process_proto(const struct lua_process *process);

/*
 * What the collector of the VM that was unwound last does at now_ns, for sample.gc; once for each sample. The
 * thread has used cpu_ns of CPU time.
 */
struct sample_gc lua_process_gc(const struct lua_process *process, uint64_t now_ns, uint64_t cpu_ns);

/* What the thread unwound last allocates; false if it was not about to, or ran on while it was read. */
bool lua_process_allocation(struct lua_process *process, struct allocation *ret_allocation);

/* The copy of the thread that was captured last; and did it run native code, neither the VM's nor a trace? */
struct memory *lua_process_copy(const struct lua_process *process);
bool lua_process_in_native(const struct lua_process *process);

/* The states captured with the thread that was captured last. */
size_t lua_process_captured_count(const struct lua_process *process);
const struct global_state *lua_process_captured(const struct lua_process *process, size_t index);

/*
 * The phase of the request that the Lua of the thread or coroutine unwound last works
 * for, for sample.phase; NULL if there is none or it is unknown.
 */
const char *lua_process_phase(const struct lua_process *process);

/*
 * That request itself, for sample.request, if it was captured at time_ns, CLOCK_MONOTONIC. Its texts are
 * valid until the next call or capture.
 */
struct sample_request lua_process_request(struct lua_process *process, uint64_t time_ns);

/*
 * The lock of lua-resty-lock that the coroutine unwound last waits for. False if it waits for none, or it is
 * unknown.
 */
bool lua_process_find_lock(struct lua_process *process, struct resty_lock *ret_lock);

/*
 * Note where the memory is that nginx's processes share, for lua_process_find_zone_lock(). It may change at a
 * reload of the configuration, for new workers.
 */
void lua_process_find_zones(struct lua_process *process);

/* Does a thread that sleeps in a system call with this first argument wait for the lock of a zone? */
bool lua_process_sleeps_at_zone(const struct lua_process *process, uint64_t sleeps_at);

/*
 * The zone whose lock the thread unwound last waits for, as it spins or sleeps_at (0: it does not). False if
 * it waits for none, or it is unknown.
 */
bool lua_process_find_zone_lock(struct lua_process *process, uint64_t sleeps_at,
				char ret_name[static ZONE_NAME_BYTES]);

/* How to read requests of nginx; unknown if the process is none. */
const struct request_members *lua_process_request_members(const struct lua_process *process);

/*
 * nginx_request_read(), with the route that a gateway has matched for it. Nothing of the process may run
 * meanwhile, or the request must be read again.
 */
bool lua_process_read_request(struct lua_process *process, uint64_t address,
			      struct nginx_request *ret_request);

/* The route that a gateway has matched for a request that was read just now, too. */
void lua_process_match_route(struct lua_process *process, struct nginx_request *request);

/* Its connections; false if it has none: a master, or no nginx that ljspy can read. */
bool lua_process_connections(struct lua_process *process, struct connections *ret_connections);

/*
 * While nothing runs: do the flags of connections' events tell which have a timer? They are compared with the
 * tree of timers until they agree once. False if they have not so far.
 */
bool lua_process_has_timer_flags(struct lua_process *process);

/*
 * Capture the light threads of a request and the coroutines that its Lua works in, as
 * lua_process_capture_coroutines() does, and find its phase: NULL if there is none, or no Lua
 * works for it. *ret_more is how many more there are. False if there are no coroutines.
 */
bool lua_process_capture_request(struct lua_process *process, uint64_t request, const char **ret_phase,
				 size_t *ret_more);

/* The request and the context that a lua_State refers to. False if it refers to no request. */
bool lua_process_light_thread(struct lua_process *process, uint64_t thread,
			      struct light_thread *ret_light_thread);

/*
 * The coroutines that work for a request, and the request's phase; NULL if it is unknown. None if no Lua
 * works for it. Their VM need not be known yet.
 */
void lua_process_light_threads(struct lua_process *process, uint64_t request, const char **ret_phase,
			       struct light_threads *ret_threads);

#endif

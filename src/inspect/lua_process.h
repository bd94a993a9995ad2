/* SPDX-License-Identifier: MIT */
/*
 * lua_process: one process, and all that it takes to read stacks from it.
 *
 * Ties what is mapped in the process to the unwinder: its modules, the
 * LuaJIT VMs in them and their states. The process may be running; only
 * lua_process_capture() needs the thread at hand to hold still.
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
#include "unwind/capture/capture.h"
#include "unwind/elf/registers.h"
#include "unwind/names/namer.h"

struct known_files;
struct arm64_registers;
struct lua_process;

/*
 * What is found out about files is kept in files, for other processes; NULL if
 * there are none. functions and files must outlive it. 0 or a negative errno.
 */
int lua_process_open(pid_t pid, struct functions *functions, struct known_files *files,
		     const struct namer_options *options, struct lua_process **ret_process);
void lua_process_close(struct lua_process *process);

/* The same for a process that left a core file, which must outlive it. It holds still for ever. */
int lua_process_open_core(struct core_file *core, struct functions *functions,
			  const struct namer_options *options, struct lua_process **ret_process);

/*
 * Before the first look: take this layout, which must outlive the process, for
 * every VM in place of recognising it. Trusted means that it is neither held
 * against the code nor against the objects of a state.
 */
void lua_process_give_layout(struct lua_process *process, const struct layout *layout, bool trusted);

/*
 * Look at what is mapped: modules, VMs, states. Cheap if nothing has changed
 * and every VM's states are known; thorough looks for states in any case.
 * 0, or a negative errno when the process cannot be read.
 */
int lua_process_refresh(struct lua_process *process, bool thorough);
bool lua_process_has_new_modules(const struct lua_process *process);	/* that the last look has found */
bool lua_process_wants_look(const struct lua_process *process);	/* what was captured last may be in a new mapping */

/*
 * What only a state can tell of a layout, and whether its objects confirm the
 * layout: to be found out while the thread at hand holds still, since an
 * object in the middle of a change confirms nothing. Until then the states
 * that were found are not used. Settling does nothing where nothing is open.
 */
bool lua_process_needs_confirming(const struct lua_process *process);
void lua_process_confirm(struct lua_process *process);	/* and look again at a layout that is in doubt */

/* A module with a VM whose layout is known, or with one that is not. */
struct lua_module {
	const char *path;
	enum recognise_status status;	/* RECOGNISE_OK or RECOGNISE_UNKNOWN_LAYOUT */
	const struct vm_code *vm;	/* NULL unless it is OK */
	uint64_t base;
	const char *verdict;		/* the last thing found out about its layout, in words */
};

size_t lua_process_module_count(const struct lua_process *process);
struct lua_module lua_process_module(const struct lua_process *process, size_t index);
size_t lua_process_global_count(const struct lua_process *process);
const struct global_state *lua_process_global(const struct lua_process *process, size_t index);
const char *lua_process_global_path(const struct lua_process *process, size_t index);	/* of its VM's file */
struct memory *lua_process_memory(struct lua_process *process);
struct known_files *lua_process_files(const struct lua_process *process);	/* those given, or its own */
/* When its event loop began the turn at hand, see loop_clock.h; 0 if that is not known. */
uint64_t lua_process_loop_clock(struct lua_process *process);

/*
 * Just before a thread is held, see capture_rehearse(). It is worth while, and
 * wanted, if the guesses were not good enough the last time.
 */
bool lua_process_wants_rehearsal(const struct capture_hints *hints);
void lua_process_rehearse(struct lua_process *process, struct capture_hints *hints);

/* Copy what belongs to a thread that holds still with these registers. */
void lua_process_capture(struct lua_process *process, const struct registers *registers,
			 struct capture_hints *hints);

/*
 * The same while the thread runs on, see capture_running(): stack_address is on
 * its native stack, or 0 if it is the only thread. Unwind what holds only.
 */
enum capture_verdict lua_process_capture_running(struct lua_process *process, uint64_t stack_address,
						 struct capture_hints *hints);

/* An address on the native stack of the first thread; 0 if that is not known. */
uint64_t lua_process_first_stack(const struct lua_process *process);

/* Copy coroutines of a global_State while nothing runs; what is no thread at its address is left out. */
void lua_process_capture_coroutines(struct lua_process *process, size_t global,
				    const uint64_t *addresses, size_t count);

/* Of the coroutines captured last: how many, what each is doing, and its frames as lua_process_unwind() has them. */
size_t lua_process_coroutine_count(const struct lua_process *process);
enum coroutine_state lua_process_coroutine_state(const struct lua_process *process, size_t index);
int lua_process_unwind_coroutine(struct lua_process *process, size_t index,
				 const struct frame **ret_frames, size_t *ret_count);

/*
 * Frames of a thread of an arm64 core file, as lua_process_unwind() has them,
 * without native ones but what runs.
 */
int lua_process_unwind_arm64(struct lua_process *process, const struct arm64_registers *registers,
			     const struct frame **ret_frames, size_t *ret_count);

/*
 * Frames of the thread captured last, leaf first; valid until the next call.
 * Where many of them do not fit, the layout is confirmed anew, and if it is not
 * when the target is held time and again (lua_process_confirm()), not used any more.
 * ret_state tells what its VM was doing. 0 or -ENOMEM.
 */
int lua_process_unwind(struct lua_process *process, const struct frame **ret_frames,
		       size_t *ret_count, enum vm_state *ret_state);

/* Nothing of it points to a function any more; frames handed out are no longer valid. */
void lua_process_forget_functions(struct lua_process *process);

/* Of the thread unwound last: the trace that runs, as sample.trace has it; valid until the next capture. */
const struct trace *lua_process_trace(const struct lua_process *process);

/*
 * Of the thread or coroutine unwound last: the phase of the request that its Lua works
 * for, as sample.phase has it; NULL if there is none or it is not known.
 */
const char *lua_process_phase(const struct lua_process *process);

#endif

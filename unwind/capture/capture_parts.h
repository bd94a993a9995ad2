/* SPDX-License-Identifier: MIT */
/*
 * capture_parts: what the parts of capture share. Private to capture*.c.
 */
#ifndef LJSPY_CAPTURE_PARTS_H
#define LJSPY_CAPTURE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/capture/capture.h"

enum {
	PAGE_SIZE = 4096,
	STACK_PAGES_MAX = CAPTURE_STACK_BYTES_MAX / PAGE_SIZE + 2,
	/*
	 * Copied below the stack pointer: the red zone (128 bytes; System V ABI 3.2.2), and the C frame that
	 * the VM makes when it resumes a coroutine, and in which ljspy then finds the coroutine (lj_frame.h:
	 * CFRAME_SIZE).
	 */
	BELOW_STACK_BYTES = 256,
};

/*---- Native stack ----*/

/* No copy of the stack goes beyond this address. */
uint64_t capture_stack_limit(const struct capture *capture, const struct capture_hints *hints);

/* List the pages from the end of the stack's copy up to end; returns how many. At most STACK_PAGES_MAX. */
size_t capture_stack_ranges(const struct capture *capture, const struct capture_hints *hints, uint64_t end,
			    struct memory_range *ranges);

/* Move the end of the stack's copy to the last page that could be read. */
void capture_note_stack(struct capture *capture, struct capture_hints *hints,
			const struct memory_range *ranges, size_t count);

/* Copy the native stack up to end, as far as it goes. */
void capture_extend_stack(struct capture *capture, struct capture_hints *hints, uint64_t end);

/*
 * Do all length bytes at the address lie on the copied native stack? Extends the copy if they may lie
 * further out.
 */
bool capture_reach_stack(struct capture *capture, struct capture_hints *hints, uint64_t address,
			 size_t length);

/* Copy [begin, end) of the thread's own stack; the thread runs on another one. */
void capture_own_stack(struct capture *capture, const struct memory_range *own, uint64_t begin, uint64_t end);

/* Read a word of the copied native stack; false outside of it. */
bool capture_stack_word(const struct capture *capture, uint64_t address, uint64_t *ret_word);

/*---- Global fields of global_States ----*/

/* Add a view of the global_State to the capture, from the snapshot. */
void capture_view_global(struct capture *capture, struct global_state *global);

/* The part of a global_State that holds what a view has. */
struct memory_range capture_global_range(const struct global_state *global);

/* Does this sample read the global_State in any case? */
bool capture_wants_global(const struct capture *capture, const struct global_state *global,
			  const struct capture_hints *hints);

/* If there are more than CAPTURE_GLOBALS_MAX: add states whose C frames lie on the copied stack. */
void capture_other_globals(struct capture *capture);

/* The array of traces and its size (jit_State.trace, sizetrace). */
struct memory_range capture_traces_range(const struct global_state *global);

/*---- Lua threads ----*/

/* Capture the Lua threads that run on this native stack; copy the stack as far as they need. */
void capture_threads(struct capture *capture, struct capture_hints *hints);

/*---- Requests ----*/

/* Capture the request that the innermost Lua thread works for. */
void capture_request(struct capture *capture, struct capture_hints *hints);

/* If no Lua thread runs in a known nginx: capture the requests that words on the native stack refer to. */
void capture_stack_requests(struct capture *capture, const struct capture_process *process,
			    const struct capture_hints *hints);

/* Capture the parents of nginx's coroutines: they wait for them or beside them, not on the C stack. */
void capture_parents(struct capture *capture);

/*---- Lua stacks and what is on them ----*/

/* Where the thread's Lua stack lies. */
struct memory_range capture_lua_stack_range(const struct lua_thread *thread);

/* Copy the Lua stacks of all captured threads. */
void capture_lua_stacks(struct capture *capture);

/* The address of the object in a slot if it may be a function; else 0. */
uint64_t capture_function_in_slot(const struct layout *layout, uint64_t value);

/*
 * Copy every function that a slot holds, live or stale: a superset of the
 * functions that have frames, no matter where the top turns out to be.
 */
void capture_stack_functions(struct capture *capture, struct lua_objects *objects, struct lua_thread *thread);

/*---- Code that was made at run time ----*/

/* Copy the traces that the global_State runs or leaves, and the functions and prototypes they refer to. */
void capture_traces(struct capture *capture, struct lua_objects *objects, const struct global_view *view);

/*
 * Copy the code that runs if it is in no module and in no known trace. LuaJIT generates
 * stubs of exits and of FFI callbacks, which jump to the VM, the latter by the first word
 * of their page. Other code made at run time is unwound by what it does (code_rules.h).
 */
void capture_made_code(struct capture *capture);

/*---- Values ----*/

/*
 * If they are wanted, copy what the values in the captured threads' stacks lead to;
 * has_registers: capture->registers are those of the native thread that runs them.
 */
void capture_values(struct capture *capture, const struct capture_process *process, bool has_registers);

/*---- The whole ----*/

/* Copy all that changes while the thread runs. */
void capture_stacks(struct capture *capture, const struct capture_process *process,
		    const struct registers *registers, struct capture_hints *hints);

/* Copy the functions on the Lua stacks of the captured threads. */
void capture_functions(struct capture *capture, struct lua_objects *objects);

/* End the copying: seal the snapshot, and note the hints. */
void capture_finish(struct capture *capture, struct capture_hints *hints);

#endif

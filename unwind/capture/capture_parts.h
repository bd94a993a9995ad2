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
	RED_ZONE = 128,		/* below the stack pointer (System V ABI 3.2.2) */
};

/*---- Native stack ----*/

/* The pages from where the copy of the stack ends up to end. */
size_t capture_stack_ranges(const struct capture *capture, const struct capture_hints *hints,
			    uint64_t end, struct memory_range *ranges);

/* The copy reaches as far as its pages could be read. */
void capture_note_stack(struct capture *capture, struct capture_hints *hints,
			const struct memory_range *ranges, size_t count);

/* Copy the native stack up to there, as far as it goes. */
void capture_extend_stack(struct capture *capture, struct capture_hints *hints, uint64_t end);

/* Is all of it on the copied native stack? */
bool capture_in_stack(const struct capture *capture, uint64_t address, size_t length);

/* The same; the copy is extended if it may be further out. */
bool capture_reach_stack(struct capture *capture, struct capture_hints *hints, uint64_t address,
			 size_t length);

/* Copy what lies in [begin, end) of the thread's own stack, which is not the one that it runs on. */
void capture_own_stack(struct capture *capture, const struct memory_range *own, uint64_t begin, uint64_t end);

/* A word of the copied native stack; false outside of it. */
bool capture_stack_word(const struct capture *capture, uint64_t address, uint64_t *ret_word);

/*---- Global fields of global_States ----*/

/* The global fields of a global_State; false if they cannot be read. */
bool capture_load_view(struct memory *memory, struct global_state *global,
		       struct global_view *ret_view);

/* Add what the snapshot has of the global_State. */
void capture_view_global(struct capture *capture, struct global_state *global);

/* The part of a global_State that holds vmstate, cur_L and jit_base. */
struct memory_range capture_global_range(const struct global_state *global);

/* Is this global_State to be read in each sample? */
bool capture_wants_global(const struct capture *capture, const struct global_state *global,
			    const struct capture_hints *hints);

/* Add the states whose C frames lie on the copied stack, where there are more than are read anyway. */
void capture_other_globals(struct capture *capture);

/* The array of traces and its size (jit_State.trace, sizetrace). */
struct memory_range capture_traces_range(const struct global_state *global);

/*---- Lua threads ----*/

/* The Lua threads that run on this native stack; it is copied as far as they need. */
void capture_threads(struct capture *capture, struct capture_hints *hints);

/*---- Requests ----*/

/* The request that the innermost Lua thread works for. */
void capture_request(struct capture *capture, struct capture_hints *hints);

/* Coroutines that nginx runs have no caller on the C stack but parents that wait for them or beside them. */
void capture_parents(struct capture *capture);

/*---- Lua stacks and what is on them ----*/

/* Where the thread's Lua stack lies. */
struct memory_range capture_lua_stack_range(const struct lua_thread *thread);

/* The Lua stacks of all captured threads. */
void capture_lua_stacks(struct capture *capture);

/* The object in a slot if that may be a function's; else 0. */
uint64_t capture_function_in_slot(const struct layout *layout, uint64_t value);

/*
 * Every function that a slot holds, live or stale: a superset of the
 * functions that have frames, wherever the top turns out to be.
 */
void capture_stack_functions(struct capture *capture, struct lua_objects *objects,
			     struct lua_thread *thread);

/*---- Code that was made at run time ----*/

/* The traces that the global_State runs or leaves, and what they speak of. */
void capture_traces(struct capture *capture, struct lua_objects *objects,
		    const struct global_view *view);

/*
 * Code that is in no module: what LuaJIT generates besides traces, the stubs of
 * exits and of FFI callbacks, which jump to the VM, the latter by the first word
 * of their page; and what others make at run time, which is unwound by what it
 * does (code_rules.h).
 */
void capture_made_code(struct capture *capture);

/*---- The whole ----*/

/* All that changes while the thread runs. */
void capture_stacks(struct capture *capture, const struct lua_image *lua,
		    struct snapshot *snapshot, const struct registers *registers,
		    struct capture_hints *hints);

/* What the Lua stacks of the captured threads hold of functions. */
void capture_functions(struct capture *capture, struct lua_objects *objects);

/* Nothing more is copied. */
void capture_finish(struct capture *capture, struct capture_hints *hints);

#endif

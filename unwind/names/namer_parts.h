/* SPDX-License-Identifier: MIT */
/*
 * namer_parts: what the files of the namer share, and its callers need not know.
 *
 *	namer_libraries.c  what global_States tell: names of builtins and VM code, package.path
 *	namer_frames.c     the names of one frame
 *	namer_kinds.c      what fold.h is to know of a frame
 *	namer.c            the frames of a stack: which are shown, and the names that are kept
 */
#ifndef LJSPY_NAMER_PARTS_H
#define LJSPY_NAMER_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/hash.h"
#include "unwind/lua/builtins.h"
#include "unwind/lua/package_path.h"
#include "unwind/names/fold.h"
#include "unwind/names/namer.h"
#include "unwind/symbols/symbols.h"
#include "unwind/vm/vm_names.h"

/* Identifies a frame's function. Zero it first: the hash and comparison include padding. */
struct key {
	uint64_t code;   /* prototype's serial, function's address in memory, or machine code */
	uint64_t caller; /* serial of the calling prototype, 0 if none */
	uint64_t caller_pc;
	uint32_t kind;
	uint32_t detail; /* ffid of a builtin, number of a trace, DETAIL_LATE */
};

/* A function, and its line if it is native code. */
struct named {
	const struct function *function;
	uint32_t line;
};

struct cached {
	struct key key;
	UT_hash_handle hh;
	enum fold_kind kind;
	const char *work;    /* what these functions do, if they are LuaJIT's (vm_work.h); NULL if unknown */
	struct cached *late; /* if count is 0: the entry DETAIL_LATE, once the code was shown */
	bool is_nameless;    /* of such an entry: it has no name but its place in the module */
	size_t count;
	struct named named[]; /* innermost first; several only for inlined code */
};

/*
 * Names of builtins and VM code in one global_State. global_States of one VM share most of
 * them, so the namer reads only a few global_States.
 */
struct library {
	uint64_t g;
	const struct vm_code *vm;
	struct builtins builtins;
	struct vm_names vm_names;
	unsigned int tries_left; /* attempts left to name all handlers */
	UT_hash_handle hh;
};

/* The package.path of one global_State. */
struct program {
	uint64_t g;
	struct package_path path;
	uint64_t read_for; /* the stack for which path was read last */
	UT_hash_handle hh;
};

struct namer {
	const struct lua_image *lua;
	const struct image *image; /* lua_image_code(lua) */
	struct memory *live;
	struct namer_options options;
	struct functions *functions;
	struct symbols *symbols;
	struct cached *cache;
	struct library *libraries;
	struct program *programs;             /* LIBRARIES_MAX at most */
	struct symbol at[SYMBOL_INLINES_MAX]; /* symbols at the address being named */
	struct frame *frames;
	size_t frame_count, frame_size;
	size_t *merged; /* of each frame: the index of its merged frame */
	size_t merged_size;
	uint64_t stacks;       /* that were named so far */
	size_t inserted_bytes; /* of functions, for namer_insert() */
	/* The names of each frame of the current stack, and of the previous stack. */
	struct cached **names, **last_names;
	size_t last_count;
	uint8_t *kinds, *shown;
	size_t shown_size;
};

/* The address to look up. For a return address it lies within the call, not after it. */
static inline uint64_t code_address(const struct merged_frame *frame)
{
	return frame->pc - (frame->is_return_address ? 1 : 0);
}

/* namer_libraries.c */

void namer_forget_libraries(struct namer *namer);
void namer_forget_programs(struct namer *namer);

/* Read at the first call. NULL when memory is short, or where there are too many. */
const struct library *namer_library(struct namer *namer, const struct global_state *global);

/* A builtin's name. All global_States of a VM use the same ffids. NULL if none of them has a name. */
const char *namer_builtin_name(struct namer *namer, const struct global_state *global, uint8_t ffid);

/* The name under which a Lua module exports this C function, in any global_State of the VM; or NULL. */
const char *namer_offered_name(struct namer *namer, const struct global_state *global, uint64_t f);

/* The root of a file by the package.path of now, which is read once for all new functions of a stack. */
uint32_t namer_find_root(struct namer *namer, const struct global_state *global, const char *file);

/* Retry the handlers without a name. When all have one, forget the frames named without them. */
void namer_complete_vm_names(struct namer *namer);

/* A handler's name. Any state on this VM will do: all have the same names. */
const char *namer_find_vm_name(struct namer *namer, const struct vm_code *vm, uint64_t pc);

/* namer_frames.c */

/* Name the functions at a native pc. Return how many there are, or 0 when out of memory. */
size_t namer_name_native(struct namer *namer, uint64_t pc, struct named ret_named[static SYMBOL_INLINES_MAX]);

/* The same for a frame of any kind. */
size_t namer_name_frame(struct namer *namer, const struct merged_frame *frame,
			struct named ret_named[static SYMBOL_INLINES_MAX]);

/* namer_kinds.c */

/* Its name is only its place in the module: "libc.so.6+0x9a700". */
bool namer_is_nameless(const struct function *function, const struct module *module);

/* What the frame is to fold.h; function: the outermost of those that are at its address. */
enum fold_kind namer_kind_of(const struct namer *namer, const struct merged_frame *frame,
			     const struct function *function);

/* Is it native code of the C library? */
bool namer_is_in_libc(const struct namer *namer, const struct merged_frame *frame);

/*
 * Code without a name is the program's, and not LuaJIT's, where Lua has called it through the FFI. What
 * directly calls Lua from there is LuaJIT's (or looks alike: a function that a callback of the FFI was
 * given), and so is the innermost while garbage is collected. Of what else LuaJIT's API does for such code,
 * nothing tells.
 */
void namer_find_called_by_ffi(struct namer *namer, const struct merged_stack *stack);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * namer: turn merged frames into named frames.
 */
#ifndef LJSPY_NAMER_H
#define LJSPY_NAMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/sample/frame.h"
#include "output/sample/functions.h"
#include "unwind/capture/lua_image.h"
#include "unwind/names/fold.h"
#include "unwind/stack/merge.h"
#include "unwind/symbols/symbols.h"

/* How much native code to show. */
enum native_display {
	NATIVE_FOLD, /* what a Lua developer wants to see (fold.h) */
	NATIVE_ALL,  /* every native frame */
	NATIVE_NONE, /* only Lua functions, builtins and C functions */
};

struct namer_options {
	enum native_display native;
	bool traces;  /* show the running trace as a leaf */
	bool details; /* show what C functions work on (unwind/subjects/subjects.h) */
	enum error_display {
		ERRORS_HIDDEN,
		ERRORS_CAUGHT, /* show who catches an error that is being raised */
		ERRORS_VALUES, /* and its value */
	} errors;
};

struct namer;

/*
 * Make a namer. It reads string constants from live and interns all functions in functions.
 * It copies options; all other arguments must outlive it. NULL when out of memory.
 */
struct namer *namer_new(const struct lua_image *lua, struct memory *live, struct symbols *symbols,
			struct functions *functions, const struct namer_options *options);
void namer_free(struct namer *namer);

/* Forget all names and libraries: the image has new modules. */
void namer_reset(struct namer *namer);

/* Forget the global_State at g: it is gone, and another one may take its address. */
void namer_forget_global(struct namer *namer, uint64_t g);

/* Append the package roots seen so far to a list, as package_path_add_roots() does. */
void namer_add_roots(const struct namer *namer, char *list, size_t size);

/* Forget all cached names, and with them the references to functions. */
void namer_forget_names(struct namer *namer);

/*
 * Name the frames of a stack, leaf first. The namer owns *ret_frames, which stays
 * valid until the next call. Return 0 or -ENOMEM.
 */
int namer_name(struct namer *namer, const struct merged_stack *stack, const struct frame **ret_frames,
	       size_t *ret_count);

/*
 * Of the frames named last: the merged frame that a frame stands for; several stand for one with inlined
 * code.
 */
size_t namer_merged_index(const struct namer *namer, size_t index);

/*
 * The function of a merged frame of the stack named last, shown or not, and how fold() takes it. Of inlined
 * code, it is the outermost function. Code of the C library has no name here, but for __libc_start*() of
 * static programs.
 */
const struct function *namer_merged_function(const struct namer *namer, size_t index);
enum fold_kind namer_merged_kind(const struct namer *namer, size_t index);

#define NAMER_NO_FRAME SIZE_MAX /* namer_merged_index() of frames that namer_insert() has added */

/*
 * Add a frame with this text right above a merged frame, or where that would be if it is not shown. The
 * frames that namer_name() has returned are no longer valid. There may be new texts without end: after
 * the first few megabytes of them, all others are one frame. Return 0 or -ENOMEM.
 */
int namer_insert(struct namer *namer, size_t merged_index, const char *text, const struct frame **ret_frames,
		 size_t *ret_count);

/* The name of a function that no frame runs: a builtin or lua_CFunction. NULL when out of memory. */
const struct function *namer_function(struct namer *namer, struct global_state *global,
				      const struct function_object *function);

#endif

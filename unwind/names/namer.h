/* SPDX-License-Identifier: MIT */
/*
 * namer: from merged frames to frames with names.
 */
#ifndef LJSPY_NAMER_H
#define LJSPY_NAMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/sample/frame.h"
#include "output/sample/functions.h"
#include "unwind/capture/lua_image.h"
#include "unwind/stack/merge.h"
#include "unwind/symbols/symbols.h"

/* How much of the native code around Lua is shown. */
enum native_display {
	NATIVE_FOLD,		/* what a Lua developer wants to see, see fold.h */
	NATIVE_ALL,		/* every native frame there is */
	NATIVE_NONE,		/* Lua functions, builtins and C functions only */
};

struct namer_options {
	enum native_display native;
	bool traces;		/* show the trace being executed as a leaf */
};

struct namer;

/*
 * live reads string constants; functions receives all functions. NULL when
 * memory is short. All must outlive it.
 */
struct namer *namer_new(const struct lua_image *lua, struct memory *live, struct symbols *symbols,
			struct functions *functions, const struct namer_options *options);
void namer_free(struct namer *namer);

/* The image's modules have been replaced: forget what was read. */
void namer_reset(struct namer *namer);

/* The global_State is gone; there may be another one at its address. */
void namer_forget_global(struct namer *namer, uint64_t g);

/* Forget names, and with them all functions. */
void namer_forget_names(struct namer *namer);

/*
 * The frames of a stack, leaf first. They stay valid until the next call.
 * 0 or -ENOMEM.
 */
int namer_name(struct namer *namer, const struct merged_stack *stack,
	       const struct frame **ret_frames, size_t *ret_count);

#endif

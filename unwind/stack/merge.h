/* SPDX-License-Identifier: MIT */
/*
 * merge: native and Lua frames of one captured thread, in their true order.
 *
 * The native stack is walked from its leaf. Wherever it passes through the
 * VM or through a trace, the Lua frames that run there are put in its place,
 * down to the one that native code had called; the native frames outside of
 * it follow. What cannot be known is a lost frame with its reason.
 */
#ifndef LJSPY_MERGE_H
#define LJSPY_MERGE_H

#include "unwind/capture/capture.h"
#include "unwind/elf/image.h"
#include "unwind/lua/lua_objects.h"
#include "unwind/native/native.h"
#include "unwind/native/vm_decoder.h"
#include "unwind/stack/merged_stack.h"

/*
 * Fill the stack, replacing what it held. What the interpreter had half done is
 * finished in the capture. -ENOMEM leaves the stack cut short.
 */
int merge_stacks(struct capture *capture, struct image *image,
		 struct lua_objects *objects, struct native_unwinder *native,
		 struct vm_decoder *decoder, struct merged_stack *stack);

#endif

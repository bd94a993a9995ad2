/* SPDX-License-Identifier: MIT */
/*
 * merge: put native and Lua frames of one captured thread in their true order.
 *
 * The merge walks the native stack from its leaf. Where the stack passes through
 * the VM or a trace, the Lua frames that run there take its place, down to the
 * one that native code called; the native frames further out follow. What cannot
 * be known becomes a lost frame with its reason.
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
 * Fill the stack; replaces what it held. Finishes in the capture what the interpreter
 * had half done. 0, or -ENOMEM, which leaves the stack cut short.
 */
int merge_stacks(struct capture *capture, struct image *image, struct lua_objects *objects,
		 struct native_unwinder *native, struct vm_decoder *decoder, struct merged_stack *stack);

#endif

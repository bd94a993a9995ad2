/* SPDX-License-Identifier: MIT */
/*
 * merge_vm: native frames of LuaJIT's interpreter.
 *
 * The VM has no unwind tables for all of its code, but its C frame always
 * looks the same and leads to the Lua thread whose frames it runs. A frame
 * that is being set up, left, or has been given up by an error is none of a thread's.
 */
#ifndef LJSPY_MERGE_VM_H
#define LJSPY_MERGE_VM_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/elf/image.h"
#include "unwind/stack/merge_walk.h"

/* The VM's code was stopped or interrupted here. */
enum passed merge_pass_vm_leaf(struct merge *merge, const struct vm_code *vm);

/* The VM's code has called what was passed last. */
enum passed merge_pass_vm_caller(struct merge *merge, const struct vm_code *vm);

/*
 * Does the walk stand on another stack than the thread's own, on which Lua has run
 * into the native code that went over to this one?
 */
bool merge_has_switched_stack(const struct merge *merge);

/*
 * Native unwinding has failed. The C frames of the Lua threads are linked
 * whatever the native frames between them are: go on at the next one.
 */
bool merge_resynchronise(struct merge *merge);

/*
 * Is the leaf one of the VM's own routines that C has called, such as
 * lj_vm_floor() below lj_vm_foldarith()? It has nothing of the interpreter's
 * half done, whatever is in the interpreter's registers meanwhile.
 */
bool merge_is_routine_of_c(const struct merge *merge, const struct vm_code *vm);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * merge_vm: pass native frames of LuaJIT's interpreter.
 *
 * The VM lacks unwind tables for some of its code, but its C frame always
 * looks the same and leads to the Lua thread whose frames it runs. A frame
 * under construction, on its way out, or given up by an error has no thread.
 */
#ifndef LJSPY_MERGE_VM_H
#define LJSPY_MERGE_VM_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/elf/image.h"
#include "unwind/stack/merge_walk.h"

/* Pass the VM's code where it was stopped or interrupted. */
enum passed merge_pass_vm_leaf(struct merge *merge, const struct vm_code *vm);

/* Pass the VM's code that called the frame passed last. */
enum passed merge_pass_vm_caller(struct merge *merge, const struct vm_code *vm);

/*
 * Does the walk stand on another stack than the thread's own, and does the own stack
 * have C frames of Lua? Then native code called from there went over to this stack.
 */
bool merge_has_switched_stack(const struct merge *merge);

/*
 * Native unwinding has failed. The C frames of the Lua threads are linked despite
 * the native frames between them: go on at the next one. False if there is none.
 */
bool merge_resynchronise(struct merge *merge);

/*
 * Is the leaf one of the VM's own routines that C has called, such as
 * lj_vm_floor() below lj_vm_foldarith()? It leaves nothing of the interpreter
 * half done, and the interpreter's registers mean nothing then.
 */
bool merge_is_routine_of_c(const struct merge *merge, const struct vm_code *vm);

#endif

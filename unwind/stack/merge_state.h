/* SPDX-License-Identifier: MIT */
/*
 * merge_state: what the VM did when ljspy stopped a thread.
 */
#ifndef LJSPY_MERGE_STATE_H
#define LJSPY_MERGE_STATE_H

#include "output/sample/sample.h"
#include "unwind/capture/capture.h"
#include "unwind/elf/image.h"
#include "unwind/stack/merged_stack.h"

/* The VM state by the leaf's pc, and by g->vmstate if the pc leaves it open. */
enum vm_state merge_vm_state(const struct capture *capture, const struct image *image,
			     const struct merged_stack *stack);

/* The view of the VM whose Lua is innermost, or NULL. */
const struct global_view *merge_innermost_view(const struct capture *capture);

/*
 * What the collector of the innermost VM does at that state. A step sets g->vmstate for
 * itself, and for the time of a finalizer a bit of g->hookmask. Notes the VM's current
 * white for the next sample.
 */
struct sample_gc merge_gc(const struct capture *capture, enum vm_state vm_state);

#endif

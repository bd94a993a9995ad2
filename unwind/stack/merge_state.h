/* SPDX-License-Identifier: MIT */
/*
 * merge_state: what the VM was doing when a thread was stopped.
 */
#ifndef LJSPY_MERGE_STATE_H
#define LJSPY_MERGE_STATE_H

#include "output/sample/sample.h"
#include "unwind/capture/capture.h"
#include "unwind/elf/image.h"
#include "unwind/stack/merged_stack.h"

/* By the leaf's pc first, and g->vmstate where that leaves it open. */
enum vm_state merge_vm_state(const struct capture *capture, const struct image *image,
			     const struct merged_stack *stack);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * vm_decoder: instructions of the VM's code, or of code without unwind tables, each
 * taken apart once.
 *
 * What vm_finish runs on are the same few hundred instructions in sample after
 * sample. An instruction is known by its address and bytes, so that code which
 * was changed or replaced is never taken for what was there before.
 */
#ifndef LJSPY_VM_DECODER_H
#define LJSPY_VM_DECODER_H

struct vm_decoder;

/* NULL when memory is short. */
struct vm_decoder *vm_decoder_new(void);
void vm_decoder_free(struct vm_decoder *decoder);

#endif

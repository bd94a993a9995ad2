/* SPDX-License-Identifier: MIT */
/*
 * vm_decoder: decode instructions of the VM, or of code without unwind tables,
 * and cache them.
 *
 * vm_finish runs the same few hundred instructions in sample after sample. The
 * cache compares an instruction's address and bytes, so code that has changed is
 * decoded again.
 */
#ifndef LJSPY_VM_DECODER_H
#define LJSPY_VM_DECODER_H

struct vm_decoder;

/* NULL when out of memory. */
struct vm_decoder *vm_decoder_new(void);
void vm_decoder_free(struct vm_decoder *decoder);

#endif

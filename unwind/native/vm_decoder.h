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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VM_INSTRUCTION_BYTES_MAX = 15 }; /* the length of no machine's instruction is larger */

struct vm_decoder;
struct vm_instruction; /* each architecture has its own */

/* NULL when out of memory. */
struct vm_decoder *vm_decoder_new(void);
void vm_decoder_free(struct vm_decoder *decoder);

/*
 * Decode the first instruction of up to VM_INSTRUCTION_BYTES_MAX bytes, which lie
 * at address. NULL if there is none. The decoder owns the result, which is valid
 * until the next call.
 */
const struct vm_instruction *vm_decoder_decode(struct vm_decoder *decoder, uint64_t address,
					       const uint8_t *bytes, size_t length);

/* Its length in bytes. */
size_t vm_instruction_size(const struct vm_instruction *instruction);

/* Does it call a function of its own segment? */
bool vm_instruction_is_call(const struct vm_instruction *instruction);

/* Does it jump to where a register or memory says? */
bool vm_instruction_is_indirect_jump(const struct vm_instruction *instruction);

/* Does it jump, perhaps on a condition, to *ret_target? */
bool vm_instruction_jumps_to(const struct vm_instruction *instruction, uint64_t *ret_target);

/* Does it call *ret_target? */
bool vm_instruction_calls(const struct vm_instruction *instruction, uint64_t *ret_target);

#endif

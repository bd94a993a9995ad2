/* SPDX-License-Identifier: MIT */
/* vm_decoder_arm64: an arm64 instruction, and the fields that many have in common. */
#ifndef LJSPY_VM_DECODER_ARM64_H
#define LJSPY_VM_DECODER_ARM64_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/native/vm_decoder.h"

enum { INSTRUCTION_BYTES = 4 };

struct vm_instruction {
	uint64_t address;
	uint32_t word;
};

/* count bits, from the bit of that number on. */
static inline uint32_t bits_of(uint32_t word, unsigned int from, unsigned int count)
{
	return word >> from & ((UINT32_C(1) << count) - 1);
}

static inline int64_t signed_bits_of(uint32_t word, unsigned int from, unsigned int count)
{
	return (int64_t)((uint64_t)bits_of(word, from, count) << (64 - count)) >> (64 - count);
}

static inline bool has_bits(uint32_t word, uint32_t mask, uint32_t value)
{
	return (word & mask) == value;
}

/* The registers that most instructions name; 31 is the stack pointer or zero. */
static inline unsigned int rd_of(uint32_t word)
{
	return bits_of(word, 0, 5);
}

static inline unsigned int rn_of(uint32_t word)
{
	return bits_of(word, 5, 5);
}

static inline unsigned int rm_of(uint32_t word)
{
	return bits_of(word, 16, 5);
}

static inline unsigned int rt2_of(uint32_t word)
{
	return bits_of(word, 10, 5);
}

/*---- Kinds of instructions (Arm Architecture Reference Manual, C4.1) ----*/

static inline bool is_add_immediate(uint32_t word) /* add, sub, and those that set flags */
{
	return has_bits(word, 0x1f800000, 0x11000000);
}

static inline bool is_pair(uint32_t word) /* ldp, stp, of vectors, too */
{
	return has_bits(word, 0x3a000000, 0x28000000);
}

static inline bool is_load_scaled(uint32_t word) /* ldr, str with an unsigned offset */
{
	return has_bits(word, 0x3b000000, 0x39000000);
}

static inline bool is_load_unscaled(uint32_t word) /* ldur, stur, and with an index written back */
{
	return has_bits(word, 0x3b200000, 0x38000000);
}

static inline bool is_load_indexed(uint32_t word) /* ldr, str with a register as offset */
{
	return has_bits(word, 0x3b200c00, 0x38200800);
}

static inline bool is_branch(uint32_t word) /* b */
{
	return has_bits(word, 0xfc000000, 0x14000000);
}

static inline bool is_call(uint32_t word) /* bl */
{
	return has_bits(word, 0xfc000000, 0x94000000);
}

static inline bool is_call_register(uint32_t word) /* blr, and with authentication */
{
	return has_bits(word, 0xfffffc1f, 0xd63f0000) || has_bits(word, 0xfefff800, 0xd63f0800);
}

static inline bool is_return(uint32_t word) /* ret, retaa, retab */
{
	return has_bits(word, 0xfffffc1f, 0xd65f0000) || has_bits(word, 0xfffffbff, 0xd65f0bff);
}

static inline bool is_jump_register(uint32_t word) /* br, and with authentication */
{
	return has_bits(word, 0xfffffc1f, 0xd61f0000) || has_bits(word, 0xfefff800, 0xd61f0800);
}

static inline bool is_conditional(uint32_t word) /* b.cond */
{
	return has_bits(word, 0xff000010, 0x54000000);
}

static inline bool is_compare_branch(uint32_t word) /* cbz, cbnz */
{
	return has_bits(word, 0x7e000000, 0x34000000);
}

static inline bool is_test_branch(uint32_t word) /* tbz, tbnz */
{
	return has_bits(word, 0x7e000000, 0x36000000);
}

static inline bool is_hint(uint32_t word) /* nop, bti, paciasp, autiasp */
{
	return has_bits(word, 0xfffff01f, 0xd503201f);
}

/* Where a direct jump or call leads. */
uint64_t instruction_target(const struct vm_instruction *instruction);

/* The offset that an immediate of add or sub means, with its sign. */
int64_t instruction_addend(uint32_t word);

/* A load or store that writes its index back, and by how much. False for others. */
bool instruction_writes_back(uint32_t word, int64_t *ret_offset, bool *ret_is_before);

#endif

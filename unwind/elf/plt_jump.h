/* SPDX-License-Identifier: MIT */
/* plt_jump: the code of an entry of a procedure linkage table. Each architecture has its own .c file. */
#ifndef LJSPY_PLT_JUMP_H
#define LJSPY_PLT_JUMP_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/elf/machine.h"

#ifdef LJSPY_READS_X86_64
enum { PLT_IRELATIVE = R_X86_64_IRELATIVE, PLT_PUSHES = true };
#endif
#ifdef LJSPY_READS_ARM64
/* R_AARCH64_IRELATIVE (ELF for the Arm 64-bit Architecture); musl's elf.h lacks it. */
enum { PLT_IRELATIVE = 1032, PLT_PUSHES = false };
#endif
/* PLT_PUSHES: do entries push anything, behind their jump? */

/*
 * Where the entry begins that holds the code at an offset in its section, which is not its
 * beginning. entry_size is the section's sh_entsize; 0 if the linker has not told it. False if that cannot be
 * known.
 */
bool plt_jump_entry(const uint8_t *section, uint64_t offset, uint64_t entry_size, uint64_t *ret_offset);

/* Does an entry begin with this code, which lies at address? The GOT slot that it jumps through. */
bool plt_jump_decode(const uint8_t *code, size_t length, uint64_t address, uint64_t *ret_slot);

#endif

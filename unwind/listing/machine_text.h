/* SPDX-License-Identifier: MIT */
/*
 * machine_text: machine code as text, by capstone.
 *
 * machine_text_x86_64.c and machine_text_arm64.c hold what depends on the machine.
 */
#ifndef LJSPY_MACHINE_TEXT_H
#define LJSPY_MACHINE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/machine/machine_decoder.h"

enum { MACHINE_TEXT_SIZE = 256 };

struct machine_instruction_text {
	size_t length;
	char text[MACHINE_TEXT_SIZE]; /* "mov     rax, qword ptr [rdx]" */
	bool has_target;
	uint64_t target; /* where it jumps to, or what it calls */
};

/* The instruction at the beginning of size bytes, at least one; bytes that are none are one each. */
void machine_text_next(struct machine_decoder *decoder, const uint8_t *bytes, size_t size, uint64_t address,
		       struct machine_instruction_text *ret_instruction);

/* ---- of the machine: ---- */

/* LuaJIT's name for one of its registers (RID_*); NULL if there is no such one. */
const char *machine_text_register(unsigned reg);

#endif

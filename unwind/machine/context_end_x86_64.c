/* SPDX-License-Identifier: MIT */
#include "unwind/machine/context_end.h"

#include <string.h>

/* Compilers write neither of the two: they clear edi in two bytes, and leave hlt to the kernel. */
static const uint8_t clear_rdi_and_call[] = { 0x48, 0x31, 0xff, 0xe8 };
enum { ENDBR_BYTES = 4, DISPLACEMENT_BYTES = 4, HLT = 0xf4 };
static const uint8_t endbr64[ENDBR_BYTES] = { 0xf3, 0x0f, 0x1e, 0xfa };

/* xor rdi, rdi; call _exit; hlt. If built for CET, endbr64 precedes them. */
bool context_end_is_at(struct memory *text, uint64_t pc)
{
	uint8_t bytes[sizeof(clear_rdi_and_call) + DISPLACEMENT_BYTES + 1];

	if (memory_read(text, pc, bytes, ENDBR_BYTES) == MEMORY_OK &&
	    memcmp(bytes, endbr64, ENDBR_BYTES) == 0)
		pc += ENDBR_BYTES;
	return memory_read(text, pc, bytes, sizeof(bytes)) == MEMORY_OK &&
	       memcmp(bytes, clear_rdi_and_call, sizeof(clear_rdi_and_call)) == 0 &&
	       bytes[sizeof(bytes) - 1] == HLT;
}

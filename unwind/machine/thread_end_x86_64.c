/* SPDX-License-Identifier: MIT */
#include "unwind/machine/thread_end.h"

#include <string.h>

/* The return address is above what they save. */
const unsigned int thread_end_words = 4, program_end_words = 6;

bool thread_end_is_at(struct memory *text, uint64_t pc)
{
	/* mov edi, eax; xor eax, eax; mov al, __NR_exit; syscall */
	static const uint8_t code[] = { 0x89, 0xc7, 0x31, 0xc0, 0xb0, 0x3c, 0x0f, 0x05 };
	uint8_t bytes[sizeof(code)];

	return memory_read(text, pc, bytes, sizeof(bytes)) == MEMORY_OK &&
	       memcmp(bytes, code, sizeof(code)) == 0;
}

/* SPDX-License-Identifier: MIT */
#include "unwind/machine/thread_end.h"

#include <string.h>

/* The return address is stored at the low end, alone or behind the frame pointer. */
const unsigned int thread_end_words = 2, program_end_words = 2;

bool thread_end_is_at(struct memory *text, uint64_t pc)
{
	/* mov x8, #__NR_exit; svc #0 */
	static const uint8_t code[] = { 0xa8, 0x0b, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4 };
	uint8_t bytes[sizeof(code)];

	return memory_read(text, pc, bytes, sizeof(bytes)) == MEMORY_OK &&
	       memcmp(bytes, code, sizeof(code)) == 0;
}

/* SPDX-License-Identifier: MIT */
#include "unwind/machine/thread_end.h"

#include <string.h>

bool thread_end_is_at(struct memory *text, uint64_t pc)
{
	uint8_t bytes[THREAD_END_BYTES];

	return memory_read(text, pc, bytes, sizeof(bytes)) == MEMORY_OK &&
	       memcmp(bytes, thread_end_code, sizeof(bytes)) == 0;
}

/* SPDX-License-Identifier: MIT */
#include "unwind/nginx/shared_lock.h"

enum { PID_MAX = 1 << 22 }; /* PID_MAX_LIMIT of Linux */

bool shared_lock_read(struct memory *memory, uint64_t zone, pid_t *ret_holder)
{
	uint64_t word;

	if (!memory_u64(memory, zone, &word) || word > PID_MAX)
		return false;
	*ret_holder = (pid_t)word;
	return true;
}

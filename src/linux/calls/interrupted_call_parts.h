/* SPDX-License-Identifier: MIT */
/*
 * interrupted_call_parts: between interrupted_call.c, which knows the calls, and
 * interrupted_call_MACHINE.c, which knows what a stop leaves of them.
 */
#ifndef LJSPY_INTERRUPTED_CALL_PARTS_H
#define LJSPY_INTERRUPTED_CALL_PARTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "unwind/elf/registers.h"

/* A system call on its way out. */
struct ended_call {
	uint64_t number; /* negative outside of a call */
	int64_t result;
	uint64_t arguments[CALL_ARGUMENTS];
};

/* Can this result be a part of what the call would have brought? */
bool interrupted_call_may_be_a_part(uint64_t number, int64_t result);

/* See interrupted_call_find(). */
bool interrupted_call_begins_again(pid_t tid, const struct ended_call *call, bool *ret_limited);

#endif

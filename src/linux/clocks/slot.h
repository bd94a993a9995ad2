/* SPDX-License-Identifier: MIT */
/*
 * slot: times that follow each other at an even distance.
 */
#ifndef LJSPY_SLOT_H
#define LJSPY_SLOT_H

#include <stdint.h>

/* The first of begin, begin + every, ... that is after now, which is not before begin. Those that have passed are left out. */
static inline uint64_t slot_after(uint64_t begin_ns, uint64_t every_ns, uint64_t now_ns)
{
	return begin_ns + ((now_ns - begin_ns) / every_ns + 1) * every_ns;
}

#endif

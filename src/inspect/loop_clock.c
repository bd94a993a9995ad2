/* SPDX-License-Identifier: MIT */
#include "src/inspect/loop_clock.h"

#include <time.h>

#include "src/linux/clocks/clock.h"
#include "unwind/elf/dynamic_symbol.h"

enum { NS_PER_MS = 1000 * 1000 };

/* The longest turn that ljspy believes. The two clocks are farther apart. */
static const uint64_t age_max_ns = UINT64_C(3600) * NS_PER_SECOND;

bool loop_clock_find(struct memory *memory, uint64_t base, uint64_t *ret_address)
{
	return dynamic_symbol_find(memory, base, "ngx_current_msec", ret_address);
}

uint64_t loop_clock_read(struct memory *memory, uint64_t address, int64_t ahead_ns)
{
	uint64_t now_ns = clock_now_ns(CLOCK_MONOTONIC), ms, age_ns;

	if (!memory_u64(memory, address, &ms) || ms > UINT64_MAX / NS_PER_MS)
		return 0;
	age_ns = now_ns + (uint64_t)ahead_ns - ms * NS_PER_MS;
	if (age_ns < age_max_ns && age_ns < now_ns)
		return now_ns - age_ns;
	age_ns = clock_now_ns(CLOCK_REALTIME) - ms * NS_PER_MS;
	return age_ns < age_max_ns && age_ns < now_ns ? now_ns - age_ns : 0;
}

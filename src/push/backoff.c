/* SPDX-License-Identifier: MIT */
#include "src/push/backoff.h"

enum { LONGEST_S = 60, DOUBLINGS_MAX = 6 };

static const uint64_t second_ns = 1000000000;

uint64_t backoff_ns(unsigned int failures, unsigned int retry_after_s, uint32_t random)
{
	unsigned int doublings = failures > DOUBLINGS_MAX ? DOUBLINGS_MAX : failures ? failures - 1 : 0;
	uint64_t wait_ns = (1u << doublings) * second_ns, asked_ns = retry_after_s * second_ns;

	if (wait_ns > LONGEST_S * second_ns)
		wait_ns = LONGEST_S * second_ns;
	wait_ns -= wait_ns / 4 * (random >> 16) / (UINT32_MAX >> 16);
	return wait_ns > asked_ns ? wait_ns : asked_ns;
}

/* SPDX-License-Identifier: MIT */
#include "src/watch/quota.h"

#include <string.h>

static const uint64_t hour_ns = 3600 * UINT64_C(1000000000);

bool quota_take(struct quota *quota, uint64_t now_ns)
{
	while (quota->count && now_ns - quota->taken_ns[0] >= hour_ns) {
		quota->count--;
		memmove(quota->taken_ns, quota->taken_ns + 1, quota->count * sizeof(quota->taken_ns[0]));
	}
	if (quota->count == quota->most)
		return false;
	quota->taken_ns[quota->count++] = now_ns;
	return true;
}

uint64_t quota_next_ns(const struct quota *quota)
{
	return quota->taken_ns[0] + hour_ns;
}

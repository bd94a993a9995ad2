/* SPDX-License-Identifier: MIT */
/*
 * quota: at most so many an hour.
 */
#ifndef LJSPY_QUOTA_H
#define LJSPY_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

enum { QUOTA_MAX = 60 };

struct quota {
	unsigned int most; /* an hour; up to QUOTA_MAX */
	unsigned int count;
	uint64_t taken_ns[QUOTA_MAX]; /* within the last hour, the oldest first */
};

/* Take one; false if none is left. */
bool quota_take(struct quota *quota, uint64_t now_ns);

/* When there is one again, after quota_take() was false. */
uint64_t quota_next_ns(const struct quota *quota);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * told: what ljspy tells its user on standard error between told_begin() and told_end().
 */
#ifndef LJSPY_TOLD_H
#define LJSPY_TOLD_H

#include <stddef.h>
#include <string.h>

#include "tests/unit/caught.h"

enum { TOLD_SIZE = 1 << 16 };

static char told[TOLD_SIZE];
static struct caught told_output;

static inline void told_begin(void)
{
	caught_begin(&told_output, stderr);
}

/* It is in told[] from here on. */
static inline void told_end(void)
{
	caught_end(&told_output, told, sizeof(told));
}

static inline size_t told_times(const char *what)
{
	size_t count = 0;

	for (const char *at = told; (at = strstr(at, what)) != NULL; at++)
		count++;
	return count;
}

#endif

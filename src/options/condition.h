/* SPDX-License-Identifier: MIT */
/*
 * condition: what a recording waits for (`record --when`).
 *
 *	cpu>90% for 10s		a process uses more of a core, on average over that time
 *	rss>1G			a process has more memory in RAM
 *	heap+20%/10m		a Lua heap grows by so much within that time
 *	blocked>200ms		a turn of an event loop takes longer
 *	latency>1s		a request of nginx is in flight for longer
 */
#ifndef LJSPY_CONDITION_H
#define LJSPY_CONDITION_H

#include <stdbool.h>
#include <stdint.h>

enum { CONDITIONS_MAX = 8 };

enum condition_kind {
	CONDITION_CPU,
	CONDITION_RSS,
	CONDITION_HEAP,
	CONDITION_BLOCKED,
	CONDITION_LATENCY,
};

struct condition {
	enum condition_kind kind;
	const char *text; /* as the user wrote it */
	uint64_t limit;   /* percent, bytes, percent of growth, or ns */
	uint64_t span_ns; /* CPU, heap: the time that counts; else 0 */
};

/* Spaces may be anywhere between words. False after telling the user; *ret_condition borrows the text. */
bool condition_read(const char *text, struct condition *ret_condition);

/* The shortest turn of an event loop that a condition is about; 0 if none is. */
uint64_t conditions_blocked_ns(const struct condition *conditions, unsigned int count);

#endif

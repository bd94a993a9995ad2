/* SPDX-License-Identifier: MIT */
/*
 * slow_jump: time in an entry of the procedure linkage table and in what it jumps to.
 *
 * Each is an instruction or two, and a processor is interrupted where an instruction takes
 * long: on some, no sample of thousands falls into these. So the jump has to wait for its
 * address, which is in no cache, and the function waits a little.
 */
#ifndef SLOW_JUMP_H
#define SLOW_JUMP_H

enum { CACHE_LINE_BYTES = 64, TABLE_BYTES = 1024 };

/* Remove the addresses that entries jump to from the caches. */
static inline void forget_addresses(void)
{
	const char *table;

	__asm__("lea _GLOBAL_OFFSET_TABLE_(%%rip), %0" : "=r"(table));
	for (int at = 0; at < TABLE_BYTES; at += CACHE_LINE_BYTES)
		__builtin_ia32_clflush(table + at);
	__builtin_ia32_mfence();
}

static inline void wait_a_little(void)
{
	for (int i = 0; i < 4; i++)
		__builtin_ia32_pause();
}

#endif

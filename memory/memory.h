/* SPDX-License-Identifier: MIT */
/*
 * memory: reading what a target's addresses hold.
 *
 * Everything that interprets LuaJIT's objects, unwinds stacks or parses an
 * ELF image in place reads through this interface and nothing else, so that
 * a live process, a snapshot of one, a core file and a fuzzer's input share
 * the same code. All addresses are the target's; nothing is ever written.
 */
#ifndef LJSPY_MEMORY_H
#define LJSPY_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum memory_status {
	MEMORY_OK,
	MEMORY_UNMAPPED,	/* nothing is mapped there */
	MEMORY_NOT_CAPTURED,	/* the target runs again, and this was not copied */
	MEMORY_REFUSED,		/* the kernel does not allow it */
	MEMORY_GONE,		/* the process has ended */
};

/* One piece of the target's memory and where its copy goes. */
struct memory_range {
	uint64_t address;
	void *copy;
	size_t length;		/* bytes; 0 is allowed and always succeeds */
	enum memory_status status;	/* set by memory_read_ranges() */
};

struct memory {
	/*
	 * Copy each range whole or fail it (then its copy is undefined).
	 * One bad range does not fail the others.
	 */
	void (*read_ranges)(struct memory *memory, struct memory_range *ranges, size_t count);
};

void memory_read_ranges(struct memory *memory, struct memory_range *ranges, size_t count);

enum memory_status memory_read(struct memory *memory, uint64_t address,
			       void *copy, size_t length);

/* Little-endian loads; false (and *ret untouched) when the read fails. */
bool memory_u8(struct memory *memory, uint64_t address, uint8_t *ret);
bool memory_u32(struct memory *memory, uint64_t address, uint32_t *ret);
bool memory_u64(struct memory *memory, uint64_t address, uint64_t *ret);

#endif

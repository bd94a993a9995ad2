/* SPDX-License-Identifier: MIT */
/*
 * memory: reads a target's memory.
 *
 * All code that interprets LuaJIT's objects, unwinds stacks or parses a mapped
 * ELF image reads through this interface alone. So the same code works on a
 * live process, a snapshot of one, a core file and a fuzzer's input. All
 * addresses are the target's. Nothing ever writes to the target.
 */
#ifndef LJSPY_MEMORY_H
#define LJSPY_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum memory_status {
	MEMORY_OK,
	MEMORY_UNMAPPED,     /* nothing is mapped there */
	MEMORY_NOT_CAPTURED, /* not copied before the target ran on, or not in the core */
	MEMORY_REFUSED,      /* the kernel refuses the read */
	MEMORY_GONE,         /* the process has ended */
};

/* A range of the target's memory and the buffer for its copy. */
struct memory_range {
	uint64_t address;
	void *copy;
	size_t length;             /* bytes; 0 is allowed and always succeeds */
	enum memory_status status; /* set by memory_read_ranges() */
};

struct memory {
	/*
	 * Copies each range whole or fails it; its copy is then undefined.
	 * One bad range does not fail the others.
	 */
	void (*read_ranges)(struct memory *memory, struct memory_range *ranges, size_t count);
	/*
	 * The bytes where they are held already, valid until more is read; or NULL: then read_ranges()
	 * may still have them. A sample needs some hundred short reads. NULL for a memory that holds none.
	 */
	const void *(*view)(struct memory *memory, uint64_t address, size_t length);
};

void memory_read_ranges(struct memory *memory, struct memory_range *ranges, size_t count);

/* See view() above. */
const void *memory_view(struct memory *memory, uint64_t address, size_t length);

enum memory_status memory_read(struct memory *memory, uint64_t address, void *copy, size_t length);

/* Little-endian loads; false (and *ret untouched) when the read fails. */
bool memory_u8(struct memory *memory, uint64_t address, uint8_t *ret);
bool memory_u32(struct memory *memory, uint64_t address, uint32_t *ret);
bool memory_u64(struct memory *memory, uint64_t address, uint64_t *ret);

/*
 * The size of the kernel's pages, in bytes: 4 KiB on x86-64, and as the kernel was built on arm64: 4, 16 or
 * 64. Code that only copies memory in pieces may take 4 KiB everywhere: larger pages are multiples.
 */
uint64_t memory_page_size(void);

#endif

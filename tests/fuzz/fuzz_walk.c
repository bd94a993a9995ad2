/* SPDX-License-Identifier: MIT */
/*
 * The memory of a process whose pointers, types and lengths may all be lies, walked
 * for stacks, coroutines and names: frame links, prototypes, traces, unwind tables.
 *
 *	input = choice:u8, then as image.h has it
 *
 * The choice is that of an image, and whether coroutines
 * and the list of traces are looked at, too.
 */
#include "tests/fuzz/image.h"
#include "tests/fuzz/reading.h"

enum { COROUTINES = 1 << 7 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = fuzz_input(data, size);
	uint8_t flags;
	struct memory_image *image = memory_image_choose("tests/fuzz/images/walk", &input, COROUTINES,
							 &flags);

	reading_walk(image, &image->memory, flags);
	return 0;
}

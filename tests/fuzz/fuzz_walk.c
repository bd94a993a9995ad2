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
	static struct memory_image *images[IMAGES_MAX];
	static size_t count;
	struct fuzz_input input = fuzz_input(data, size);
	struct memory_image *image;
	uint8_t choice;

	if (count == 0)
		count = memory_images_load("tests/fuzz/images/walk", images);
	choice = (uint8_t)fuzz_take(&input, 1);
	image = images[choice % COROUTINES % count];
	memory_image_spoil(image, &input);
	reading_walk(image, &image->memory, choice & COROUTINES);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * The memory of a process whose state is not known, and may be no state: looked for by
 * registers and by what lies on the native stack; and one whose thread runs on
 * another stack than its own.
 *
 *	input = choice:u8, then as image.h has it
 *
 * The choice is that of an image, and whether the thread is on another stack.
 */
#include "tests/fuzz/image.h"
#include "tests/fuzz/reading.h"

enum { SWITCHED = 1 << 7 };

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
	image = images[choice % SWITCHED % count];
	memory_image_spoil(image, &input);
	if (choice & SWITCHED)
		reading_switched(image, &image->memory);
	else
		reading_unknown(image, &image->memory);
	return 0;
}

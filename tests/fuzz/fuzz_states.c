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
	struct fuzz_input input = fuzz_input(data, size);
	uint8_t flags;
	struct memory_image *image = memory_image_choose("tests/fuzz/images/walk", &input, SWITCHED, &flags);

	if (flags)
		reading_switched(image, &image->memory);
	else
		reading_unknown(image, &image->memory);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * The ELF image of a process and the objects of its LuaJIT, recognised: headers,
 * unwind entries, machine code, states and self-tests.
 *
 *	input = image:u8, then as image.h has it
 */
#include "tests/fuzz/image.h"
#include "tests/fuzz/reading.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct memory_image *images[IMAGES_MAX];
	static size_t count;
	struct fuzz_input input = fuzz_input(data, size);
	struct memory_image *image;

	if (count == 0)
		count = memory_images_load("tests/fuzz/images/recognise", images);
	image = images[fuzz_take(&input, 1) % count];
	memory_image_spoil(image, &input);
	reading_recognise(image, &image->memory);
	return 0;
}

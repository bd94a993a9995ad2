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
	struct fuzz_input input = fuzz_input(data, size);
	uint8_t flags;
	struct memory_image *image = memory_image_choose("tests/fuzz/images/recognise", &input, 0, &flags);

	reading_recognise(image, &image->memory);
	return 0;
}

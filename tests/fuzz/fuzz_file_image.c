/* SPDX-License-Identifier: MIT */
/*
 * A module's file, read as the memory that it claims to be mapped to.
 *
 *	input = (address:u32 length:u16)[4] file
 */
#include <stdio.h>
#include <unistd.h>

#include "src/linux/files/file_image.h"
#include "tests/fuzz/fuzz.h"

enum { RANGES = 4 };

static void read_all(struct memory *memory, struct memory_range *ranges)
{
	static uint8_t copies[RANGES][UINT16_MAX];

	for (size_t i = 0; i < RANGES; i++)
		ranges[i].copy = copies[i];
	memory_read_ranges(memory, ranges, RANGES);
	for (size_t i = 0; i < RANGES; i++)
		fuzz_check(ranges[i].status == MEMORY_OK || ranges[i].status == MEMORY_UNMAPPED,
			   "a range is read or is not there");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = fuzz_input(data, size);
	struct memory_range ranges[RANGES];
	struct file_image *image;
	char path[sizeof("/proc/self/fd/") + 3 * sizeof(int)];
	int fd;

	for (size_t i = 0; i < RANGES; i++)
		ranges[i] = (struct memory_range){ .address = fuzz_take(&input, 4),
						   .length = (size_t)fuzz_take(&input, 2) };
	fd = fuzz_file(input.at, fuzz_left(&input));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	image = file_image_open(NULL, path, FUZZ_BASE);
	if (image)
		read_all(file_image_memory(image), ranges);
	file_image_close(image);
	close(fd);
	return 0;
}

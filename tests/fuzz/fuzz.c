/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct fuzz_input fuzz_input(const uint8_t *data, size_t size)
{
	return (struct fuzz_input){ data, data + size };
}

size_t fuzz_left(const struct fuzz_input *input)
{
	return (size_t)(input->end - input->at);
}

uint64_t fuzz_take(struct fuzz_input *input, size_t bytes)
{
	uint64_t value = 0;

	for (size_t i = 0; i < bytes && input->at < input->end; i++)
		value |= (uint64_t)*input->at++ << 8 * i;
	return value;
}

static void read_ranges(struct memory *memory, struct memory_range *ranges, size_t count)
{
	const struct fuzz_memory *mapped = (const struct fuzz_memory *)memory;

	for (size_t i = 0; i < count; i++) {
		uint64_t offset = ranges[i].address - FUZZ_BASE;
		bool there = offset <= mapped->size && ranges[i].length <= mapped->size - offset;

		if (there)
			memcpy(ranges[i].copy, mapped->bytes + offset, ranges[i].length);
		ranges[i].status = there ? MEMORY_OK : MEMORY_UNMAPPED;
	}
}

struct fuzz_memory fuzz_memory(const struct fuzz_input *input)
{
	return (struct fuzz_memory){ { .read_ranges = read_ranges }, input->at, fuzz_left(input) };
}

int fuzz_file(const uint8_t *bytes, size_t size)
{
	int fd = memfd_create("input", MFD_CLOEXEC);

	fuzz_check(fd >= 0 && write(fd, bytes, size) == (ssize_t)size && lseek(fd, 0, SEEK_SET) == 0,
		   "a file can be made");
	return fd;
}

FILE *fuzz_stream(const uint8_t *bytes, size_t size)
{
	FILE *stream = fdopen(fuzz_file(bytes, size), "r");

	fuzz_check(stream != NULL, "a file can be opened");
	return stream;
}

void fuzz_check(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "It does not hold that %s.\n", what);
	abort();
}

/* The length of the character at text, or 0 if that is not one to be shown. */
static size_t clean_character(const uint8_t *text, size_t length)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t bytes = *text < 0x80 ? 1 : *text < 0xe0 ? 2 : *text < 0xf0 ? 3 : 4;
	uint32_t code = bytes == 1 ? *text : *text & (0x7fu >> bytes);

	if (bytes == 1)
		return (code >= 0x20 && code != 0x7f) || code == '\n' || code == '\t';
	if (*text < 0xc0 || *text >= 0xf8 || bytes > length)
		return 0;
	for (size_t i = 1; i < bytes; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (text[i] & 0x3f);
	}
	if (code < least[bytes] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff) ||
	    (code >= 0x80 && code < 0xa0) ||    /* control characters */
	    code == 0x2028 || code == 0x2029 || /* separators of lines and paragraphs */
	    (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069))
		return 0;
	return bytes;
}

bool fuzz_is_clean(const char *text, size_t length)
{
	const uint8_t *at = (const uint8_t *)text, *end = at + length;

	while (at < end) {
		size_t bytes = clean_character(at, (size_t)(end - at));

		if (bytes == 0)
			return false;
		at += bytes;
	}
	return true;
}

static void make_layout(enum layout_mode mode, struct layout *ret_layout)
{
	layout_clear(ret_layout);
	for (int group = 0; group < LAYOUT_GROUP_COUNT; group++)
		for (size_t i = 0; i < layout_row_count((enum layout_group)group); i++) {
			struct layout_row row;

			layout_row_get((enum layout_group)group, i, &row);
			if (row.modes & LAYOUT_MODE(mode))
				layout_fill(ret_layout, &row.offsets);
		}
	ret_layout->gc64 = mode == LAYOUT_X64_GC64;
}

const struct layout *fuzz_layout(enum layout_mode mode)
{
	static struct layout layouts[2];
	struct layout *layout = &layouts[mode == LAYOUT_X64_GC64];

	if (!layout->name[0]) {
		make_layout(mode, layout);
		strcpy(layout->name, "fuzz");
	}
	return layout;
}

/* SPDX-License-Identifier: MIT */
#include "src/linux/files/file_image.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "luajit-layouts/module/elf_headers.h"
#include "memory/slow_file.h"

struct file_image {
	struct memory memory; /* must be first */
	struct errands *errands;
	int fd;
	uint64_t base, bias;
	struct elf_headers headers; /* no program headers until they are read */
	uint64_t bytes_since_pause;
};

/* Without waiting, which needs no other thread; how many bytes. */
static size_t read_present(int fd, uint8_t *bytes, size_t length, uint64_t offset)
{
	const struct iovec part = { bytes, length };
	const ssize_t count = preadv2(fd, &part, 1, (off_t)offset, RWF_NOWAIT);

	return count > 0 ? (size_t)count : 0;
}

static bool read_file(struct file_image *image, uint8_t *bytes, size_t length, uint64_t offset)
{
	while (length) {
		size_t count = read_present(image->fd, bytes, length, offset);

		if (count == 0) {
			count = length < SLOW_READ_MAX ? length : SLOW_READ_MAX;
			if (!slow_pread(image->errands, image->fd, bytes, count, offset))
				return false;
		}
		bytes += count;
		offset += count;
		length -= count;
	}
	return true;
}

/* The segment that all of the range is in, or NULL. */
static const Elf64_Phdr *find_segment(const struct file_image *image, const struct memory_range *range)
{
	for (size_t i = 0; i < image->headers.elf.e_phnum; i++) {
		const Elf64_Phdr *segment = &image->headers.segments[i];
		const uint64_t offset = range->address - (image->bias + segment->p_vaddr);

		if (segment->p_type == PT_LOAD && offset <= segment->p_memsz &&
		    range->length <= segment->p_memsz - offset)
			return segment;
	}
	return NULL;
}

/* What is behind the file's part of a segment is zero. */
static bool read_segment(struct file_image *image, const Elf64_Phdr *segment,
			 const struct memory_range *range)
{
	const uint64_t offset = range->address - (image->bias + segment->p_vaddr);
	const uint64_t in_file = segment->p_filesz > offset ? segment->p_filesz - offset : 0;
	const size_t length = range->length < in_file ? range->length : (size_t)in_file;

	memset((uint8_t *)range->copy + length, 0, range->length - length);
	return read_file(image, range->copy, length, segment->p_offset + offset);
}

/* The headers are read by their place in the file. */
static bool read_range(struct file_image *image, const struct memory_range *range)
{
	const Elf64_Phdr *segment = find_segment(image, range);

	if (segment)
		return read_segment(image, segment, range);
	return image->headers.elf.e_phnum == 0 &&
	       read_file(image, range->copy, range->length, range->address - image->base);
}

static void read_ranges(struct memory *memory, struct memory_range *ranges, size_t count)
{
	struct file_image *image = (struct file_image *)memory;

	for (size_t i = 0; i < count; i++) {
		/* Zeros, too, take time. */
		const bool is_read = errands_pause_before(image->errands, &image->bytes_since_pause,
							  ranges[i].length) &&
				     read_range(image, &ranges[i]);

		ranges[i].status = is_read ? MEMORY_OK : MEMORY_UNMAPPED;
	}
}

struct file_image *file_image_open(struct errands *errands, const char *path, uint64_t base)
{
	struct file_image *image = calloc(1, sizeof(*image));
	struct elf_headers headers;

	if (!image)
		return NULL;
	image->memory.read_ranges = read_ranges;
	image->errands = errands;
	image->base = base;
	image->fd = slow_open(errands, path);
	if (image->fd >= 0 && elf_headers_read(&image->memory, base, &headers) &&
	    elf_headers_bias(&headers, base, &image->bias)) {
		image->headers = headers;
		return image;
	}
	file_image_close(image);
	return NULL;
}

void file_image_close(struct file_image *image)
{
	if (!image)
		return;
	if (image->fd >= 0)
		slow_close(image->errands, image->fd);
	free(image);
}

struct memory *file_image_memory(struct file_image *image)
{
	return &image->memory;
}

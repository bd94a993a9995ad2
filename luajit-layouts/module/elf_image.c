/* SPDX-License-Identifier: MIT */
#include "luajit-layouts/module/elf_image.h"

#include <stdbool.h>
#include <string.h>

#include "luajit-layouts/module/elf_headers.h"

static bool add_segment(struct elf_image *image, uint64_t bias, const Elf64_Phdr *header)
{
	struct elf_segment *segment;

	if (header->p_memsz > ELF_IMAGE_SEGMENT_BYTES_MAX || image->segment_count == ELF_IMAGE_SEGMENTS_MAX)
		return false;
	segment = &image->segments[image->segment_count];
	segment->begin = bias + header->p_vaddr;
	segment->end = segment->begin + header->p_memsz;
	segment->flags = header->p_flags;
	if (segment->end < segment->begin)
		return false;
	image->segment_count++;
	return true;
}

static enum elf_image_status check_header(const Elf64_Ehdr *header)
{
	if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
		return ELF_IMAGE_MALFORMED;
	if (header->e_ident[EI_DATA] != ELFDATA2LSB ||
	    (header->e_machine != EM_X86_64 && header->e_machine != EM_AARCH64))
		return ELF_IMAGE_OTHER_MACHINE;
	return elf_headers_fit(header) ? ELF_IMAGE_OK : ELF_IMAGE_MALFORMED;
}

enum elf_image_status elf_image_open(struct memory *memory, uint64_t base, struct elf_image *ret_image)
{
	struct elf_image image = { .segment_count = 0 };
	struct elf_headers headers;
	enum elf_image_status status;

	/* 32-bit headers are shorter, but have the machine field at the same place. */
	if (memory_read(memory, base, &headers.elf, sizeof(headers.elf)) != MEMORY_OK)
		return ELF_IMAGE_UNREADABLE;
	status = check_header(&headers.elf);
	if (status == ELF_IMAGE_OTHER_MACHINE)
		ret_image->machine = headers.elf.e_machine;
	if (status != ELF_IMAGE_OK)
		return status;
	image.machine = headers.elf.e_machine;
	if (!elf_headers_read_segments(memory, base, &headers))
		return ELF_IMAGE_UNREADABLE;
	if (!elf_headers_bias(&headers, base, &image.bias))
		return ELF_IMAGE_MALFORMED;
	for (size_t i = 0; i < headers.elf.e_phnum; i++) {
		if (headers.segments[i].p_type == PT_GNU_EH_FRAME)
			image.eh_frame_hdr = image.bias + headers.segments[i].p_vaddr;
		else if (headers.segments[i].p_type == PT_DYNAMIC)
			image.dynamic = image.bias + headers.segments[i].p_vaddr;
		else if (headers.segments[i].p_type == PT_LOAD &&
			 !add_segment(&image, image.bias, &headers.segments[i]))
			return ELF_IMAGE_MALFORMED;
	}
	*ret_image = image;
	return ELF_IMAGE_OK;
}

const struct elf_segment *elf_image_segment(const struct elf_image *image, uint64_t address)
{
	for (size_t i = 0; i < image->segment_count; i++) {
		const struct elf_segment *segment = &image->segments[i];

		if (address >= segment->begin && address < segment->end)
			return segment;
	}
	return NULL;
}

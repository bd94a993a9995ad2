/* SPDX-License-Identifier: MIT */
#include "luajit-layouts/module/elf_image.h"

#include <stdbool.h>
#include <string.h>

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

/*
 * The load bias: where the first byte of the file is mapped, less where its
 * segment asked to be.
 */
static bool find_bias(const Elf64_Phdr *headers, size_t count, uint64_t base, uint64_t *ret_bias)
{
	for (size_t i = 0; i < count; i++) {
		if (headers[i].p_type == PT_LOAD && headers[i].p_offset == 0) {
			*ret_bias = base - headers[i].p_vaddr;
			return true;
		}
	}
	return false;
}

static enum elf_image_status check_header(const Elf64_Ehdr *header)
{
	if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
		return ELF_IMAGE_MALFORMED;
	if (header->e_ident[EI_DATA] != ELFDATA2LSB ||
	    (header->e_machine != EM_X86_64 && header->e_machine != EM_AARCH64))
		return ELF_IMAGE_OTHER_MACHINE;
	if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_phentsize != sizeof(Elf64_Phdr) ||
	    header->e_phnum == 0 || header->e_phnum > ELF_IMAGE_SEGMENTS_MAX)
		return ELF_IMAGE_MALFORMED;
	return ELF_IMAGE_OK;
}

enum elf_image_status elf_image_open(struct memory *memory, uint64_t base, struct elf_image *ret_image)
{
	struct elf_image image = { .segment_count = 0 };
	Elf64_Phdr headers[ELF_IMAGE_SEGMENTS_MAX];
	Elf64_Ehdr header;
	enum elf_image_status status;

	/* 32-bit headers are shorter, but have the machine field at the same place. */
	if (memory_read(memory, base, &header, sizeof(header)) != MEMORY_OK)
		return ELF_IMAGE_UNREADABLE;
	status = check_header(&header);
	if (status == ELF_IMAGE_OTHER_MACHINE)
		ret_image->machine = header.e_machine;
	if (status != ELF_IMAGE_OK)
		return status;
	image.machine = header.e_machine;
	if (memory_read(memory, base + header.e_phoff, headers, header.e_phnum * sizeof(headers[0])) !=
	    MEMORY_OK)
		return ELF_IMAGE_UNREADABLE;
	if (!find_bias(headers, header.e_phnum, base, &image.bias))
		return ELF_IMAGE_MALFORMED;
	for (size_t i = 0; i < header.e_phnum; i++) {
		if (headers[i].p_type == PT_GNU_EH_FRAME)
			image.eh_frame_hdr = image.bias + headers[i].p_vaddr;
		else if (headers[i].p_type == PT_DYNAMIC)
			image.dynamic = image.bias + headers[i].p_vaddr;
		else if (headers[i].p_type == PT_LOAD && !add_segment(&image, image.bias, &headers[i]))
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

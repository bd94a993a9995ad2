/* SPDX-License-Identifier: MIT */
/*
 * elf_image: an ELF file as it is mapped in a target.
 *
 * It uses only what the loader needs (program headers), so files may be
 * stripped or lack section headers. It reads everything through struct memory
 * and checks it: the image is untrusted.
 */
#ifndef LJSPY_ELF_IMAGE_H
#define LJSPY_ELF_IMAGE_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

#include "luajit-layouts/module/elf_headers.h"
#include "memory/memory.h"

enum {
	ELF_IMAGE_SEGMENTS_MAX = ELF_HEADERS_MAX,
	ELF_IMAGE_SEGMENT_BYTES_MAX = 256 << 20,
};

enum elf_image_status {
	ELF_IMAGE_OK,
	ELF_IMAGE_UNREADABLE,
	ELF_IMAGE_MALFORMED,
	ELF_IMAGE_OTHER_MACHINE, /* neither x86-64 nor arm64 */
};

struct elf_segment {
	uint64_t begin, end; /* addresses in the target */
	uint32_t flags;      /* PF_R, PF_W, PF_X */
};

struct elf_image {
	uint16_t machine; /* EM_X86_64, ...; also valid on ELF_IMAGE_OTHER_MACHINE */
	struct elf_segment segments[ELF_IMAGE_SEGMENTS_MAX]; /* PT_LOAD */
	size_t segment_count;
	uint64_t bias;         /* an address in the target less the same one in the file */
	uint64_t eh_frame_hdr; /* address in the target; 0 if there is none */
	uint64_t dynamic;      /* of PT_DYNAMIC, likewise */
};

/* Read the headers of the image whose first byte is mapped at base. */
enum elf_image_status elf_image_open(struct memory *memory, uint64_t base, struct elf_image *ret_image);

/* The segment that holds address, or NULL. */
const struct elf_segment *elf_image_segment(const struct elf_image *image, uint64_t address);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * made_up_elf: a small ELF file, of sections and segments of the test's choice.
 *
 * The file is its own image: a byte's address is its offset. Sections lie one behind the other in their
 * order.
 */
#ifndef LJSPY_MADE_UP_ELF_H
#define LJSPY_MADE_UP_ELF_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "memory/memory.h"
#include "tests/unit/range_bytes.h"

enum {
	MADE_UP_ELF_BYTES = 0x8000,
	MADE_UP_ELF_SECTIONS = 16,
	MADE_UP_ELF_SEGMENTS = 8,
	MADE_UP_ELF_ALIGNMENT = 16,
	MADE_UP_ELF_NAMES = 512,
};

struct made_up_elf {
	struct memory memory; /* first: what is read where the file is mapped */
	uint64_t base;        /* where that is; 0 at first */
	uint8_t bytes[MADE_UP_ELF_BYTES];
	size_t size;
	Elf64_Shdr sections[MADE_UP_ELF_SECTIONS];
	Elf64_Phdr segments[MADE_UP_ELF_SEGMENTS];
	uint16_t section_count, segment_count;
	char names[MADE_UP_ELF_NAMES];
	size_t names_length;
};

static inline void made_up_elf_read(struct memory *memory, struct memory_range *ranges, size_t count)
{
	const struct made_up_elf *elf = (const struct made_up_elf *)memory;

	range_bytes(ranges, count, elf->base, elf->bytes, elf->size);
}

/* Room for bytes at the end; returns their address. */
static inline uint64_t made_up_elf_place(struct made_up_elf *elf, const void *bytes, size_t size)
{
	const uint64_t address = (elf->size + MADE_UP_ELF_ALIGNMENT - 1) / MADE_UP_ELF_ALIGNMENT *
				 MADE_UP_ELF_ALIGNMENT;

	assert_in_range(address + size, 0, sizeof(elf->bytes));
	if (bytes)
		memcpy(elf->bytes + address, bytes, size);
	elf->size = address + size;
	return address;
}

/* Begin a file whose first segment is all of it. */
static inline void made_up_elf_begin(struct made_up_elf *elf)
{
	memset(elf, 0, sizeof(*elf));
	elf->memory.read_ranges = made_up_elf_read;
	elf->size = sizeof(Elf64_Ehdr) + sizeof(elf->segments);
	elf->segments[elf->segment_count++] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_flags = PF_R | PF_X };
	elf->section_count = 1; /* the first section and the first name are empty */
	elf->names_length = 1;
}

/* Add a section like this one; returns its index. */
static inline uint32_t made_up_elf_section(struct made_up_elf *elf, const char *name, Elf64_Shdr like,
					   const void *bytes, size_t size)
{
	assert_in_range(elf->section_count, 1, MADE_UP_ELF_SECTIONS - 2);
	assert_in_range(elf->names_length + strlen(name), 0, sizeof(elf->names) - 2);
	like.sh_name = (uint32_t)elf->names_length;
	elf->names_length += strlen(strcpy(elf->names + elf->names_length, name)) + 1;
	like.sh_offset = like.sh_addr = made_up_elf_place(elf, bytes, size);
	like.sh_size = size;
	like.sh_addralign = MADE_UP_ELF_ALIGNMENT;
	elf->sections[elf->section_count] = like;
	return elf->section_count++;
}

/* Add a segment that is all of a section. */
static inline void made_up_elf_segment(struct made_up_elf *elf, uint32_t type, uint32_t section)
{
	const Elf64_Shdr *of = &elf->sections[section];

	assert_in_range(elf->segment_count, 1, MADE_UP_ELF_SEGMENTS - 1);
	elf->segments[elf->segment_count++] = (Elf64_Phdr){ .p_type = type,
							    .p_flags = PF_R,
							    .p_offset = of->sh_offset,
							    .p_vaddr = of->sh_addr,
							    .p_filesz = of->sh_size,
							    .p_memsz = of->sh_size };
}

/* Write the headers. Sections may be changed and this be called again. */
static inline void made_up_elf_end(struct made_up_elf *elf)
{
	const uint16_t names = elf->section_count;
	Elf64_Ehdr header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
					   EV_CURRENT },
			      .e_type = ET_DYN,
			      .e_machine = EM_X86_64,
			      .e_version = EV_CURRENT,
			      .e_phoff = sizeof(header),
			      .e_ehsize = sizeof(header),
			      .e_phentsize = sizeof(Elf64_Phdr),
			      .e_phnum = elf->segment_count,
			      .e_shentsize = sizeof(Elf64_Shdr),
			      .e_shstrndx = names,
			      .e_shnum = (uint16_t)(names + 1) };

	made_up_elf_section(elf, ".shstrtab", (Elf64_Shdr){ .sh_type = SHT_STRTAB }, elf->names,
			    sizeof(elf->names));
	memcpy(elf->bytes + elf->sections[names].sh_offset, elf->names, sizeof(elf->names));
	elf->sections[names].sh_size = elf->names_length;
	header.e_shoff = made_up_elf_place(elf, elf->sections, (names + 1U) * sizeof(elf->sections[0]));
	elf->segments[0].p_filesz = elf->segments[0].p_memsz = elf->size;
	memcpy(elf->bytes, &header, sizeof(header));
	memcpy(elf->bytes + header.e_phoff, elf->segments, sizeof(elf->segments));
	elf->section_count = names; /* as it was */
}

/* Add a note with a build id. */
static inline void made_up_elf_build_id(struct made_up_elf *elf, const void *id, uint32_t length)
{
	enum { ID_MAX = 128 };
	struct {
		Elf64_Nhdr header;
		char owner[4];
		uint8_t id[ID_MAX];
	} note = { { sizeof(note.owner), length, NT_GNU_BUILD_ID }, "GNU", { 0 } };

	assert_in_range(length, 0, ID_MAX);
	memcpy(note.id, id, length);
	made_up_elf_segment(elf, PT_NOTE,
			    made_up_elf_section(elf, ".note.gnu.build-id",
						(Elf64_Shdr){ .sh_type = SHT_NOTE, .sh_flags = SHF_ALLOC },
						&note,
						offsetof(__typeof__(note), id) + (length + 3) / 4 * 4));
}

static inline void made_up_elf_write(const struct made_up_elf *elf, const char *path)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(elf->bytes, 1, elf->size, file), elf->size);
	assert_int_equal(fclose(file), 0);
}

#endif

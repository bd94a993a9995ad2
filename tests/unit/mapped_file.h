/* SPDX-License-Identifier: MIT */
/*
 * mapped_file: an ELF file as it lies in memory, at an address of the test's choice.
 *
 * Segments are where the loader would put them, and pointers in data are relative to the address. What
 * other modules have is not resolved.
 */
#ifndef LJSPY_MAPPED_FILE_H
#define LJSPY_MAPPED_FILE_H

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory/memory.h"
#include "tests/unit/range_bytes.h"

struct mapped_file {
	struct memory memory; /* first: what is read */
	uint64_t base;
	uint8_t *bytes;
	size_t size;
};

static void mapped_file_read(struct memory *memory, struct memory_range *ranges, size_t count)
{
	const struct mapped_file *file = (const struct mapped_file *)memory;

	range_bytes(ranges, count, file->base, file->bytes, file->size);
}

/* What the loader stores for the file itself: its own addresses, and those of symbols that it defines. */
static inline void mapped_file_relocate(const struct mapped_file *file, const Elf64_Rela *entries,
					size_t count, const Elf64_Sym *symbols)
{
	for (size_t i = 0; i < count; i++) {
		const Elf64_Sym *symbol = &symbols[ELF64_R_SYM(entries[i].r_info)];
		uint64_t value = file->base + (uint64_t)entries[i].r_addend;
		uint64_t type = ELF64_R_TYPE(entries[i].r_info);

		if (type != R_X86_64_RELATIVE && type != R_AARCH64_RELATIVE) {
			if (ELF64_R_SYM(entries[i].r_info) == 0 || symbol->st_shndx == SHN_UNDEF)
				continue;
			value += symbol->st_value;
		}
		memcpy(file->bytes + entries[i].r_offset, &value, sizeof(value));
	}
}

/* False if there is no such file. */
static inline bool mapped_file_open(struct mapped_file *file, const char *path, uint64_t base)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat status;
	const uint8_t *bytes;
	const Elf64_Ehdr *header;
	const Elf64_Phdr *segments;

	if (fd < 0)
		return false;
	if (fstat(fd, &status) != 0)
		abort();
	bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (bytes == MAP_FAILED)
		abort();
	header = (const void *)bytes;
	segments = (const void *)(bytes + header->e_phoff);
	*file = (struct mapped_file){ .memory = { .read_ranges = mapped_file_read }, .base = base };
	for (size_t i = 0; i < header->e_phnum; i++)
		if (segments[i].p_type == PT_LOAD && segments[i].p_vaddr + segments[i].p_memsz > file->size)
			file->size = segments[i].p_vaddr + segments[i].p_memsz;
	file->bytes = calloc(1, file->size);
	if (!file->bytes)
		abort();
	for (size_t i = 0; i < header->e_phnum; i++)
		if (segments[i].p_type == PT_LOAD)
			memcpy(file->bytes + segments[i].p_vaddr, bytes + segments[i].p_offset,
			       segments[i].p_filesz);
	for (size_t i = 0; i < header->e_phnum; i++) {
		const Elf64_Dyn *entry = (const void *)(bytes + segments[i].p_offset);
		uint64_t table = 0, size = 0, symbols = 0;

		if (segments[i].p_type != PT_DYNAMIC)
			continue;
		for (; entry->d_tag != DT_NULL; entry++) {
			table = entry->d_tag == DT_RELA ? entry->d_un.d_ptr : table;
			size = entry->d_tag == DT_RELASZ ? entry->d_un.d_val : size;
			symbols = entry->d_tag == DT_SYMTAB ? entry->d_un.d_ptr : symbols;
		}
		mapped_file_relocate(file, (const void *)(file->bytes + table), size / sizeof(Elf64_Rela),
				     (const void *)(file->bytes + symbols));
	}
	munmap((void *)(uintptr_t)bytes, (size_t)status.st_size);
	return true;
}

static inline void mapped_file_close(struct mapped_file *file)
{
	free(file->bytes);
}

#endif

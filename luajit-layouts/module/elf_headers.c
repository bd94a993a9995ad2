/* SPDX-License-Identifier: MIT */
#include "luajit-layouts/module/elf_headers.h"

#include <stddef.h>
#include <string.h>

bool elf_headers_fit(const Elf64_Ehdr *elf)
{
	return memcmp(elf->e_ident, ELFMAG, SELFMAG) == 0 && elf->e_ident[EI_CLASS] == ELFCLASS64 &&
	       elf->e_ident[EI_DATA] == ELFDATA2LSB && elf->e_phentsize == sizeof(Elf64_Phdr) &&
	       elf->e_phnum > 0 && elf->e_phnum <= ELF_HEADERS_MAX;
}

bool elf_headers_read_segments(struct memory *memory, uint64_t base, struct elf_headers *headers)
{
	return memory_read(memory, base + headers->elf.e_phoff, headers->segments,
			   headers->elf.e_phnum * sizeof(headers->segments[0])) == MEMORY_OK;
}

bool elf_headers_read(struct memory *memory, uint64_t base, struct elf_headers *ret_headers)
{
	struct elf_headers headers;

	memset(&headers, 0, sizeof(headers));
	if (memory_read(memory, base, &headers.elf, sizeof(headers.elf)) != MEMORY_OK ||
	    !elf_headers_fit(&headers.elf) || !elf_headers_read_segments(memory, base, &headers))
		return false;
	*ret_headers = headers;
	return true;
}

bool elf_headers_bias(const struct elf_headers *headers, uint64_t base, uint64_t *ret_bias)
{
	for (size_t i = 0; i < headers->elf.e_phnum; i++) {
		if (headers->segments[i].p_type == PT_LOAD && headers->segments[i].p_offset == 0) {
			*ret_bias = base - headers->segments[i].p_vaddr;
			return true;
		}
	}
	return false;
}

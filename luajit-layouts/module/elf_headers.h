/* SPDX-License-Identifier: MIT */
/*
 * elf_headers: the header and the program headers of a 64-bit, little-endian ELF file (System V ABI, "ELF
 * Header" and "Program Header"), from its file or as a target has it mapped. What the file is, and the number
 * and size of its program headers, is checked: the rest that they say is untrusted.
 */
#ifndef LJSPY_ELF_HEADERS_H
#define LJSPY_ELF_HEADERS_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

#include "memory/memory.h"

enum { ELF_HEADERS_MAX = 64 };

struct elf_headers {
	Elf64_Ehdr elf;
	Elf64_Phdr segments[ELF_HEADERS_MAX]; /* elf.e_phnum; the rest is zero */
};

/* Is it such a file, with program headers, and no more than there is room for? */
bool elf_headers_fit(const Elf64_Ehdr *elf);

/*
 * Those of headers->elf, which fits, of the file whose first byte is mapped at base. False if they cannot be
 * read.
 */
bool elf_headers_read_segments(struct memory *memory, uint64_t base, struct elf_headers *headers);

/* All of the file whose first byte is mapped at base. False if they cannot be read or do not fit. */
bool elf_headers_read(struct memory *memory, uint64_t base, struct elf_headers *ret_headers);

/*
 * The load bias, an address in the target less the same one in the file: where the first byte of the file is
 * mapped, less where its segment asked to be. False if no segment has that byte.
 */
bool elf_headers_bias(const struct elf_headers *headers, uint64_t base, uint64_t *ret_bias);

#endif

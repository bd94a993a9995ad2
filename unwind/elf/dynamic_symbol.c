/* SPDX-License-Identifier: MIT */
#include "unwind/elf/dynamic_symbol.h"

#include <elf.h>
#include <string.h>

#include "luajit-layouts/module/elf_image.h"

enum {
	ENTRIES_MAX = 256, /* of the dynamic section */
	CHAIN_MAX = 4096,  /* symbols in one bucket */
	NAME_MAX_BYTES = 128,
};

struct dynamic {
	uint64_t symtab, strtab, gnu_hash;
};

/* The loader may have replaced an address in the file by one in the process. */
static uint64_t address_of(const struct elf_image *image, uint64_t value)
{
	return elf_image_segment(image, value) ? value : value + image->bias;
}

static bool read_dynamic(struct memory *memory, const struct elf_image *image, struct dynamic *ret_dynamic)
{
	struct dynamic dynamic = { 0 };
	Elf64_Dyn entry;

	for (size_t i = 0; i < ENTRIES_MAX; i++) {
		if (memory_read(memory, image->dynamic + i * sizeof(entry), &entry, sizeof(entry)) !=
		    MEMORY_OK)
			return false;
		if (entry.d_tag == DT_NULL)
			break;
		if (entry.d_tag == DT_SYMTAB)
			dynamic.symtab = address_of(image, entry.d_un.d_ptr);
		else if (entry.d_tag == DT_STRTAB)
			dynamic.strtab = address_of(image, entry.d_un.d_ptr);
		else if (entry.d_tag == DT_GNU_HASH)
			dynamic.gnu_hash = address_of(image, entry.d_un.d_ptr);
	}
	*ret_dynamic = dynamic;
	return dynamic.symtab && dynamic.strtab && dynamic.gnu_hash;
}

static uint32_t hash_of(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

static bool has_name(struct memory *memory, const struct dynamic *dynamic, const Elf64_Sym *symbol,
		     const char *name)
{
	size_t length = strlen(name) + 1;
	char found[NAME_MAX_BYTES];

	return length <= sizeof(found) && symbol->st_shndx != SHN_UNDEF &&
	       memory_read(memory, dynamic->strtab + symbol->st_name, found, length) == MEMORY_OK &&
	       memcmp(found, name, length) == 0;
}

/* A bucket's chain holds the hashes of its symbols; the last one has its lowest bit set. */
static bool find_in_chain(struct memory *memory, const struct dynamic *dynamic, uint64_t chain,
			  uint32_t first, const char *name, Elf64_Sym *ret_symbol)
{
	uint32_t wanted = hash_of(name), hash;

	for (uint64_t i = 0; i < CHAIN_MAX; i++) {
		Elf64_Sym symbol;

		if (!memory_u32(memory, chain + i * sizeof(hash), &hash))
			return false;
		if ((hash | 1) == (wanted | 1) &&
		    memory_read(memory, dynamic->symtab + (first + i) * sizeof(symbol), &symbol,
				sizeof(symbol)) == MEMORY_OK &&
		    has_name(memory, dynamic, &symbol, name)) {
			*ret_symbol = symbol;
			return true;
		}
		if (hash & 1)
			return false;
	}
	return false;
}

bool dynamic_symbol_find(struct memory *memory, uint64_t base, const char *name, uint64_t *ret_address)
{
	struct {
		uint32_t buckets, first, bloom_words, bloom_shift;
	} header;
	struct elf_image image;
	struct dynamic dynamic;
	uint64_t buckets;
	Elf64_Sym symbol;
	uint32_t first;

	if (elf_image_open(memory, base, &image) != ELF_IMAGE_OK || !image.dynamic ||
	    !read_dynamic(memory, &image, &dynamic) ||
	    memory_read(memory, dynamic.gnu_hash, &header, sizeof(header)) != MEMORY_OK ||
	    header.buckets == 0)
		return false;
	buckets = dynamic.gnu_hash + sizeof(header) + (uint64_t)header.bloom_words * sizeof(uint64_t);
	if (!memory_u32(memory, buckets + hash_of(name) % header.buckets * sizeof(uint32_t), &first) ||
	    first < header.first)
		return false;
	if (!find_in_chain(memory, &dynamic,
			   buckets + ((uint64_t)header.buckets + first - header.first) * sizeof(uint32_t),
			   first, name, &symbol))
		return false;
	*ret_address = image.bias + symbol.st_value;
	return true;
}

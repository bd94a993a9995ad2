/* SPDX-License-Identifier: MIT */
#include "src/linux/files/unpacked.h"

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

#include "luajit-layouts/module/elf_headers.h"

static bool is_of_no_file(const struct mapping *mapping)
{
	return mapping->inode == 0 && mapping->path[0] == '\0';
}

/* Where its last segment ends; 0 if the headers do not tell. */
static uint64_t end_by_headers(const struct elf_headers *headers, uint64_t base)
{
	const uint64_t page = memory_page_size();
	uint64_t bias, end = 0;

	if (!elf_headers_bias(headers, base, &bias))
		return 0;
	for (size_t i = 0; i < headers->elf.e_phnum; i++) {
		const Elf64_Phdr *segment = &headers->segments[i];

		if (segment->p_type == PT_LOAD && segment->p_vaddr + segment->p_memsz > end)
			end = segment->p_vaddr + segment->p_memsz;
	}
	return (bias + end + page - 1) / page * page;
}

/* Is the program at mapping number `first` all there, with code in it, in memory of no file? */
static bool is_whole(const struct maps *maps, size_t first, uint64_t end)
{
	uint64_t at = maps_at(maps, first)->begin;
	bool has_code = false;

	for (size_t i = first; i < maps_count(maps) && at < end; i++) {
		const struct mapping *mapping = maps_at(maps, i);

		if (mapping->begin != at || !is_of_no_file(mapping))
			return false;
		has_code |= (mapping->access & MAPPING_EXECUTE) != 0;
		at = mapping->end;
	}
	return at >= end && has_code;
}

static bool read_program(const struct maps *maps, struct memory *memory, size_t index,
			 struct mapped_file *ret_file)
{
	const struct mapping *mapping = maps_at(maps, index);
	struct elf_headers headers;
	uint64_t end;

	if (!is_of_no_file(mapping) || !(mapping->access & MAPPING_READ) || mapping->access & MAPPING_WRITE ||
	    !elf_headers_read(memory, mapping->begin, &headers))
		return false;
	end = end_by_headers(&headers, mapping->begin);
	if (end <= mapping->begin || !is_whole(maps, index, end))
		return false;
	*ret_file = (struct mapped_file){
		.begin = mapping->begin,
		.end = end,
		.base = mapping->begin,
		.path = UNPACKED_NAME,
		.executable = true,
	};
	return true;
}

size_t unpacked_find(const struct maps *maps, struct memory *memory,
		     struct mapped_file ret_files[static UNPACKED_MAX], size_t *ret_more)
{
	struct mapped_file file;
	uint64_t end = 0;
	size_t count = 0;

	*ret_more = 0;
	for (size_t i = 0; i < maps_count(maps); i++) {
		/* A program may have others in its data. */
		if (maps_at(maps, i)->begin < end || !read_program(maps, memory, i, &file))
			continue;
		end = file.end;
		if (count < UNPACKED_MAX)
			ret_files[count++] = file;
		else
			++*ret_more;
	}
	return count;
}

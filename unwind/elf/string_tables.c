/* SPDX-License-Identifier: MIT */
#include "unwind/elf/string_tables.h"

#include <stddef.h>
#include <stdint.h>

#include <gelf.h>

static bool ends(const Elf_Data *data)
{
	return !data || !data->d_buf || data->d_size == 0 ||
	       ((const char *)data->d_buf)[data->d_size - 1] == '\0';
}

static bool sections_end(Elf *elf)
{
	for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
		GElf_Shdr header;

		if (gelf_getshdr(section, &header) && header.sh_type == SHT_STRTAB &&
		    !ends(elf_rawdata(section, NULL)))
			return false;
	}
	return true;
}

/* The file offset of an address in the file; false if no segment maps it from the file. */
static bool find_offset(Elf *elf, size_t segments, uint64_t address, int64_t *ret_offset)
{
	for (size_t i = 0; i < segments; i++) {
		GElf_Phdr segment;

		if (gelf_getphdr(elf, (int)i, &segment) && segment.p_type == PT_LOAD &&
		    address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz) {
			*ret_offset = (int64_t)(segment.p_offset + (address - segment.p_vaddr));
			return true;
		}
	}
	return false;
}

static bool dynamic_table_ends(Elf *elf, size_t segments, const GElf_Phdr *dynamic)
{
	Elf_Data *entries = elf_getdata_rawchunk(elf, (int64_t)dynamic->p_offset, dynamic->p_filesz,
						 ELF_T_DYN);
	uint64_t address = 0, size = 0;
	GElf_Dyn entry;
	int64_t offset;

	for (int i = 0; entries && gelf_getdyn(entries, i, &entry) && entry.d_tag != DT_NULL; i++) {
		if (entry.d_tag == DT_STRTAB)
			address = entry.d_un.d_ptr;
		else if (entry.d_tag == DT_STRSZ)
			size = entry.d_un.d_val;
	}
	return !size || !find_offset(elf, segments, address, &offset) ||
	       ends(elf_getdata_rawchunk(elf, offset, size, ELF_T_BYTE));
}

bool string_tables_end(Elf *elf)
{
	size_t segments;
	GElf_Phdr segment;

	if (!sections_end(elf))
		return false;
	if (elf_getphdrnum(elf, &segments) != 0)
		return true;
	for (size_t i = 0; i < segments; i++)
		if (gelf_getphdr(elf, (int)i, &segment) && segment.p_type == PT_DYNAMIC &&
		    !dynamic_table_ends(elf, segments, &segment))
			return false;
	return true;
}

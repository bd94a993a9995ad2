/* SPDX-License-Identifier: MIT */
#include "unwind/elf/plt.h"

#include <string.h>

#include <gelf.h>

#include "unwind/elf/plt_jump.h"

enum { RELOCATIONS_MAX = 1 << 20 }; /* checked in one section */

/* The section of PLT entries that holds an address in the file, or NULL. */
static Elf_Scn *find_section(Elf *elf, uint64_t address, GElf_Shdr *ret_header)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return NULL;
	while ((section = elf_nextscn(elf, section))) {
		const char *name;

		if (!gelf_getshdr(section, ret_header) || ret_header->sh_type != SHT_PROGBITS ||
		    address < ret_header->sh_addr || address - ret_header->sh_addr >= ret_header->sh_size)
			continue;
		name = elf_strptr(elf, names, ret_header->sh_name);
		return name && (strncmp(name, ".plt", 4) == 0 || strcmp(name, ".iplt") == 0) ? section : NULL;
	}
	return NULL;
}

/* Find the target by the relocation in one section that fills the slot. */
static bool find_in_relocations(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, uint64_t slot,
				struct plt_entry *entry)
{
	Elf_Data *data = elf_getdata(section, NULL);
	Elf_Scn *symbols = elf_getscn(elf, header->sh_link);
	GElf_Shdr symbols_header;
	GElf_Rela relocation;
	GElf_Sym symbol;

	for (int i = 0; i < RELOCATIONS_MAX && gelf_getrela(data, i, &relocation); i++) {
		if (relocation.r_offset != slot)
			continue;
		if (GELF_R_TYPE(relocation.r_info) == PLT_IRELATIVE) {
			entry->resolver = (uint64_t)relocation.r_addend;
			return true;
		}
		if (symbols && gelf_getshdr(symbols, &symbols_header) &&
		    gelf_getsym(elf_getdata(symbols, NULL), (int)GELF_R_SYM(relocation.r_info), &symbol))
			entry->name = elf_strptr(elf, symbols_header.sh_link, symbol.st_name);
		return entry->name && *entry->name;
	}
	return false;
}

static bool find_target(Elf *elf, uint64_t slot, struct plt_entry *entry)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_RELA &&
		    find_in_relocations(elf, section, &header, slot, entry))
			return true;
	return false;
}

bool plt_find(Elf *elf, uint64_t address, struct plt_entry *ret_entry)
{
	struct plt_entry entry = { .name = NULL };
	GElf_Shdr plt;
	Elf_Scn *section = find_section(elf, address, &plt);
	Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
	uint64_t offset, slot;
	const uint8_t *code;

	if (!data)
		return false;
	offset = address - plt.sh_addr;
	if (offset >= data->d_size)
		return false;
	code = data->d_buf;
	entry.is_before_jump = plt_jump_decode(code + offset, data->d_size - offset, address, &slot);
	if (!entry.is_before_jump) {
		if (!plt_jump_entry(code, offset, plt.sh_entsize, &offset) ||
		    !plt_jump_decode(code + offset, data->d_size - offset, plt.sh_addr + offset, &slot))
			return false;
		entry.is_before_jump = !PLT_PUSHES;
	}
	if (!find_target(elf, slot, &entry))
		return false;
	*ret_entry = entry;
	return true;
}

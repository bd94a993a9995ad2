#include "unwind/plt.h"

#include <stdio.h>
#include <string.h>

#include <gelf.h>

enum {
	ENTRY_MAX = 16,			/* bytes of a PLT entry */
	RELOCATIONS_MAX = 1 << 20,	/* looked at in one section */
};

/* The section of PLT entries that holds an address of the file, or NULL. */
static Elf_Scn *find_section(Elf *elf, uint64_t address, GElf_Shdr *ret_header)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return NULL;
	while ((section = elf_nextscn(elf, section))) {
		const char *name;

		if (!gelf_getshdr(section, ret_header) || ret_header->sh_type != SHT_PROGBITS ||
		    address < ret_header->sh_addr ||
		    address - ret_header->sh_addr >= ret_header->sh_size)
			continue;
		name = elf_strptr(elf, names, ret_header->sh_name);
		return name && strncmp(name, ".plt", 4) == 0 ? section : NULL;
	}
	return NULL;
}

/* The GOT slot of "jmp *slot(%rip)", with or without endbr64 and bnd before it. */
static bool find_slot(const uint8_t *code, size_t length, uint64_t address, uint64_t *ret_slot)
{
	for (size_t i = 0; i + 6 <= length; i++) {
		int32_t displacement;

		if (code[i] != 0xff || code[i + 1] != 0x25)
			continue;
		memcpy(&displacement, code + i + 2, sizeof(displacement));
		*ret_slot = address + i + 6 + (uint64_t)(int64_t)displacement;
		return true;
	}
	return false;
}

/* The symbol by which the relocations in one section fill a slot. */
static const char *find_in_relocations(Elf *elf, Elf_Scn *section, const GElf_Shdr *header,
				       uint64_t slot)
{
	Elf_Data *data = elf_getdata(section, NULL);
	Elf_Scn *symbols = elf_getscn(elf, header->sh_link);
	GElf_Shdr symbols_header;
	GElf_Rela relocation;
	GElf_Sym symbol;

	if (!data || !symbols || !gelf_getshdr(symbols, &symbols_header))
		return NULL;
	for (int i = 0; i < RELOCATIONS_MAX && gelf_getrela(data, i, &relocation); i++)
		if (relocation.r_offset == slot)
			return gelf_getsym(elf_getdata(symbols, NULL),
					   (int)GELF_R_SYM(relocation.r_info), &symbol)
				? elf_strptr(elf, symbols_header.sh_link, symbol.st_name) : NULL;
	return NULL;
}

bool plt_find(Elf *elf, uint64_t address, char *ret_name, size_t size)
{
	GElf_Shdr plt, header;
	Elf_Scn *section = find_section(elf, address, &plt);
	Elf_Data *code = section ? elf_getdata(section, NULL) : NULL;
	uint64_t offset, length, slot;

	if (!code)
		return false;
	length = plt.sh_entsize == 8 ? 8 : ENTRY_MAX;
	offset = (address - plt.sh_addr) / length * length;
	if (offset > code->d_size || code->d_size - offset < length ||
	    !find_slot((const uint8_t *)code->d_buf + offset, length, plt.sh_addr + offset, &slot))
		return false;
	section = NULL;
	while ((section = elf_nextscn(elf, section))) {
		const char *name;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_RELA)
			continue;
		name = find_in_relocations(elf, section, &header, slot);
		if (name && *name) {
			snprintf(ret_name, size, "%s", name);
			return true;
		}
	}
	return false;
}

/* SPDX-License-Identifier: MIT */
/*
 * The search for an unwind table in a file that does not tell where it is.
 *
 *	input = file
 */
#include <dwarf.h>
#include <gelf.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "unwind/symbols/table_entry.h"
#include "unwind/symbols/table_search.h"

enum { WORD = 4 };

/* Begin to read the entry at an offset of a table, before its end mark. */
static bool begin_entry(const struct unwind_entries *entries, size_t at, struct table_reader *ret_reader)
{
	*ret_reader = (struct table_reader){ .at = entries->bytes + at,
					     .end = entries->bytes + entries->length - WORD };
	return table_entry_begin(ret_reader);
}

static bool is_code(Elf *elf, uint64_t begin, uint64_t length)
{
	GElf_Phdr header;
	size_t count = 0;

	elf_getphdrnum(elf, &count);
	for (size_t i = 0; i < count && gelf_getphdr(elf, (int)i, &header); i++)
		if (header.p_type == PT_LOAD && header.p_flags & PF_X &&
		    begin - header.p_vaddr < header.p_filesz &&
		    length <= header.p_filesz - (begin - header.p_vaddr))
			return true;
	return false;
}

/* Does the FDE at an offset lead back to a CIE in the table, and is its code in the file? */
static bool is_fde(Elf *elf, const struct unwind_entries *entries, size_t at, uint32_t back,
		   struct table_reader *reader)
{
	const size_t way_back = at + WORD;
	struct table_reader common;
	struct table_cie cie;
	uint64_t code, length;

	if (back > way_back || !begin_entry(entries, way_back - back, &common) ||
	    !table_cie_read(&common, &cie) || !table_fde_read(reader, &cie, &code, &length))
		return false;
	if ((cie.address_encoding & ~TABLE_FORMAT_MASK) == DW_EH_PE_pcrel)
		code += entries->address + way_back + WORD;
	return is_code(elf, code, length);
}

/* Is it a table: entries one behind the other, the first one a CIE, up to an end mark? */
static bool is_table(Elf *elf, const struct unwind_entries *entries)
{
	struct table_reader reader;
	size_t at = 0;

	while (entries->length - at > WORD) {
		size_t next;
		uint32_t back;

		if (!begin_entry(entries, at, &reader))
			return false;
		next = (size_t)(reader.end - entries->bytes);
		back = table_u32(&reader);
		if (back != 0 && !is_fde(elf, entries, at, back, &reader))
			return false;
		at = next;
	}
	return entries->length - at == WORD && entries->bytes[at] == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const int fd = fuzz_file(data, size);
	struct unwind_entries entries;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && table_search(elf, &entries))
		fuzz_check(is_table(elf, &entries), "what is found is a table");
	elf_end(elf);
	close(fd);
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include "unwind/symbols/table_search.h"

#include <dwarf.h>
#include <gelf.h>
#include <string.h>

#include "unwind/symbols/table_entry.h"

enum { WORD = sizeof(uint32_t) }; /* tables begin at a multiple of it, and most entries */
static const uint64_t segment_max = 256 << 20;

/* A segment that may hold a table. */
struct segment {
	Elf *elf;
	uint8_t *bytes;
	size_t length;
	uint64_t address;
};

/* Is all of it code of the file? */
static bool is_code(Elf *elf, uint64_t begin, uint64_t length)
{
	GElf_Phdr header;
	size_t count;

	if (elf_getphdrnum(elf, &count) != 0)
		return false;
	for (size_t i = 0; i < count && gelf_getphdr(elf, (int)i, &header); i++)
		if (header.p_type == PT_LOAD && header.p_flags & PF_X && begin >= header.p_vaddr &&
		    begin - header.p_vaddr < header.p_filesz &&
		    length <= header.p_filesz - (begin - header.p_vaddr))
			return true;
	return false;
}

/* Begin to read the entry at an offset. False if there is none. */
static bool begin_entry(const struct segment *segment, size_t at, struct table_reader *ret_reader)
{
	*ret_reader = (struct table_reader){ .at = segment->bytes + at,
					     .end = segment->bytes + segment->length };
	return table_entry_begin(ret_reader);
}

static bool is_cie(const struct segment *segment, size_t at, struct table_cie *ret_cie)
{
	struct table_reader reader;

	return begin_entry(segment, at, &reader) && table_cie_read(&reader, ret_cie);
}

/* What the address of an FDE's code, at an offset, counts from. False for what linkers do not write. */
static bool find_base(const struct segment *segment, size_t at, uint8_t encoding, uint64_t *ret_base)
{
	switch (encoding & ~TABLE_FORMAT_MASK) {
	case DW_EH_PE_absptr: *ret_base = 0; return true;
	case DW_EH_PE_pcrel: *ret_base = segment->address + at; return true;
	default: return false;
	}
}

/* Is there an FDE at an offset, of the table that begins at another one? */
static bool is_fde(const struct segment *segment, size_t begin, size_t at)
{
	struct table_reader reader;
	struct table_cie cie;
	uint64_t base, code, length;
	uint32_t back;

	if (!begin_entry(segment, at, &reader))
		return false;
	at += WORD; /* from here back to the CIE */
	back = table_u32(&reader);
	return back != 0 && back <= at - begin && is_cie(segment, at - back, &cie) &&
	       find_base(segment, at + WORD, cie.address_encoding, &base) &&
	       table_fde_read(&reader, &cie, &code, &length) && is_code(segment->elf, base + code, length);
}

static bool is_end(const struct segment *segment, size_t at)
{
	uint32_t length;

	if (segment->length - at < sizeof(length))
		return false;
	memcpy(&length, segment->bytes + at, sizeof(length));
	return length == 0;
}

/* Follow a table's entries. *ret_end: where its end mark is, or the first thing that belongs to no table. */
static bool is_table(const struct segment *segment, size_t begin, size_t *ret_end)
{
	struct table_reader reader;
	struct table_cie cie;
	size_t at = begin;
	bool has_code = false;

	for (bool is_entry = is_cie(segment, at, &cie); is_entry;) {
		begin_entry(segment, at, &reader);
		at = (size_t)(reader.end - segment->bytes);
		is_entry = is_fde(segment, begin, at);
		has_code |= is_entry;
		is_entry = is_entry || is_cie(segment, at, &cie);
	}
	*ret_end = at;
	return has_code && is_end(segment, at);
}

/* Where to look next for the beginning of a table, after one that began at `begin` and came as far as `end`. */
static size_t next_place(size_t begin, size_t end)
{
	return end > begin ? (end + WORD - 1) / WORD * WORD : begin + WORD;
}

/* The number of tables in a segment. The last one is in *ret_entries. */
static unsigned int count_tables(const struct segment *segment, struct unwind_entries *ret_entries)
{
	unsigned int count = 0;
	size_t at = 0, end;

	while (at < segment->length) {
		const size_t begin = at;
		const bool found = is_table(segment, begin, &end);

		at = next_place(begin, end);
		if (!found)
			continue;
		*ret_entries = (struct unwind_entries){
			.bytes = segment->bytes + begin,
			.length = end + WORD - begin,
			.address = segment->address + begin,
		};
		count++;
	}
	return count;
}

bool table_search(Elf *elf, struct unwind_entries *ret_entries)
{
	struct unwind_entries entries;
	unsigned int found = 0;
	GElf_Phdr header;
	size_t count;

	if (elf_getphdrnum(elf, &count) != 0)
		return false;
	for (size_t i = 0; i < count && gelf_getphdr(elf, (int)i, &header); i++) {
		Elf_Data *data;

		if (header.p_type != PT_LOAD || header.p_flags & PF_W || header.p_vaddr % WORD ||
		    header.p_filesz == 0 || header.p_filesz > segment_max)
			continue;
		data = elf_getdata_rawchunk(elf, (int64_t)header.p_offset, header.p_filesz, ELF_T_BYTE);
		if (data)
			found += count_tables(
				&(struct segment){ elf, data->d_buf, data->d_size, header.p_vaddr },
				&entries);
	}
	if (found != 1)
		return false;
	*ret_entries = entries;
	return true;
}

/* SPDX-License-Identifier: MIT */
#include "unwind/symbols/table_search.h"

#include <dwarf.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "unwind/symbols/table_entry.h"

enum { WORD = sizeof(uint32_t) }; /* tables begin at a multiple of it, and most entries */
enum {
	BYTES_MAX = 256 << 20,  /* of all segments together, which may be the same bytes of the file */
	ENTRIES_MAX = 4 << 20,  /* looked at; the largest programs have some 100,000s */
	CODE_SEGMENTS_MAX = 16, /* a program has one or two */
};

struct code {
	uint64_t begin, length;
};

/* What is known of a file. */
struct search {
	struct code code[CODE_SEGMENTS_MAX];
	size_t code_count, entries_left;
	size_t *cies; /* where those of the table are that is followed, in ascending order */
	size_t cie_count, cie_room;
};

/* A segment that may hold a table. */
struct segment {
	struct search *search;
	uint8_t *bytes;
	size_t length;
	uint64_t address;
};

/* Is all of it code of the file? */
static bool is_code(const struct search *search, uint64_t begin, uint64_t length)
{
	for (size_t i = 0; i < search->code_count; i++) {
		const struct code *code = &search->code[i];

		if (begin >= code->begin && begin - code->begin < code->length &&
		    length <= code->length - (begin - code->begin))
			return true;
	}
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

/* Note the CIE at an offset. False if there is none. */
static bool note_cie(const struct segment *segment, size_t at)
{
	struct search *search = segment->search;
	struct table_cie cie;
	size_t *cies;

	if (!is_cie(segment, at, &cie))
		return false;
	cies = array_grow(search->cies, &search->cie_room, search->cie_count + 1, sizeof(*cies));
	if (!cies)
		return false;
	search->cies = cies;
	cies[search->cie_count++] = at;
	return true;
}

static int compare_offsets(const void *a, const void *b)
{
	const size_t first = *(const size_t *)a, second = *(const size_t *)b;

	return (first > second) - (first < second);
}

/* Is it one of the table's entries? In the middle of another one, any bytes may look like a CIE. */
static bool is_noted_cie(const struct search *search, size_t at)
{
	return search->cie_count &&
	       bsearch(&at, search->cies, search->cie_count, sizeof(*search->cies), compare_offsets);
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
	return back != 0 && back <= at - begin && is_noted_cie(segment->search, at - back) &&
	       is_cie(segment, at - back, &cie) &&
	       find_base(segment, at + WORD, cie.address_encoding, &base) &&
	       table_fde_read(&reader, &cie, &code, &length) && is_code(segment->search, base + code, length);
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
	size_t at = begin;
	bool has_code = false;

	segment->search->cie_count = 0;
	for (bool is_entry = note_cie(segment, at); is_entry && segment->search->entries_left;) {
		segment->search->entries_left--;
		begin_entry(segment, at, &reader);
		at = (size_t)(reader.end - segment->bytes);
		is_entry = is_fde(segment, begin, at);
		has_code |= is_entry;
		is_entry = is_entry || note_cie(segment, at);
	}
	*ret_end = at;
	return has_code && is_end(segment, at);
}

/*
 * Where to look next for the beginning of a table, after one that began at `begin` and came as far as `end`.
 */
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

static bool may_hold_table(const GElf_Phdr *header)
{
	return header->p_type == PT_LOAD && !(header->p_flags & PF_W) && header->p_vaddr % WORD == 0 &&
	       header->p_filesz != 0;
}

/* Note where code is. False if there is too much to search. */
static bool begin_search(Elf *elf, size_t count, struct search *ret_search)
{
	struct search search = { .entries_left = ENTRIES_MAX };
	uint64_t bytes_left = BYTES_MAX;
	GElf_Phdr header;

	for (size_t i = 0; i < count && gelf_getphdr(elf, (int)i, &header); i++) {
		if (may_hold_table(&header)) {
			if (header.p_filesz > bytes_left)
				return false;
			bytes_left -= header.p_filesz;
		}
		if (header.p_type == PT_LOAD && header.p_flags & PF_X) {
			if (search.code_count == CODE_SEGMENTS_MAX)
				return false;
			search.code[search.code_count++] = (struct code){ header.p_vaddr, header.p_filesz };
		}
	}
	*ret_search = search;
	return true;
}

bool table_search(Elf *elf, struct unwind_entries *ret_entries)
{
	struct unwind_entries entries;
	struct search search;
	unsigned int found = 0;
	GElf_Phdr header;
	size_t count;

	if (elf_getphdrnum(elf, &count) != 0 || !begin_search(elf, count, &search))
		return false;
	for (size_t i = 0; i < count && gelf_getphdr(elf, (int)i, &header); i++) {
		Elf_Data *data;

		if (!may_hold_table(&header))
			continue;
		data = elf_getdata_rawchunk(elf, (int64_t)header.p_offset, header.p_filesz, ELF_T_BYTE);
		if (data)
			found += count_tables(
				&(struct segment){ &search, data->d_buf, data->d_size, header.p_vaddr },
				&entries);
	}
	free(search.cies);
	if (found != 1 || !search.entries_left)
		return false;
	*ret_entries = entries;
	return true;
}

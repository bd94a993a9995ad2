/* SPDX-License-Identifier: MIT */
#include "unwind/symbols/table_entry.h"

#include <dwarf.h>
#include <string.h>

#include "unwind/elf/registers.h"

enum { LEB_BYTES_MAX = 10 }; /* a 64-bit value */

void table_skip(struct table_reader *reader, uint64_t length)
{
	if (length > (uint64_t)(reader->end - reader->at)) {
		reader->failed = true;
		reader->at = reader->end;
	} else {
		reader->at += length;
	}
}

/* Copy so many bytes, at most 8, of a little-endian number. */
static uint64_t take(struct table_reader *reader, size_t length)
{
	const uint8_t *at = reader->at;
	uint64_t value = 0;

	table_skip(reader, length);
	if (!reader->failed)
		memcpy(&value, at, length);
	return value;
}

uint8_t table_u8(struct table_reader *reader)
{
	return (uint8_t)take(reader, sizeof(uint8_t));
}

uint32_t table_u32(struct table_reader *reader)
{
	return (uint32_t)take(reader, sizeof(uint32_t));
}

uint64_t table_leb(struct table_reader *reader)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < LEB_BYTES_MAX; i++) {
		uint8_t byte = table_u8(reader);

		value |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (!(byte & 0x80))
			return value;
	}
	reader->failed = true;
	return 0;
}

uint64_t table_number(struct table_reader *reader, uint8_t encoding)
{
	switch (encoding & TABLE_FORMAT_MASK) {
	case DW_EH_PE_udata2: return take(reader, sizeof(uint16_t));
	case DW_EH_PE_sdata2: return (uint64_t)(int16_t)take(reader, sizeof(int16_t));
	case DW_EH_PE_udata4: return take(reader, sizeof(uint32_t));
	case DW_EH_PE_sdata4: return (uint64_t)(int32_t)take(reader, sizeof(int32_t));
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8: return take(reader, sizeof(uint64_t));
	default: reader->failed = true; return 0;
	}
}

bool table_entry_begin(struct table_reader *reader)
{
	const uint32_t length = table_u32(reader);

	if (reader->failed || length < sizeof(uint32_t) || length > (uint64_t)(reader->end - reader->at))
		return false;
	reader->end = reader->at + length;
	return true;
}

/* Accept no letters, or "z" and any of "PLRS" in any order. */
static bool read_augmentation(struct table_reader *reader, const char *letters, struct table_cie *cie)
{
	const uint8_t *end;
	uint64_t length;

	cie->address_encoding = DW_EH_PE_absptr;
	cie->has_augmentation = *letters == 'z';
	if (!*letters)
		return true;
	if (*letters != 'z')
		return false;
	length = table_leb(reader);
	if (reader->failed || length > (uint64_t)(reader->end - reader->at))
		return false;
	end = reader->at + length;
	while (*++letters) {
		switch (*letters) {
		case 'P': table_number(reader, table_u8(reader)); break;
		case 'L': table_u8(reader); break;
		case 'R': cie->address_encoding = table_u8(reader); break;
		case 'S': break;
		default: return false;
		}
	}
	return !reader->failed && reader->at == end;
}

bool table_cie_read(struct table_reader *reader, struct table_cie *ret_cie)
{
	enum { LETTERS_MAX = 4, V1 = 1, V3 = 3 }; /* libunwind keeps LETTERS_MAX letters */
	char letters[LETTERS_MAX + 1] = "";
	uint32_t id = table_u32(reader);
	uint8_t version = table_u8(reader);
	uint64_t return_address;

	for (size_t i = 0; (letters[i] = (char)table_u8(reader)); i++)
		if (i == LETTERS_MAX)
			return false;
	table_leb(reader); /* alignment factors of code and data */
	table_leb(reader);
	return_address = version == V1 ? table_u8(reader) : table_leb(reader);
	return !reader->failed && id == 0 && (version == V1 || version == V3) &&
	       return_address == REGISTER_NUMBER_RETURN && read_augmentation(reader, letters, ret_cie);
}

bool table_fde_read(struct table_reader *reader, const struct table_cie *cie, uint64_t *ret_code,
		    uint64_t *ret_length)
{
	*ret_code = table_number(reader, cie->address_encoding);
	*ret_length = table_number(reader, cie->address_encoding);
	if (cie->has_augmentation)
		table_skip(reader, table_leb(reader));
	return !reader->failed;
}

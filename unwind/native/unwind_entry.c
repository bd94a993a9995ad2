/* SPDX-License-Identifier: MIT */
#include "unwind/native/unwind_entry.h"

#include <dwarf.h>
#include <string.h>

#include "unwind/elf/registers.h"

enum {
	WORD = sizeof(uint64_t),
	PAIR_SIZE = 8,
	LEB_BYTES_MAX = 10, /* a 64-bit value */
	FORMAT_MASK = 0x0f, /* in a DW_EH_PE_* encoding */
};

/* The bytes left to read. A read past the end fails, and leaves nothing. */
struct reader {
	uint8_t *at, *end;
	bool failed;
};

/* A CIE's properties that its FDEs depend on. */
struct common {
	uint8_t address_encoding; /* DW_EH_PE_* */
	bool has_augmentation;
};

/*---- Copies ----*/

/* Copy length bytes, at most UNWIND_PIECE_MAX. */
static bool copy_piece(struct memory *text, uint64_t address, uint64_t length, struct unwind_piece *piece)
{
	if (address > UINT64_MAX - UNWIND_PIECE_MAX - WORD)
		return false;
	piece->begin = address & ~(uint64_t)(WORD - 1);
	piece->end = (address + length + WORD - 1) & ~(uint64_t)(WORD - 1);
	return memory_read(text, piece->begin, piece->bytes, piece->end - piece->begin) == MEMORY_OK;
}

/* Copy an entry of the 32-bit format, with its length field. *ret_reader is what follows the length. */
static bool copy_entry(struct memory *text, uint64_t address, struct unwind_piece *piece,
		       struct reader *ret_reader)
{
	uint32_t length;

	if (!memory_u32(text, address, &length) || length > UNWIND_PIECE_MAX - sizeof(length) ||
	    !copy_piece(text, address, sizeof(length) + length, piece))
		return false;
	ret_reader->at = piece->bytes + (address - piece->begin) + sizeof(length);
	ret_reader->end = ret_reader->at + length;
	ret_reader->failed = false;
	/* The memory may have changed between the two reads. */
	return memcmp(ret_reader->at - sizeof(length), &length, sizeof(length)) == 0;
}

static bool piece_word(const struct unwind_piece *piece, uint64_t address, uint64_t *ret_word)
{
	if (address < piece->begin || address >= piece->end || piece->end - address < WORD)
		return false;
	memcpy(ret_word, piece->bytes + (address - piece->begin), WORD);
	return true;
}

bool unwind_entry_word(const struct unwind_entry *entry, uint64_t address, uint64_t *ret_word)
{
	return piece_word(&entry->fde, address, ret_word) || piece_word(&entry->cie, address, ret_word) ||
	       piece_word(&entry->pair, address, ret_word);
}

/*---- Reading ----*/

static void skip(struct reader *reader, uint64_t length)
{
	if (length > (uint64_t)(reader->end - reader->at)) {
		reader->failed = true;
		reader->at = reader->end;
	} else {
		reader->at += length;
	}
}

static uint8_t take_u8(struct reader *reader)
{
	const uint8_t *at = reader->at;

	skip(reader, 1);
	return reader->failed ? 0 : *at;
}

static uint32_t take_u32(struct reader *reader)
{
	const uint8_t *at = reader->at;
	uint32_t value = 0;

	skip(reader, sizeof(value));
	if (!reader->failed)
		memcpy(&value, at, sizeof(value));
	return value;
}

static uint64_t take_leb(struct reader *reader)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < LEB_BYTES_MAX; i++) {
		uint8_t byte = take_u8(reader);

		value |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (!(byte & 0x80))
			return value;
	}
	reader->failed = true;
	return 0;
}

static void take_register(struct reader *reader)
{
	if (take_leb(reader) >= REGISTER_NUMBERS_IN_TABLES)
		reader->failed = true;
}

/* Skip a pointer of fixed size, whatever its base. */
static void skip_pointer(struct reader *reader, uint8_t encoding)
{
	switch (encoding & FORMAT_MASK) {
	case DW_EH_PE_udata2:
	case DW_EH_PE_sdata2: skip(reader, 2); break;
	case DW_EH_PE_udata4:
	case DW_EH_PE_sdata4: skip(reader, 4); break;
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8: skip(reader, 8); break;
	default: reader->failed = true;
	}
}

/*---- Checks ----*/

/*
 * Check an instruction that has its two high bits clear. Hide from libunwind, which may not
 * know it, whether the return address is signed: registers_code_address() fits both.
 */
static void check_extended(struct reader *reader, uint8_t op)
{
	if (op == TABLE_OP_NEGATES_SIGNATURE) {
		reader->at[-1] = DW_CFA_nop;
		return;
	}
	switch (op) {
	case DW_CFA_nop:
	case DW_CFA_remember_state:
	case DW_CFA_restore_state: break;
	case DW_CFA_advance_loc1: skip(reader, 1); break;
	case DW_CFA_advance_loc2: skip(reader, 2); break;
	case DW_CFA_advance_loc4: skip(reader, 4); break;
	case DW_CFA_restore_extended:
	case DW_CFA_undefined:
	case DW_CFA_same_value:
	case DW_CFA_def_cfa_register: take_register(reader); break;
	case DW_CFA_register:
		take_register(reader);
		take_register(reader);
		break;
	case DW_CFA_offset_extended:
	case DW_CFA_offset_extended_sf:
	case DW_CFA_def_cfa:
	case DW_CFA_def_cfa_sf:
	case DW_CFA_GNU_negative_offset_extended:
		take_register(reader);
		take_leb(reader);
		break;
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_offset_sf:
	case DW_CFA_GNU_args_size: take_leb(reader); break;
	default: /* includes expressions */ reader->failed = true;
	}
}

static bool check_instructions(struct reader *reader)
{
	while (!reader->failed && reader->at < reader->end) {
		uint8_t op = take_u8(reader), operand = op & 0x3f;

		switch (op & 0xc0) {
		case DW_CFA_advance_loc: break;
		case DW_CFA_offset:
			take_leb(reader);
			reader->failed |= operand >= REGISTER_NUMBERS_IN_TABLES;
			break;
		case DW_CFA_restore: reader->failed |= operand >= REGISTER_NUMBERS_IN_TABLES; break;
		default: check_extended(reader, operand);
		}
	}
	return !reader->failed;
}

/* Accept no letters, or "z" and any of "PLRS" in any order. */
static bool check_augmentation(struct reader *reader, const char *letters, struct common *common)
{
	const uint8_t *end;
	uint64_t length;

	common->address_encoding = DW_EH_PE_absptr;
	common->has_augmentation = *letters == 'z';
	if (!*letters)
		return true;
	if (*letters != 'z')
		return false;
	length = take_leb(reader);
	if (reader->failed || length > (uint64_t)(reader->end - reader->at))
		return false;
	end = reader->at + length;
	while (*++letters) {
		switch (*letters) {
		case 'P': skip_pointer(reader, take_u8(reader)); break;
		case 'L': take_u8(reader); break;
		case 'R': common->address_encoding = take_u8(reader); break;
		case 'S': break;
		default: return false;
		}
	}
	return !reader->failed && reader->at == end;
}

static bool check_cie(struct reader *reader, struct common *ret_common)
{
	enum { LETTERS_MAX = 4, V1 = 1, V3 = 3 }; /* libunwind keeps LETTERS_MAX letters */
	char letters[LETTERS_MAX + 1] = "";
	uint32_t id = take_u32(reader);
	uint8_t version = take_u8(reader);
	uint64_t return_address;

	for (size_t i = 0; (letters[i] = (char)take_u8(reader)); i++)
		if (i == LETTERS_MAX)
			return false;
	take_leb(reader); /* alignment factors of code and data */
	take_leb(reader);
	return_address = version == V1 ? take_u8(reader) : take_leb(reader);
	return !reader->failed && id == 0 && (version == V1 || version == V3) &&
	       return_address == REGISTER_NUMBER_RETURN && check_augmentation(reader, letters, ret_common) &&
	       check_instructions(reader);
}

/* Check the rest of an FDE, after the CIE's offset. */
static bool check_fde(struct reader *reader, const struct common *common)
{
	skip_pointer(reader, common->address_encoding);
	skip_pointer(reader, common->address_encoding);
	if (common->has_augmentation)
		skip(reader, take_leb(reader));
	return !reader->failed && check_instructions(reader);
}

bool unwind_entry_read(struct memory *text, uint64_t header, uint64_t pair, struct unwind_entry *entry)
{
	struct reader fde, cie;
	struct common common = { 0 };
	uint64_t address;
	uint32_t offset;

	/* Do not let pieces of a previous entry show through. */
	entry->pair.end = entry->fde.end = entry->cie.end = 0;
	if (!copy_piece(text, pair, PAIR_SIZE, &entry->pair))
		return false;
	memcpy(&offset, entry->pair.bytes + (pair - entry->pair.begin) + sizeof(offset), sizeof(offset));
	address = header + (uint64_t)(int32_t)offset;
	if (!copy_entry(text, address, &entry->fde, &fde))
		return false;
	offset = take_u32(&fde);
	return !fde.failed && offset != 0 &&
	       copy_entry(text, address + sizeof(uint32_t) - (uint64_t)(int32_t)offset, &entry->cie, &cie) &&
	       check_cie(&cie, &common) && check_fde(&fde, &common);
}

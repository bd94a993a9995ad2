/* SPDX-License-Identifier: MIT */
#include "unwind/native/unwind_entry.h"

#include <dwarf.h>
#include <string.h>

#include "unwind/elf/registers.h"
#include "unwind/symbols/table_entry.h"

enum {
	WORD = sizeof(uint64_t),
	PAIR_SIZE = 8,
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
		       struct table_reader *ret_reader)
{
	const uint8_t *end;
	uint32_t length;

	if (!memory_u32(text, address, &length) || length > UNWIND_PIECE_MAX - sizeof(length) ||
	    !copy_piece(text, address, sizeof(length) + length, piece))
		return false;
	ret_reader->at = piece->bytes + (address - piece->begin);
	ret_reader->end = ret_reader->at + sizeof(length) + length;
	ret_reader->failed = false;
	end = ret_reader->end;
	/* The memory may have changed between the two reads. */
	return table_entry_begin(ret_reader) && ret_reader->end == end;
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

/*---- Checks ----*/

static void take_register(struct table_reader *reader)
{
	if (table_leb(reader) >= REGISTER_NUMBERS_IN_TABLES)
		reader->failed = true;
}

/*
 * Check an instruction that has its two high bits clear. Hide from libunwind, which may not
 * know it, whether the return address is signed: registers_code_address() fits both.
 */
static void check_extended(struct table_reader *reader, uint8_t op)
{
	if (op == TABLE_OP_NEGATES_SIGNATURE) {
		reader->at[-1] = DW_CFA_nop;
		return;
	}
	switch (op) {
	case DW_CFA_nop:
	case DW_CFA_remember_state:
	case DW_CFA_restore_state: break;
	case DW_CFA_advance_loc1: table_skip(reader, 1); break;
	case DW_CFA_advance_loc2: table_skip(reader, 2); break;
	case DW_CFA_advance_loc4: table_skip(reader, 4); break;
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
		table_leb(reader);
		break;
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_offset_sf:
	case DW_CFA_GNU_args_size: table_leb(reader); break;
	default: /* includes expressions */ reader->failed = true;
	}
}

static bool check_instructions(struct table_reader *reader)
{
	while (!reader->failed && reader->at < reader->end) {
		uint8_t op = table_u8(reader), operand = op & 0x3f;

		switch (op & 0xc0) {
		case DW_CFA_advance_loc: break;
		case DW_CFA_offset:
			table_leb(reader);
			reader->failed |= operand >= REGISTER_NUMBERS_IN_TABLES;
			break;
		case DW_CFA_restore: reader->failed |= operand >= REGISTER_NUMBERS_IN_TABLES; break;
		default: check_extended(reader, operand);
		}
	}
	return !reader->failed;
}

static bool check_cie(struct table_reader *reader, struct table_cie *ret_cie)
{
	return table_cie_read(reader, ret_cie) && check_instructions(reader);
}

/* Check the rest of an FDE, after the CIE's offset. */
static bool check_fde(struct table_reader *reader, const struct table_cie *cie)
{
	uint64_t code, length;

	return table_fde_read(reader, cie, &code, &length) && check_instructions(reader);
}

bool unwind_entry_read(struct memory *text, uint64_t header, uint64_t pair, struct unwind_entry *entry)
{
	struct table_reader fde, cie;
	struct table_cie common = { 0 };
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
	offset = table_u32(&fde);
	return !fde.failed && offset != 0 &&
	       copy_entry(text, address + sizeof(uint32_t) - (uint64_t)(int32_t)offset, &entry->cie, &cie) &&
	       check_cie(&cie, &common) && check_fde(&fde, &common);
}

/* SPDX-License-Identifier: MIT */
/* Which entries of unwind tables are given to libunwind: made-up ones, with each kind of instruction. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <dwarf.h>

#include "tests/unit/made_up_memory.h"
#include "unwind/elf/registers.h"
#include "unwind/native/unwind_entry.h"

enum {
	CIE = MADE_UP_AT + 0x104, /* at no word's beginning */
	FDE = MADE_UP_AT + 0x204,
	HEADER = MADE_UP_AT + 0x3000,
	PAIR = HEADER + 12,
	LAST_REGISTER = REGISTER_NUMBERS - 1,
};

static struct memory *memory;
static struct unwind_entry entry;

/* What follows the length of an entry. */
struct piece {
	uint8_t bytes[0x100];
	size_t length;
};

static void add(struct piece *piece, const void *bytes, size_t length)
{
	assert_in_range(piece->length + length, 0, sizeof(piece->bytes));
	memcpy(piece->bytes + piece->length, bytes, length);
	piece->length += length;
}

static void put_piece(uint64_t address, const struct piece *piece)
{
	put(address, piece->length, 4);
	put_bytes(address + 4, piece->bytes, piece->length);
}

/* A CIE up to its instructions; data is the augmentation's. */
static struct piece cie_with(uint8_t version, const char *letters, const void *data, size_t data_length)
{
	/* Alignment factors of code and data, and the return address's register. */
	static const uint8_t rest[] = { 1, 0x78, REGISTER_NUMBER_RETURN };
	struct piece cie = { .length = 4 }; /* a CIE's number is 0 */

	add(&cie, &version, 1);
	add(&cie, letters, strlen(letters) + 1);
	add(&cie, rest, sizeof(rest));
	if (*letters == 'z')
		add(&cie, &(uint8_t){ (uint8_t)data_length }, 1);
	add(&cie, data, data_length);
	return cie;
}

/* The address of the code and its length, each of so many bytes; the augmentation's data, if any. */
static void put_fde(size_t pointer_bytes, const char *augmentation, size_t augmentation_length,
		    const void *ops, size_t ops_length)
{
	static const uint8_t pointers[16];
	const uint32_t to_cie = FDE + 4 - CIE;
	struct piece fde = { .length = 0 };

	add(&fde, &to_cie, sizeof(to_cie));
	add(&fde, pointers, 2 * pointer_bytes);
	add(&fde, augmentation, augmentation_length);
	add(&fde, ops, ops_length);
	put_piece(FDE, &fde);
}

static bool read_entry(void)
{
	return unwind_entry_read(memory, HEADER, PAIR, &entry);
}

/* As gcc writes it: "zR", with addresses of four bytes. */
static void put_usual_cie(void)
{
	const struct piece cie = cie_with(1, "zR", "\x1b", 1);

	put_piece(CIE, &cie);
}

static int begin(void **state)
{
	(void)state;
	memory = made_up_memory_begin();
	put_usual_cie();
	put_fde(4, "", 1, "", 0);
	put(PAIR, 0x1234, 4);
	put(PAIR + 4, (uint64_t)FDE - HEADER, 4);
	return 0;
}

static void an_entry_is_copied_with_all_that_belongs_to_it(void **state)
{
	const uint64_t pieces[][2] = { { CIE, 4 + 13 }, { FDE, 4 + 13 }, { PAIR, 8 } };
	uint64_t word = 1, expected;

	(void)state;
	assert_true(read_entry());
	for (size_t i = 0; i < 3; i++) {
		const uint64_t first = pieces[i][0] & ~UINT64_C(7);

		for (uint64_t at = first; at < pieces[i][0] + pieces[i][1]; at += 8) {
			assert_true(unwind_entry_word(&entry, at, &word));
			memcpy(&expected, made_up_memory.bytes + (at - MADE_UP_AT), sizeof(expected));
			assert_int_equal(word, expected);
		}
		word = 1;
		assert_false(unwind_entry_word(&entry, first - 1, &word));
		assert_false(unwind_entry_word(&entry, first - 8, &word));
		assert_false(unwind_entry_word(&entry, (pieces[i][0] + pieces[i][1] + 7) / 8 * 8 - 7, &word));
		assert_false(unwind_entry_word(&entry, (pieces[i][0] + pieces[i][1] + 7) / 8 * 8, &word));
		assert_int_equal(word, 1);
	}
	assert_false(unwind_entry_word(&entry, 0, &word));
	assert_false(unwind_entry_word(&entry, UINT64_MAX, &word));
}

static void a_pair_may_lead_before_the_header_or_behind(void **state)
{
	(void)state;
	assert_true(read_entry());
	assert_false(unwind_entry_read(memory, MADE_UP_AT, PAIR, &entry));
	put(PAIR + 4, (uint64_t)FDE - MADE_UP_AT, 4);
	assert_true(unwind_entry_read(memory, MADE_UP_AT, PAIR, &entry));
	put(PAIR + 4, 0x100000, 4);
	assert_false(read_entry());
	assert_false(unwind_entry_read(memory, HEADER, MADE_UP_AT + MADE_UP_BYTES, &entry));
	assert_false(unwind_entry_read(memory, HEADER, UINT64_MAX - 8, &entry));
}

static void a_version_and_a_return_address_are_those_of_functions(void **state)
{
	struct piece cie;

	(void)state;
	for (unsigned int version = 0; version < 256; version++) {
		cie = cie_with((uint8_t)version, "zR", "\x1b", 1);
		put_piece(CIE, &cie);
		assert_int_equal(read_entry(), version == 1 || version == 3);
	}
	for (unsigned int number = 0; number < 128; number++) {
		cie = cie_with(1, "zR", "\x1b", 1);
		cie.bytes[cie.length - 3] = (uint8_t)number;
		put_piece(CIE, &cie);
		assert_int_equal(read_entry(), number == REGISTER_NUMBER_RETURN);
	}
	/* An FDE's number in a CIE, and the other way round. */
	put_usual_cie();
	put(CIE + 4, 1, 4);
	assert_false(read_entry());
	put_usual_cie();
	assert_true(read_entry());
	put(FDE + 4, 0, 4);
	assert_false(read_entry());
}

/* Is an entry given whose CIE has this augmentation, and whose addresses have so many bytes? */
static bool is_given(const char *letters, const char *data, size_t data_length, size_t pointer_bytes)
{
	const struct piece cie = cie_with(1, letters, data, data_length);

	put_piece(CIE, &cie);
	put_fde(pointer_bytes, "", *letters == 'z', "", 0);
	return read_entry();
}

static void an_augmentation_has_known_letters(void **state)
{
	(void)state;
	assert_true(is_given("", "", 0, 8));
	assert_true(is_given("z", "", 0, 8));
	assert_true(is_given("zR", "\x1b", 1, 4));
	assert_true(is_given("zS", "", 0, 8));
	assert_true(is_given("zPLR", "\x9b\0\0\0\0\x1b\x1b", 7, 4));
	assert_true(is_given("zRLP", "\x1b\x1b\0\0\0\0\0\0\0\0\0", 11, 4));
	assert_false(is_given("zPLRS", "\x9b\0\0\0\0\x1b\x1b", 7, 4)); /* more than libunwind keeps */
	assert_true(is_given("zRS", "\x1b", 1, 4));
	assert_false(is_given("zB", "", 0, 8));
	assert_false(is_given("R", "", 0, 8));
	assert_false(is_given("eh", "", 0, 8));
	/* The length of its data is right. */
	assert_false(is_given("zR", "\x1b\0", 2, 4));
	assert_false(is_given("zR", "", 0, 8));
	assert_false(is_given("zL", "", 0, 8));
}

static void pointers_have_a_fixed_size(void **state)
{
	static const struct {
		uint8_t encoding;
		uint8_t size; /* 0: none */
	} encodings[] = {
		{ 0x00, 8 }, { 0x01, 0 }, { 0x02, 2 }, { 0x03, 4 }, { 0x04, 8 }, { 0x09, 0 }, { 0x0a, 2 },
		{ 0x0b, 4 }, { 0x0c, 8 }, { 0x1b, 4 }, { 0x9b, 4 }, { 0x3c, 8 }, { 0xff, 0 }, { 0x05, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(encodings) / sizeof(encodings[0]); i++) {
		const char letter[] = { (char)encodings[i].encoding };
		char routine[9] = { (char)encodings[i].encoding };

		for (size_t size = 0; size <= 8; size++) {
			/* Two addresses that are too short leave the augmentation without its length. */
			assert_int_equal(is_given("zR", letter, 1, size),
					 encodings[i].size && size >= encodings[i].size);
			assert_int_equal(is_given("zP", routine, 1 + size, 8),
					 encodings[i].size && size == encodings[i].size);
		}
	}
}

static void an_fdes_augmentation_is_skipped(void **state)
{
	(void)state;
	put_usual_cie();
	/* Two bytes that would be no instructions. */
	put_fde(4, "\2\xff\xff", 3, "", 0);
	put(FDE + 4 + 4 + 8 + 1, 0x3f3f, 2);
	assert_true(read_entry());
	put(FDE + 4 + 4 + 8, 1, 1);
	assert_false(read_entry());
	put(FDE + 4 + 4 + 8, 3, 1);
	assert_false(read_entry());
}

/* Are these instructions given? In an FDE and in a CIE alike. */
static bool takes(const char *ops, size_t length)
{
	struct piece cie;
	bool in_fde, in_cie;

	put_usual_cie();
	put_fde(4, "", 1, ops, length);
	in_fde = read_entry();
	cie = cie_with(1, "zR", "\x1b", 1);
	add(&cie, ops, length);
	put_piece(CIE, &cie);
	put_fde(4, "", 1, "", 0);
	in_cie = read_entry();
	assert_int_equal(in_fde, in_cie);
	return in_fde;
}

static void assert_takes(const char *ops, size_t length)
{
	assert_true(takes(ops, length));
	/* Not if its end is missing. */
	for (size_t shorter = 1; shorter < length; shorter++)
		assert_false(takes(ops, shorter));
}

static void instructions_have_all_their_operands(void **state)
{
	(void)state;
	assert_takes("\x00", 1);
	assert_takes("\x0a", 1);         /* DW_CFA_remember_state */
	assert_takes("\x0b", 1);         /* DW_CFA_restore_state */
	assert_takes("\x41", 1);         /* DW_CFA_advance_loc */
	assert_takes("\x02\xff", 2);     /* DW_CFA_advance_loc1 */
	assert_takes("\x03\xff\xff", 3); /* DW_CFA_advance_loc2 */
	assert_takes("\x04\xff\xff\xff\xff", 5);
	assert_takes("\x06\x10", 2);         /* DW_CFA_restore_extended */
	assert_takes("\x07\x10", 2);         /* DW_CFA_undefined */
	assert_takes("\x08\x10", 2);         /* DW_CFA_same_value */
	assert_takes("\x0d\x10", 2);         /* DW_CFA_def_cfa_register */
	assert_takes("\x09\x10\x10", 3);     /* DW_CFA_register */
	assert_takes("\x05\x10\xff\x7f", 4); /* DW_CFA_offset_extended */
	assert_takes("\x11\x10\xff\x7f", 4); /* DW_CFA_offset_extended_sf */
	assert_takes("\x0c\x10\xff\x7f", 4); /* DW_CFA_def_cfa */
	assert_takes("\x12\x10\xff\x7f", 4); /* DW_CFA_def_cfa_sf */
	assert_takes("\x2f\x10\xff\x7f", 4); /* DW_CFA_GNU_negative_offset_extended */
	assert_takes("\x0e\xff\x7f", 3);     /* DW_CFA_def_cfa_offset */
	assert_takes("\x13\xff\x7f", 3);     /* DW_CFA_def_cfa_offset_sf */
	assert_takes("\x2e\xff\x7f", 3);     /* DW_CFA_GNU_args_size */
	assert_takes("\x90\xff\x7f", 3);     /* DW_CFA_offset */
	assert_takes("\xd0", 1);             /* DW_CFA_restore */
}

static void other_instructions_are_not_given(void **state)
{
	static const char known[] = "\x00\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x11\x12\x13"
				    "\x2e\x2f";

	(void)state;
	for (unsigned int op = 0; op < 0x40; op++) {
		/* Operands of no registers, and that are nops if there are too many. */
		const char ops[] = { (char)op, 0, 0, 0, 0 };

		assert_int_equal(takes(ops, sizeof(ops)), memchr(known, (int)op, sizeof(known) - 1) != NULL);
	}
}

static void registers_are_within_libunwinds_arrays(void **state)
{
	static const char first[] = "\x05\x06\x07\x08\x09\x0c\x0d\x11\x12\x2f";

	(void)state;
	for (size_t i = 0; i < sizeof(first) - 1; i++) {
		for (unsigned int number = 0; number < 0x80; number++) {
			const char ops[] = { first[i], (char)number, 0, 0 };
			const char large[] = { first[i], (char)(number | 0x80), 1, 0 };

			assert_int_equal(takes(ops, sizeof(ops)), number <= LAST_REGISTER);
			assert_false(takes(large, sizeof(large)));
		}
	}
	for (unsigned int number = 0; number < 0x40; number++) {
		const char second[] = { DW_CFA_register, 0, (char)number };
		const char offset[] = { (char)(DW_CFA_offset | number), 0 };
		const char restore[] = { (char)(DW_CFA_restore | number) };

		assert_int_equal(takes(second, sizeof(second)), number <= LAST_REGISTER);
		assert_int_equal(takes(offset, sizeof(offset)), number <= LAST_REGISTER);
		assert_int_equal(takes(restore, sizeof(restore)), number <= LAST_REGISTER);
	}
	/* What follows an instruction is looked at, too. */
	assert_false(takes("\x41\x0f", 2));
}

static void a_number_has_ten_bytes_at_most(void **state)
{
	(void)state;
	assert_true(takes("\x0e\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11));
	assert_false(takes("\x0e\xff\xff\xff\xff\xff\xff\xff\xff\xff\x81\x01", 12));
	/* A register's number counts all its bits. */
	assert_true(takes("\x07\x90\x80\x00", 4));
	assert_false(takes("\x07\x80\x80\x80\x80\x01", 6));
	assert_false(takes("\x07\x91\x80\x00", 4));
}

/* Behind the memory, there are zeros: instructions that do nothing. */
static void read_zeros_behind(struct memory *memory_of, struct memory_range *ranges, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct memory_range within = ranges[i];

		memset(ranges[i].copy, 0, ranges[i].length);
		if (within.address < MADE_UP_AT + MADE_UP_BYTES &&
		    within.length > MADE_UP_AT + MADE_UP_BYTES - within.address)
			within.length = MADE_UP_AT + MADE_UP_BYTES - within.address;
		made_up_read(memory_of, &within, 1);
		ranges[i].status = within.status;
	}
}

/* An FDE of so many bytes in all. */
static bool takes_size(uint32_t size)
{
	put(FDE, size - 4, 4);
	return unwind_entry_read(memory, HEADER, MADE_UP_AT, &entry);
}

static void an_entry_has_a_largest_size(void **state)
{
	(void)state;
	made_up_memory.memory.read_ranges = read_zeros_behind;
	put_fde(4, "", 1, "", 0);
	/* The pair does not lie within it. */
	put(PAIR, 0, 8);
	put(MADE_UP_AT + 4, (uint64_t)FDE - HEADER, 4);
	assert_true(takes_size(UNWIND_PIECE_MAX));
	assert_false(takes_size(UNWIND_PIECE_MAX + 1));
	assert_false(takes_size(3)); /* a length of UINT32_MAX: the 64-bit format */
	assert_false(takes_size(4)); /* nothing at all */
	assert_false(takes_size(7));
}

/* Memory that changes between two reads of a length. */
static void read_changing(struct memory *changing, struct memory_range *ranges, size_t count)
{
	made_up_read(changing, ranges, count);
	for (size_t i = 0; i < count; i++)
		if (ranges[i].address == FDE)
			put(FDE, 0xc + 1, 4);
}

static void an_entry_that_changes_meanwhile_is_not_given(void **state)
{
	(void)state;
	put_fde(4, "", 1, "\0", 1);
	assert_true(read_entry());
	put_fde(4, "", 1, "\0\0", 2);
	made_up_memory.memory.read_ranges = read_changing;
	assert_false(read_entry());
}

/* The pair is near the end of all addresses, too: what is read there is that of PAIR. */
static uint64_t far_pair;

static void read_far(struct memory *far, struct memory_range *ranges, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct memory_range *range = &ranges[i];
		struct memory_range near = *range;

		near.address = range->address - far_pair + PAIR;
		made_up_read(far, range->address > UINT64_MAX / 2 ? &near : range, 1);
		if (range->address > UINT64_MAX / 2)
			range->status = near.status;
	}
}

static void no_entry_is_so_near_the_end_that_its_own_end_could_be_none(void **state)
{
	const uint64_t last = UINT64_MAX - UNWIND_PIECE_MAX - 8;

	(void)state;
	made_up_memory.memory.read_ranges = read_far;
	for (uint64_t beyond = 0; beyond <= 1; beyond++) {
		far_pair = last + beyond;
		assert_int_equal(unwind_entry_read(memory, HEADER, far_pair, &entry), beyond == 0);
	}
}

static void nothing_of_an_earlier_entry_shows_through(void **state)
{
	uint64_t word;

	(void)state;
	assert_true(read_entry());
	assert_true(unwind_entry_word(&entry, CIE & ~UINT64_C(7), &word));
	assert_false(unwind_entry_read(memory, HEADER, MADE_UP_AT + MADE_UP_BYTES, &entry));
	assert_false(unwind_entry_word(&entry, CIE & ~UINT64_C(7), &word));
	assert_false(unwind_entry_word(&entry, FDE & ~UINT64_C(7), &word));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(an_entry_is_copied_with_all_that_belongs_to_it, begin),
		cmocka_unit_test_setup(a_pair_may_lead_before_the_header_or_behind, begin),
		cmocka_unit_test_setup(a_version_and_a_return_address_are_those_of_functions, begin),
		cmocka_unit_test_setup(an_augmentation_has_known_letters, begin),
		cmocka_unit_test_setup(pointers_have_a_fixed_size, begin),
		cmocka_unit_test_setup(an_fdes_augmentation_is_skipped, begin),
		cmocka_unit_test_setup(instructions_have_all_their_operands, begin),
		cmocka_unit_test_setup(other_instructions_are_not_given, begin),
		cmocka_unit_test_setup(registers_are_within_libunwinds_arrays, begin),
		cmocka_unit_test_setup(a_number_has_ten_bytes_at_most, begin),
		cmocka_unit_test_setup(an_entry_has_a_largest_size, begin),
		cmocka_unit_test_setup(an_entry_that_changes_meanwhile_is_not_given, begin),
		cmocka_unit_test_setup(no_entry_is_so_near_the_end_that_its_own_end_could_be_none, begin),
		cmocka_unit_test_setup(nothing_of_an_earlier_entry_shows_through, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

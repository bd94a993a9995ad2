/* SPDX-License-Identifier: MIT */
/* The unwind table of a made-up file that does not tell where it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dwarf.h>

#include "tests/unit/made_up_elf.h"
#include "unwind/elf/registers.h"
#include "unwind/symbols/table_search.h"

enum {
	WORD = 4,
	TEXT = 0x400,
	TEXT_BYTES = 0x200,
	FRAMES = 0x1000,
	OTHER_FRAMES = 0x2000,
	FILE_BYTES = 0x3000
};

/* Version 1, "zR", factors 1 and -8, the usual register; then the encoding of addresses. */
static const uint8_t cie[] = {
	0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, REGISTER_NUMBER_RETURN, 1, DW_EH_PE_pcrel | DW_EH_PE_sdata4,
	0, 0, 0
};

static struct made_up_elf elf;
static struct unwind_entries found;

static uint64_t put(uint64_t at, const void *bytes, size_t length)
{
	memcpy(elf.bytes + at, bytes, length);
	return at + length;
}

static uint64_t put_u32(uint64_t at, uint64_t value)
{
	const uint32_t number = (uint32_t)value;

	return put(at, &number, sizeof(number));
}

static uint64_t put_cie(uint64_t at)
{
	return put(put_u32(at, sizeof(cie)), cie, sizeof(cie));
}

/* Of code at an address, with the CIE at another one. */
static uint64_t put_fde(uint64_t at, uint64_t to_cie, uint64_t code, uint64_t code_bytes)
{
	at = put_u32(put_u32(at, 16), at + 4 - to_cie);
	at = put_u32(put_u32(at, code - at), code_bytes);
	return put_u32(at, 0); /* no augmentation, and instructions that do nothing */
}

/* A table of a CIE and an FDE; returns where its end mark is. */
static uint64_t put_table(uint64_t at)
{
	return put_fde(put_cie(at), at, TEXT, TEXT_BYTES);
}

/* A program with code, and with a segment that holds nothing but what look like bits of tables. */
static int begin(void **state)
{
	(void)state;
	made_up_elf_begin(&elf);
	elf.size = FILE_BYTES;
	elf.segments[0].p_offset = elf.segments[0].p_vaddr = TEXT;
	elf.segments[1] = (Elf64_Phdr){ .p_type = PT_LOAD,
					.p_flags = PF_R,
					.p_offset = FRAMES,
					.p_vaddr = FRAMES,
					.p_filesz = FILE_BYTES - FRAMES };
	elf.segment_count = 2;
	memset(elf.bytes + FRAMES, 0xff, FILE_BYTES - FRAMES);
	return 0;
}

/* With so many more segments like this one. */
static bool search_with(Elf64_Phdr more, uint16_t count)
{
	const uint16_t own = elf.segment_count;
	Elf64_Phdr *segments;
	Elf64_Ehdr *header;
	bool is_found;
	char *bytes;
	Elf *file;

	made_up_elf_end(&elf); /* the first segment becomes all of the file */
	elf.segments[0].p_filesz = TEXT_BYTES;
	bytes = malloc(elf.size + (own + (size_t)count) * sizeof(more));
	assert_non_null(bytes);
	memcpy(bytes, elf.bytes, elf.size);
	header = (Elf64_Ehdr *)bytes;
	header->e_phoff = elf.size;
	header->e_phnum = (uint16_t)(own + count);
	segments = (Elf64_Phdr *)(bytes + elf.size);
	memcpy(segments, elf.segments, own * sizeof(more));
	for (uint16_t i = 0; i < count; i++)
		segments[own + i] = more;
	elf_version(EV_CURRENT);
	file = elf_memory(bytes, elf.size + (own + (size_t)count) * sizeof(more));
	assert_non_null(file);
	is_found = table_search(file, &found);
	if (is_found)
		assert_memory_equal(found.bytes, elf.bytes + found.address, found.length);
	elf_end(file);
	free(bytes);
	elf.size = FILE_BYTES;
	elf.names_length = 1;
	return is_found;
}

static bool search(void)
{
	return search_with((Elf64_Phdr){ 0 }, 0);
}

static void a_table_is_found_wherever_it_is(void **state)
{
	const uint64_t places[] = { FRAMES, FRAMES + 4, OTHER_FRAMES };

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		begin(state);
		assert_false(search());
		put_u32(put_table(places[i]), 0);
		assert_true(search());
		assert_int_equal(found.address, places[i]);
		assert_int_equal(found.length, 4 + sizeof(cie) + 20 + 4);
	}
}

static void entries_may_lead_back_to_any_cie_of_the_table(void **state)
{
	uint64_t second, at;

	(void)state;
	second = put_table(FRAMES);
	at = put_fde(put_fde(put_cie(second), FRAMES, TEXT, 1), second, TEXT + TEXT_BYTES - 1, 1);
	put_u32(at, 0);
	assert_true(search());
	assert_int_equal(found.address + found.length, at + 4);
}

/* As assemblers write some. */
static void entries_may_be_of_any_length(void **state)
{
	uint64_t second = put_table(FRAMES), at;

	(void)state;
	put_u32(FRAMES + 4 + sizeof(cie), 18);
	second = put(second, "\0\0", 2);
	at = put(put_fde(second, FRAMES, TEXT, 1), "\0\0", 2);
	put_u32(second, 18);
	put_u32(at, 0);
	assert_true(search());
	assert_int_equal(found.address, FRAMES);
	assert_int_equal(found.address + found.length, at + 4);
	/* What follows a place between words is searched, too. */
	put_u32(second, 17);
	put_u32(at, UINT32_MAX);
	put_u32(put_table(OTHER_FRAMES), 0);
	assert_true(search());
	assert_int_equal(found.address, OTHER_FRAMES);
}

static void a_table_that_breaks_off_is_none(void **state)
{
	const uint64_t end = put_table(FRAMES);
	const struct {
		uint32_t length;
		bool is_found;
	} next[] = { { 0, true }, { UINT32_MAX, false }, { 4, false }, { 6, false }, { 16, false } };

	(void)state;
	for (size_t i = 0; i < sizeof(next) / sizeof(next[0]); i++) {
		put_u32(end, next[i].length);
		assert_int_equal(search(), next[i].is_found);
	}
	/* At the very end of the segment. */
	begin(state);
	put_table(FILE_BYTES - 40);
	assert_false(search());
}

/* Whatever follows it in the file. */
static void a_table_ends_within_its_segment(void **state)
{
	const uint64_t end = put_table(FRAMES);

	(void)state;
	put_u32(end, 0);
	for (uint64_t lacks = 0; lacks <= end - FRAMES; lacks++) {
		elf.segments[1].p_filesz = end + WORD - FRAMES - lacks;
		assert_int_equal(search(), lacks == 0);
	}
}

static void a_table_without_code_is_none(void **state)
{
	(void)state;
	put_u32(put_cie(FRAMES), 0);
	assert_false(search());
}

static void code_is_in_a_segment_of_code(void **state)
{
	const struct {
		uint64_t code, bytes;
		bool is_found;
	} codes[] = {
		{ TEXT, 0, true },
		{ TEXT, TEXT_BYTES + 1, false },
		{ TEXT + TEXT_BYTES - 1, 1, true },
		{ TEXT + TEXT_BYTES - 1, 2, false },
		{ TEXT + TEXT_BYTES, 0, false },
		{ TEXT - 1, 1, false },
		{ FRAMES, 1, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		put_u32(put_fde(put_cie(FRAMES), FRAMES, codes[i].code, codes[i].bytes), 0);
		assert_int_equal(search(), codes[i].is_found);
	}
}

static void an_entry_leads_back_to_a_cie(void **state)
{
	const uint64_t code = 4 + sizeof(cie) + 4; /* of the entry that leads back */

	(void)state;
	put_u32(put_table(FRAMES), 0);
	put_cie(FRAMES - 0x40); /* a CIE before the table */
	assert_true(search());
	put_u32(FRAMES + code, code + 0x40);
	assert_false(search());
	put_u32(FRAMES + code, code - 4);
	assert_false(search());
	put_u32(FRAMES + code, code);
	assert_true(search());
}

/* The bytes of one that are part of another entry: nobody has read what is around them as a table. */
static void a_cie_in_the_middle_of_an_entry_is_none(void **state)
{
	uint64_t at;

	(void)state;
	at = put_u32(put_cie(FRAMES), 16 + 4 + sizeof(cie)); /* of an FDE with it at its end */
	at = put_u32(at, at - FRAMES);
	at = put_u32(put_u32(at, TEXT - at), TEXT_BYTES);
	at = put_cie(put_u32(at, 0));
	put_u32(put_fde(at, FRAMES, TEXT, TEXT_BYTES), 0);
	assert_true(search());
	put_u32(put_fde(at, at - 4 - sizeof(cie), TEXT, TEXT_BYTES), 0);
	assert_false(search());
}

static void addresses_are_such_as_linkers_write(void **state)
{
	(void)state;
	put_u32(put_table(FRAMES), 0);
	for (unsigned int encoding = 0; encoding < 256; encoding++) {
		elf.bytes[FRAMES + 4 + 12] = (uint8_t)encoding;
		assert_int_equal(search(), encoding == (DW_EH_PE_pcrel | DW_EH_PE_sdata4));
	}
	elf.bytes[FRAMES + 4 + 12] = DW_EH_PE_udata4;
	put_u32(FRAMES + 4 + sizeof(cie) + 8, TEXT);
	assert_true(search());
}

static void of_two_tables_none_is_taken(void **state)
{
	(void)state;
	put_u32(put_table(FRAMES), 0);
	assert_true(search());
	put_u32(put_table(OTHER_FRAMES), 0);
	assert_false(search());
}

static void what_may_be_written_to_holds_no_table(void **state)
{
	(void)state;
	put_u32(put_table(FRAMES), 0);
	elf.segments[1].p_flags = PF_R | PF_W;
	assert_false(search());
	elf.segments[1].p_flags = PF_R;
	elf.segments[1].p_type = PT_NOTE;
	assert_false(search());
	elf.segments[1].p_type = PT_LOAD;
	assert_true(search());
}

/*---- What would take long ----*/

/* Entries without an end, which many segments share. */
static void so_many_entries_are_looked_at(void **state)
{
	enum { ENTRY_BYTES = 20, FEW = 100, MANY = 22000 }; /* of 203 entries each */
	Elf64_Phdr more = { .p_type = PT_LOAD, .p_flags = PF_R, .p_vaddr = OTHER_FRAMES };
	uint64_t at = put_table(OTHER_FRAMES);

	(void)state;
	put_u32(put_table(FRAMES), 0);
	while (at + ENTRY_BYTES <= FILE_BYTES)
		at = put_fde(at, OTHER_FRAMES, TEXT, TEXT_BYTES);
	elf.segments[1].p_filesz = OTHER_FRAMES - FRAMES;
	more.p_offset = OTHER_FRAMES;
	more.p_filesz = at - OTHER_FRAMES;
	assert_true(search_with(more, FEW));
	assert_false(search_with(more, MANY));
}

static void so_many_bytes_are_looked_at(void **state)
{
	const uint64_t most = (256 << 20) - TEXT_BYTES - (FILE_BYTES - FRAMES);
	Elf64_Phdr more = { .p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = most / 2 };

	(void)state;
	put_u32(put_table(FRAMES), 0);
	more.p_offset = MADE_UP_ELF_BYTES; /* beyond the file */
	assert_true(search_with(more, 2));
	more.p_filesz += WORD;
	assert_false(search_with(more, 2));
	/* What holds no table does not count. */
	more.p_flags |= PF_W;
	assert_true(search_with(more, 2));
	more.p_filesz = UINT64_MAX;
	assert_true(search_with(more, 2));
	more.p_flags = PF_R;
	assert_false(search_with(more, 1));
}

static void so_many_segments_of_code_are_looked_at(void **state)
{
	enum { MOST = 16 };
	const Elf64_Phdr more = {
		.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = OTHER_FRAMES, .p_vaddr = OTHER_FRAMES
	};

	(void)state;
	put_u32(put_table(FRAMES), 0);
	assert_true(search_with(more, MOST - 1));
	assert_false(search_with(more, MOST));
	/* In the last one. */
	put_u32(put_fde(put_cie(FRAMES), FRAMES, OTHER_FRAMES, 1), 0);
	assert_false(search());
	elf.segments[2] = more;
	elf.segments[2].p_filesz = 1;
	elf.segment_count++;
	assert_true(search());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_table_is_found_wherever_it_is, begin),
		cmocka_unit_test_setup(entries_may_lead_back_to_any_cie_of_the_table, begin),
		cmocka_unit_test_setup(entries_may_be_of_any_length, begin),
		cmocka_unit_test_setup(a_table_that_breaks_off_is_none, begin),
		cmocka_unit_test_setup(a_table_ends_within_its_segment, begin),
		cmocka_unit_test_setup(a_table_without_code_is_none, begin),
		cmocka_unit_test_setup(code_is_in_a_segment_of_code, begin),
		cmocka_unit_test_setup(an_entry_leads_back_to_a_cie, begin),
		cmocka_unit_test_setup(a_cie_in_the_middle_of_an_entry_is_none, begin),
		cmocka_unit_test_setup(addresses_are_such_as_linkers_write, begin),
		cmocka_unit_test_setup(of_two_tables_none_is_taken, begin),
		cmocka_unit_test_setup(what_may_be_written_to_holds_no_table, begin),
		cmocka_unit_test_setup(so_many_entries_are_looked_at, begin),
		cmocka_unit_test_setup(so_many_bytes_are_looked_at, begin),
		cmocka_unit_test_setup(so_many_segments_of_code_are_looked_at, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

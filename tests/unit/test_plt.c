/* SPDX-License-Identifier: MIT */
/* Entries of procedure linkage tables, this program's own and made-up ones: each leads to a function. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <gelf.h>

#include "tests/unit/made_up_elf.h"
#include "unwind/elf/plt.h"
#include "unwind/elf/plt_jump.h"

static Elf *elf;
static int file;

static int begin(void **state)
{
	(void)state;
	elf_version(EV_CURRENT);
	file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	elf = elf_begin(file, ELF_C_READ, NULL);
	return elf ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	elf_end(elf);
	close(file);
	return 0;
}

/* The section of that name. */
static bool find_section(const char *wanted, GElf_Shdr *ret_header)
{
	Elf_Scn *section = NULL;
	size_t names;

	assert_int_equal(elf_getshdrstrndx(elf, &names), 0);
	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, ret_header) &&
		    strcmp(elf_strptr(elf, names, ret_header->sh_name), wanted) == 0)
			return true;
	return false;
}

/* How many entries of a section have this name? Adds how many addresses of these entries have it. */
static size_t count_named(const char *section, const char *name, size_t *addresses)
{
	GElf_Shdr header;
	size_t count = 0;

	if (!find_section(section, &header))
		return 0;
	if (header.sh_entsize == 0) /* by lld */
		header.sh_entsize = 16;
	for (uint64_t begin = header.sh_addr; begin < header.sh_addr + header.sh_size;
	     begin += header.sh_entsize) {
		struct plt_entry entry;

		if (!plt_find(elf, begin, &entry) || !entry.name || strcmp(entry.name, name) != 0)
			continue;
		count++;
		for (uint64_t address = begin; address < begin + header.sh_entsize; address++)
			*addresses += plt_find(elf, address, &entry) && entry.name &&
				      strcmp(entry.name, name) == 0;
	}
	return count;
}

static void entries_have_the_names_of_imports(void **state)
{
	static const char *const imported[] = { "elf_begin", "gelf_getshdr", "elf_strptr" };
	GElf_Shdr header;

	(void)state;
	if (!find_section(".plt", &header) && !find_section(".plt.sec", &header))
		skip();
	for (size_t i = 0; i < sizeof(imported) / sizeof(imported[0]); i++) {
		size_t addresses = 0;
		size_t begins = count_named(".plt", imported[i], &addresses) +
				count_named(".plt.sec", imported[i], &addresses) +
				count_named(".plt.got", imported[i], &addresses);

		assert_int_equal(begins, 1);
		assert_in_range(addresses, 2, 16);
	}
}

static void what_is_no_entry_has_no_name(void **state)
{
	GElf_Shdr text, plt;
	struct plt_entry entry = { .name = "as before" };

	(void)state;
	assert_true(find_section(".text", &text));
	for (uint64_t address = text.sh_addr; address < text.sh_addr + 256; address++)
		assert_false(plt_find(elf, address, &entry));
	assert_false(plt_find(elf, 0, &entry));
	assert_false(plt_find(elf, UINT64_MAX, &entry));
	/* The first entry of .plt leads to the loader. */
	if (find_section(".plt", &plt) && plt.sh_size > 32)
		assert_false(plt_find(elf, plt.sh_addr, &entry));
	assert_string_equal(entry.name, "as before");
}

/*---- Code ----*/

enum { ADDRESS = 0x1000 };

static void an_entry_jumps_through_its_slot(void **state)
{
	/* endbr64; bnd jmp *0x1234(%rip) */
	static const uint8_t code[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0x34, 0x12, 0, 0 };
	static const uint8_t back[] = { 0xff, 0x25, 0xf0, 0xff, 0xff, 0xff };
	uint64_t slot = 1;

	(void)state;
	/* With both prefixes, with the second, with none. */
	assert_true(plt_jump_decode(code, 11, ADDRESS, &slot));
	assert_int_equal(slot, ADDRESS + 11 + 0x1234);
	assert_true(plt_jump_decode(code + 4, 7, ADDRESS, &slot));
	assert_int_equal(slot, ADDRESS + 7 + 0x1234);
	assert_true(plt_jump_decode(code + 5, 6, ADDRESS, &slot));
	assert_int_equal(slot, ADDRESS + 6 + 0x1234);
	assert_true(plt_jump_decode(back, sizeof(back), ADDRESS, &slot));
	assert_int_equal(slot, ADDRESS + 6 - 16);
}

static void molds_entries_jump_after_their_number(void **state)
{
	static const uint8_t code[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0xbb, 7, 0,
					0,    0,    0xff, 0x25, 0x34, 0x12, 0, 0 };
	uint64_t slot;

	(void)state;
	for (size_t begin = 0; begin < sizeof(code); begin++) {
		const bool is_instruction = begin == 0 || begin == 4 || begin == 10;

		assert_int_equal(plt_jump_decode(code + begin, sizeof(code) - begin, ADDRESS + begin, &slot),
				 is_instruction);
		assert_false(plt_jump_decode(code + begin, sizeof(code) - begin - 1, ADDRESS, &slot));
		if (is_instruction)
			assert_int_equal(slot, ADDRESS + sizeof(code) + 0x1234);
	}
}

static void what_is_no_such_jump_has_no_slot(void **state)
{
	static const uint8_t code[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0x34, 0x12, 0, 0 };
	uint64_t slot = 1;

	(void)state;
	for (size_t begin = 0; begin < sizeof(code); begin++) {
		for (size_t length = 0; begin + length < sizeof(code); length++)
			assert_false(plt_jump_decode(code + begin, length, ADDRESS, &slot));
		assert_int_equal(plt_jump_decode(code + begin, sizeof(code) - begin, ADDRESS, &slot),
				 begin == 0 || begin == 4 || begin == 5);
	}
	slot = 1;
	for (size_t i = 0; i < 7; i++) {
		uint8_t other[sizeof(code)];

		memcpy(other, code, sizeof(other));
		other[i] ^= 1;
		assert_false(plt_jump_decode(other, sizeof(other), ADDRESS, &slot));
	}
	assert_int_equal(slot, 1);
}

static void entries_have_eight_or_sixteen_bytes(void **state)
{
	static const uint8_t section[64];
	uint64_t begin;

	(void)state;
	for (uint64_t offset = 0; offset < sizeof(section); offset++) {
		assert_true(plt_jump_entry(section, offset, 8, &begin));
		assert_int_equal(begin, offset & ~(uint64_t)7);
		assert_true(plt_jump_entry(section, offset, 16, &begin));
		assert_int_equal(begin, offset & ~(uint64_t)15);
		/* lld does not tell. */
		assert_true(plt_jump_entry(section, offset, 0, &begin));
		assert_int_equal(begin, offset & ~(uint64_t)15);
	}
	begin = 1;
	for (uint64_t size = 1; size < 64; size++)
		if (size != 8 && size != 16)
			assert_false(plt_jump_entry(section, 32, size, &begin));
	assert_int_equal(begin, 1);
}

/*---- A made-up file ----*/

enum { ENTRY_SIZE = 16, ENTRIES = 5, PUSH_OFFSET = 6, RESOLVER = 0x4321, SLOTS = 0x7000 };

static struct made_up_elf made_up;
static uint32_t plt, relocations, symbols; /* sections */

static uint64_t slot_of(size_t index)
{
	return SLOTS + index * sizeof(uint64_t);
}

/* Each entry jumps through a slot of its own, and pushes something behind that. */
static void add_entries(const char *name)
{
	uint8_t code[ENTRIES * ENTRY_SIZE] = { 0 };

	plt = made_up_elf_section(&made_up, name,
				  (Elf64_Shdr){ .sh_type = SHT_PROGBITS, .sh_entsize = ENTRY_SIZE }, code,
				  sizeof(code));
	for (size_t i = 0; i < ENTRIES; i++) {
		uint8_t *entry = made_up.bytes + made_up.sections[plt].sh_addr + i * ENTRY_SIZE;
		const uint64_t next = made_up.sections[plt].sh_addr + i * ENTRY_SIZE + PUSH_OFFSET;
		const int32_t displacement = (int32_t)(slot_of(i) - next);

		memcpy(entry, "\xff\x25", 2);
		memcpy(entry + 2, &displacement, sizeof(displacement));
		entry[PUSH_OFFSET] = 0x68;
	}
}

/*
 * The first slot is a function's, the second the result of a resolver, and of the third nobody says anything.
 */
static void make_file(const char *name)
{
	static const char names[] = "\0first\0";
	const Elf64_Sym table[] = { { .st_name = 0 }, { .st_name = 1 }, { .st_name = 0 } };
	const Elf64_Rela fixes[] = {
		{ slot_of(3), ELF64_R_INFO(2, R_X86_64_JUMP_SLOT), 0 },
		{ slot_of(0), ELF64_R_INFO(1, R_X86_64_JUMP_SLOT), 0 },
		{ slot_of(1), ELF64_R_INFO(0, R_X86_64_IRELATIVE), RESOLVER },
		{ slot_of(4), ELF64_R_INFO(7, R_X86_64_JUMP_SLOT), 0 },
	};
	uint32_t strings;

	made_up_elf_begin(&made_up);
	made_up_elf_section(&made_up, ".text", (Elf64_Shdr){ .sh_type = SHT_PROGBITS }, NULL, 32);
	add_entries(name);
	strings = made_up_elf_section(&made_up, ".dynstr", (Elf64_Shdr){ .sh_type = SHT_STRTAB }, names,
				      sizeof(names));
	symbols = made_up_elf_section(
		&made_up, ".dynsym",
		(Elf64_Shdr){ .sh_type = SHT_DYNSYM, .sh_link = strings, .sh_entsize = sizeof(table[0]) },
		table, sizeof(table));
	relocations = made_up_elf_section(
		&made_up, ".rela.plt",
		(Elf64_Shdr){ .sh_type = SHT_RELA, .sh_link = symbols, .sh_entsize = sizeof(fixes[0]) },
		fixes, sizeof(fixes));
	made_up_elf_end(&made_up);
}

/* What is told of an address in an entry; false if nothing is. */
static bool find_made_up(size_t index, uint64_t offset, struct plt_entry *entry, char name[static 16])
{
	Elf *handle = elf_memory((char *)made_up.bytes, made_up.size);
	bool found;

	assert_non_null(handle);
	*entry = (struct plt_entry){ .resolver = 1 };
	found = plt_find(handle, made_up.sections[plt].sh_addr + index * ENTRY_SIZE + offset, entry);
	snprintf(name, 16, "%s", found && entry->name ? entry->name : "");
	assert_int_equal(entry->resolver == 1, !found);
	elf_end(handle);
	return found;
}

static void relocations_say_where_entries_lead(void **state)
{
	static const char *const sections[] = { ".plt", ".plt.sec", ".plt.got", ".iplt" };
	struct plt_entry entry;
	char name[16];

	(void)state;
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		make_file(sections[i]);
		for (uint64_t offset = 0; offset < ENTRY_SIZE; offset++) {
			assert_true(find_made_up(0, offset, &entry, name));
			assert_string_equal(name, "first");
			assert_int_equal(entry.resolver, 0);
			/* Behind its jump it may have pushed. */
			assert_int_equal(entry.is_before_jump, offset == 0);
			assert_true(find_made_up(1, offset, &entry, name));
			assert_null(entry.name);
			assert_int_equal(entry.resolver, RESOLVER);
			assert_false(find_made_up(2, offset, &entry, name));
			/* Symbols without a name, and none. */
			assert_false(find_made_up(3, offset, &entry, name));
			assert_false(find_made_up(4, offset, &entry, name));
		}
		assert_false(find_made_up(ENTRIES, 0, &entry, name));
		assert_false(find_made_up(0, UINT64_MAX, &entry, name));
	}
}

static void other_sections_have_no_entries(void **state)
{
	struct plt_entry entry;
	char name[16];

	(void)state;
	make_file(".text.plt");
	assert_false(find_made_up(0, 0, &entry, name));
	make_file(".plt");
	assert_true(find_made_up(0, 0, &entry, name));
	made_up.sections[plt].sh_type = SHT_NOBITS;
	made_up_elf_end(&made_up);
	assert_false(find_made_up(0, 0, &entry, name));
	made_up.sections[plt].sh_type = SHT_PROGBITS;
	/* Entries of a length that no linker makes: only their beginnings are known. */
	made_up.sections[plt].sh_entsize = 24;
	made_up_elf_end(&made_up);
	assert_true(find_made_up(0, 0, &entry, name));
	assert_false(find_made_up(0, 1, &entry, name));
	made_up.sections[plt].sh_entsize = ENTRY_SIZE;
	made_up.sections[relocations].sh_type = SHT_PROGBITS;
	made_up_elf_end(&made_up);
	assert_false(find_made_up(0, 0, &entry, name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_have_the_names_of_imports),
		cmocka_unit_test(what_is_no_entry_has_no_name),
		cmocka_unit_test(an_entry_jumps_through_its_slot),
		cmocka_unit_test(molds_entries_jump_after_their_number),
		cmocka_unit_test(what_is_no_such_jump_has_no_slot),
		cmocka_unit_test(entries_have_eight_or_sixteen_bytes),
		cmocka_unit_test(relocations_say_where_entries_lead),
		cmocka_unit_test(other_sections_have_no_entries),
	};

	return cmocka_run_group_tests(tests, begin, end);
}

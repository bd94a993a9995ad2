/* SPDX-License-Identifier: MIT */
/* Which files have string tables that end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/made_up_elf.h"
#include "unwind/elf/string_tables.h"

enum { TABLE_BYTES = 6 };

static struct made_up_elf elf;
static uint32_t strings, dynamic; /* sections */

/* A file with a table of strings, which the loader finds, too, and bytes around it that are no NULs. */
static int begin(void **state)
{
	static const char table[TABLE_BYTES] = "\0name";
	Elf64_Dyn entries[3] = { { .d_tag = DT_STRSZ, .d_un.d_val = TABLE_BYTES }, { .d_tag = DT_STRTAB } };

	(void)state;
	made_up_elf_begin(&elf);
	made_up_elf_section(&elf, ".before", (Elf64_Shdr){ .sh_type = SHT_PROGBITS }, "xxxxxxxxxxxxxxxx",
			    MADE_UP_ELF_ALIGNMENT);
	strings = made_up_elf_section(&elf, ".dynstr", (Elf64_Shdr){ .sh_type = SHT_STRTAB }, table,
				      sizeof(table));
	made_up_elf_section(&elf, ".behind", (Elf64_Shdr){ .sh_type = SHT_PROGBITS }, "xxxxxxxxxxxxxxxx",
			    MADE_UP_ELF_ALIGNMENT);
	entries[1].d_un.d_ptr = elf.sections[strings].sh_addr;
	dynamic = made_up_elf_section(&elf, ".dynamic", (Elf64_Shdr){ .sh_type = SHT_PROGBITS }, entries,
				      sizeof(entries));
	made_up_elf_segment(&elf, PT_DYNAMIC, dynamic);
	made_up_elf_end(&elf);
	return 0;
}

static bool tables_end(void)
{
	static char bytes[MADE_UP_ELF_BYTES];
	bool result;
	Elf *handle;

	elf_version(EV_CURRENT);
	memcpy(bytes, elf.bytes, elf.size);
	handle = elf_memory(bytes, elf.size);
	assert_non_null(handle);
	result = string_tables_end(handle);
	elf_end(handle);
	return result;
}

static void put_last(char last)
{
	elf.bytes[elf.sections[strings].sh_addr + TABLE_BYTES - 1] = (uint8_t)last;
}

static Elf64_Dyn *entry(size_t index)
{
	return (Elf64_Dyn *)(void *)(elf.bytes + elf.sections[dynamic].sh_addr) + index;
}

static void put_segments(void)
{
	memcpy(elf.bytes + sizeof(Elf64_Ehdr), elf.segments, sizeof(elf.segments));
}

static void a_section_of_strings_ends_with_nul(void **state)
{
	(void)state;
	elf.segments[1].p_type = PT_NULL; /* the loader finds none */
	made_up_elf_end(&elf);
	assert_true(tables_end());
	put_last('x');
	assert_false(tables_end());
	/* Another kind of section may end as it likes, and an empty one has no end. */
	elf.sections[strings].sh_type = SHT_PROGBITS;
	made_up_elf_end(&elf);
	assert_true(tables_end());
	elf.sections[strings].sh_type = SHT_STRTAB;
	elf.sections[strings].sh_size = 0;
	made_up_elf_end(&elf);
	assert_true(tables_end());
	elf.sections[strings].sh_size = TABLE_BYTES;
	made_up_elf_end(&elf);
	assert_false(tables_end());
}

static void the_loaders_table_ends_with_nul(void **state)
{
	(void)state;
	elf.sections[strings].sh_type = SHT_PROGBITS;
	made_up_elf_end(&elf);
	assert_true(tables_end());
	put_last('x');
	assert_false(tables_end());
	/* One byte less of it ends with the 'e' of its name, two bytes of it begin the name. */
	entry(0)->d_un.d_val = TABLE_BYTES - 1;
	assert_false(tables_end());
	entry(0)->d_un.d_val = 1;
	assert_true(tables_end());
	entry(0)->d_un.d_val = 2;
	assert_false(tables_end());
	/* Without a length, or a place in the file, nobody reads it. */
	entry(0)->d_un.d_val = 0;
	assert_true(tables_end());
	entry(0)->d_un.d_val = TABLE_BYTES;
	entry(1)->d_un.d_ptr = elf.size;
	assert_true(tables_end());
	/* What is behind DT_NULL is none of it. */
	entry(1)->d_un.d_ptr = elf.sections[strings].sh_addr;
	assert_false(tables_end());
	entry(0)->d_tag = DT_NULL;
	assert_true(tables_end());
}

/* A segment maps [0x40, 0x40 + so many bytes) of the file at an address of its own. */
static void the_loaders_table_is_found_by_segments(void **state)
{
	enum { AT = 0x40000, OFFSET = 0x40 };
	const uint64_t address = elf.sections[strings].sh_addr - OFFSET + AT;

	(void)state;
	elf.sections[strings].sh_type = SHT_PROGBITS;
	made_up_elf_end(&elf);
	put_last('x');
	elf.segments[0].p_offset = OFFSET;
	elf.segments[0].p_vaddr = AT;
	elf.segments[0].p_filesz = address - AT;
	put_segments();
	entry(1)->d_un.d_ptr = address;
	assert_true(tables_end()); /* just behind it */
	elf.segments[0].p_filesz++;
	put_segments();
	assert_false(tables_end());
	put_last('\0');
	assert_true(tables_end());
	put_last('x');
	/* The first byte of a segment. */
	elf.segments[0].p_vaddr = address;
	elf.segments[0].p_offset = elf.sections[strings].sh_addr;
	put_segments();
	assert_false(tables_end());
	entry(1)->d_un.d_ptr = address - 1;
	assert_true(tables_end());
	entry(1)->d_un.d_ptr = address;
	elf.segments[0].p_type = PT_NOTE;
	put_segments();
	assert_true(tables_end());
}

static void segments_may_be_in_any_order(void **state)
{
	const Elf64_Phdr first = elf.segments[0];

	(void)state;
	elf.sections[strings].sh_type = SHT_PROGBITS;
	made_up_elf_end(&elf);
	elf.segments[0] = elf.segments[1];
	elf.segments[1] = first;
	elf.segments[1].p_filesz = elf.size;
	put_segments();
	assert_true(tables_end());
	put_last('x');
	assert_false(tables_end());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_section_of_strings_ends_with_nul, begin),
		cmocka_unit_test_setup(the_loaders_table_ends_with_nul, begin),
		cmocka_unit_test_setup(the_loaders_table_is_found_by_segments, begin),
		cmocka_unit_test_setup(segments_may_be_in_any_order, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

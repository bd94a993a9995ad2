/* SPDX-License-Identifier: MIT */
/* Programs in memory that is of no file. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "src/linux/files/unpacked.h"

enum { BASE = 0x400000 };

static struct {
	Elf64_Ehdr elf;
	Elf64_Phdr segments[2];
} program;

static struct maps *maps;
static struct mapped_file programs[UNPACKED_MAX];
static size_t more;

/* The program's headers are on every page. */
static void read_headers(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	for (size_t i = 0; i < count; i++) {
		const uint64_t offset = ranges[i].address % 0x1000;

		ranges[i].status = offset + ranges[i].length <= sizeof(program) ? MEMORY_OK : MEMORY_UNMAPPED;
		if (ranges[i].status == MEMORY_OK)
			memcpy(ranges[i].copy, (const char *)&program + offset, ranges[i].length);
	}
}

static struct memory memory = { .read_ranges = read_headers };

static int begin(void **state)
{
	(void)state;
	memset(&program, 0, sizeof(program));
	memcpy(program.elf.e_ident, ELFMAG, SELFMAG);
	program.elf.e_ident[EI_CLASS] = ELFCLASS64;
	program.elf.e_ident[EI_DATA] = ELFDATA2LSB;
	program.elf.e_phoff = sizeof(program.elf);
	program.elf.e_phentsize = sizeof(Elf64_Phdr);
	program.elf.e_phnum = 2;
	program.segments[0] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_filesz = 0x1000, .p_memsz = 0x1000 };
	program.segments[1] = (Elf64_Phdr){
		.p_type = PT_LOAD, .p_offset = 0x2000, .p_vaddr = 0x2000, .p_memsz = 0x801
	};
	maps = maps_new(0);
	return maps ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	maps_free(maps);
	return 0;
}

static size_t found(const char *text)
{
	assert_int_equal(maps_parse(maps, text, strlen(text)), 0);
	return unpacked_find(maps, &memory, programs, &more);
}

static const char whole[] = "00400000-00401000 r--p 00000000 00:00 0 \n"
			    "00401000-00402000 r-xp 00000000 00:00 0 \n"
			    "00402000-00405000 rw-p 00000000 00:00 0 \n";

static void a_program_goes_as_far_as_its_segments(void **state)
{
	(void)state;
	assert_int_equal(found(whole), 1);
	assert_int_equal(programs[0].begin, BASE);
	assert_int_equal(programs[0].base, BASE);
	assert_int_equal(programs[0].end, BASE + 0x3000);
	assert_true(programs[0].executable);
	assert_int_equal(programs[0].inode, 0);
}

static void other_memory_is_no_program(void **state)
{
	static const char *const texts[] = {
		/* of a file */
		"00400000-00403000 r-xp 00000000 00:01 7 /a\n",
		/* the kernel's own */
		"00400000-00403000 r-xp 00000000 00:00 0 [vdso]\n",
		/* no code */
		"00400000-00403000 r--p 00000000 00:00 0 \n",
		/* written to while it is unpacked */
		"00400000-00403000 rwxp 00000000 00:00 0 \n",
		/* unreadable */
		"00400000-00403000 --xp 00000000 00:00 0 \n",
		/* too short */
		"00400000-00402000 r-xp 00000000 00:00 0 \n",
		/* a gap */
		"00400000-00401000 r-xp 00000000 00:00 0 \n00402000-00403000 rw-p 00000000 00:00 0 \n",
		/* a file in the middle */
		("00400000-00401000 r-xp 00000000 00:00 0 \n00401000-00402000 r--p 00000000 00:01 7 /a\n"
		 "00402000-00403000 rw-p 00000000 00:00 0 \n"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(found(texts[i]), 0);
}

static void headers_that_make_no_sense_are_no_program_s(void **state)
{
	static const char text[] = "00400000-00405000 r-xp 00000000 00:00 0 \n";

	(void)state;
	assert_int_equal(found(text), 1);
	program.segments[1].p_vaddr = UINT64_MAX - 0x10;
	assert_int_equal(found(text), 1); /* the first segment is one */
	assert_int_equal(programs[0].end, BASE + 0x1000);
	program.segments[1].p_vaddr = UINT64_MAX - 0x400000;
	assert_int_equal(found(text), 0);
	program.segments[1].p_vaddr = 0x2000;
	program.segments[0].p_offset = 0x1000;
	assert_int_equal(found(text), 0);
	program.segments[0].p_offset = 0;
	program.elf.e_ident[0] = 0;
	assert_int_equal(found(text), 0);
}

static void so_many_have_room(void **state)
{
	char text[2048] = "";

	(void)state;
	for (int i = 0; i < UNPACKED_MAX + 2; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "%08x-%08x r-xp 00000000 00:00 0 \n", BASE + 0x10000 * i,
			 BASE + 0x10000 * i + 0x3000);
	assert_int_equal(found(text), UNPACKED_MAX);
	assert_int_equal(programs[UNPACKED_MAX - 1].begin, BASE + 0x10000 * (UNPACKED_MAX - 1));
	assert_int_equal(more, 2);
	assert_int_equal(found(whole), 1);
	assert_int_equal(more, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(a_program_goes_as_far_as_its_segments),
		TEST(other_memory_is_no_program),
		TEST(headers_that_make_no_sense_are_no_program_s),
		TEST(so_many_have_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

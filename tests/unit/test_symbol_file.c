/* SPDX-License-Identifier: MIT */
/* Names and unwind rules of the code in a made-up file. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <dwarf.h>

#include "tests/unit/made_up_elf.h"
#include "unwind/symbols/symbol_file.h"

enum { TEXT_BYTES = 0x800, SYMBOLS_MAX = 192, NAMES_MAX = 4096, FRAMES_MAX = 512 };
static const uint64_t AT = 0x7f1200000000;

/* Offsets in .text. */
enum {
	WHOLE = 0x00,
	OUTER = 0x20,
	INNER = 0x30,
	SIZELESS = 0x60,
	UNCOVERED = 0x70, /* without size and without an entry of .eh_frame */
	NAMELESS = 0x80,
	NO_FUNCTION = 0x90,
	NOTYPE = 0xa0,
	IFUNC = 0xa8,
	HUGE = 0xb0,
	VERSIONED = 0xc0,
	ODD = 0xc8,
	MANGLED = 0xd0,
	LEAF = 0xe0,
	PUSHES = 0xf0,
	TIE = 0x100,
	CROWDED = 0x200, /* with many functions in it */
	CROWDED_LESS = 0x400,
	NAMELESS_END = 0x700, /* at the end of .text */
};

static struct made_up_elf elf;
static Elf64_Sym symbols[SYMBOLS_MAX];
static size_t symbol_count;
static char names[NAMES_MAX];
static size_t names_length;
static uint8_t frames[FRAMES_MAX];
static size_t frames_length;
static uint32_t text, plt; /* sections */
static struct symbol_file *file;
static struct symbol found[SYMBOL_INLINES_MAX];

static uint64_t in_text(uint64_t offset)
{
	return elf.sections[text].sh_addr + offset;
}

static void add_symbol(const char *name, unsigned char binding, unsigned char type, uint64_t offset,
		       uint64_t size)
{
	assert_in_range(symbol_count, 1, SYMBOLS_MAX - 1);
	assert_in_range(names_length + strlen(name), 1, NAMES_MAX - 1);
	symbols[symbol_count++] = (Elf64_Sym){ .st_name = (uint32_t)(*name ? names_length : 0),
					       .st_info = (unsigned char)ELF64_ST_INFO(binding, type),
					       .st_shndx = (uint16_t)text,
					       .st_value = in_text(offset),
					       .st_size = size };
	names_length += strlen(strcpy(names + names_length, name)) + 1;
}

static void add_function(const char *name, uint64_t offset, uint64_t size)
{
	add_symbol(name, STB_GLOBAL, STT_FUNC, offset, size);
}

static void add_crowd(uint64_t offset, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		add_function("small", offset + 1 + i, 1);
}

static void add_symbols(void)
{
	uint32_t strings;

	symbol_count = names_length = 1;
	add_symbol("local", STB_LOCAL, STT_FUNC, WHOLE, 16);
	add_function("whole_and_longer", WHOLE, 16);
	add_function("_w", WHOLE, 16);
	add_function("whole", WHOLE, 16);
	add_function("outer", OUTER, 0x40);
	add_function("inner", INNER, 8);
	add_function("sizeless", SIZELESS, 0);
	add_function("uncovered", UNCOVERED, 0);
	add_symbol("variable", STB_GLOBAL, STT_OBJECT, NO_FUNCTION, 16);
	add_function("", NO_FUNCTION, 16);
	add_function("imported", NO_FUNCTION, 16);
	symbols[symbol_count - 1].st_shndx = SHN_UNDEF;
	add_symbol("notype", STB_GLOBAL, STT_NOTYPE, NOTYPE, 8);
	add_symbol("ifunc", STB_GLOBAL, STT_GNU_IFUNC, IFUNC, 8);
	add_function("huge", HUGE, UINT64_MAX);
	add_function("versioned@@V_1", VERSIONED, 8);
	add_function("@odd", ODD, 8);
	add_function("_ZN3foo3barEi", MANGLED, 8);
	add_function("leaf", LEAF, 4);
	add_function("pushes", PUSHES, 3);
	add_function("bbbb", TIE, 8);
	add_function("aaaa", TIE, 8);
	add_function("cccc", TIE, 8);
	add_function("crowded", CROWDED, 0x100);
	add_crowd(CROWDED, 64);
	add_function("less", CROWDED_LESS, 0x100);
	add_crowd(CROWDED_LESS, 63);
	strings = made_up_elf_section(&elf, ".strtab", (Elf64_Shdr){ .sh_type = SHT_STRTAB }, names,
				      names_length);
	made_up_elf_section(&elf, ".symtab",
			    (Elf64_Shdr){ .sh_type = SHT_SYMTAB,
					  .sh_link = strings,
					  .sh_info = 2,
					  .sh_entsize = sizeof(symbols[0]) },
			    symbols, symbol_count * sizeof(symbols[0]));
}

static void add_entry(const void *bytes, uint32_t length)
{
	assert_in_range(frames_length + sizeof(length) + length, 1, FRAMES_MAX - 4);
	memcpy(frames + frames_length, &length, sizeof(length));
	memcpy(frames + frames_length + sizeof(length), bytes, length);
	frames_length += sizeof(length) + length;
}

/* The return address is on top of the stack. */
static void add_fde(uint64_t offset, uint64_t size)
{
	const uint32_t to_cie = (uint32_t)(frames_length + sizeof(to_cie));
	const uint64_t extent[] = { in_text(offset), size };
	uint8_t bytes[sizeof(to_cie) + sizeof(extent)];

	memcpy(bytes, &to_cie, sizeof(to_cie));
	memcpy(bytes + sizeof(to_cie), extent, sizeof(extent));
	add_entry(bytes, sizeof(bytes));
}

static void add_frames(void)
{
	/* Version 1, no augmentation, factors 1 and -8, register 16: def_cfa rsp 8, offset rip -8. */
	static const uint8_t cie[] = {
		0, 0, 0, 0, 1, 0, 1, 0x78, 16, DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1, 0, 0
	};

	memset(frames, 0, sizeof(frames));
	frames_length = 0;
	add_entry(cie, sizeof(cie));
	add_fde(SIZELESS, 0x10);
	add_fde(NAMELESS, 0x10);
	add_fde(NAMELESS_END, 0x1000); /* beyond .text */
	made_up_elf_section(&elf, ".eh_frame", (Elf64_Shdr){ .sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC },
			    frames, frames_length + 4);
}

/* One entry, whose slot the result of a resolver fills. */
static void add_plt(void)
{
	enum { SLOT = 0x7000, JUMP_BYTES = 6 };
	uint8_t code[16] = { 0xff, 0x25 };
	int32_t displacement;
	Elf64_Rela fix = { .r_offset = SLOT, .r_info = ELF64_R_INFO(0, R_X86_64_IRELATIVE) };

	plt = made_up_elf_section(&elf, ".plt",
				  (Elf64_Shdr){ .sh_type = SHT_PROGBITS,
						.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
						.sh_entsize = sizeof(code) },
				  code, sizeof(code));
	displacement = (int32_t)(SLOT - elf.sections[plt].sh_addr - JUMP_BYTES);
	memcpy(elf.bytes + elf.sections[plt].sh_addr + 2, &displacement, sizeof(displacement));
	fix.r_addend = (int64_t)in_text(IFUNC);
	made_up_elf_section(&elf, ".rela.plt", (Elf64_Shdr){ .sh_type = SHT_RELA, .sh_entsize = sizeof(fix) },
			    &fix, sizeof(fix));
}

/* The same of another function, in .debug_frame, whose entries name a CIE otherwise. */
static void add_debug_frames(void)
{
	static const uint8_t cie[] = {
		0xff, 0xff, 0xff, 0xff, 1, 0, 1, 0x78, 16, DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1, 0, 0
	};
	const uint32_t to_cie = 0;

	memset(frames, 0, sizeof(frames));
	frames_length = 0;
	add_entry(cie, sizeof(cie));
	add_fde(PUSHES, 3);
	memcpy(frames + sizeof(uint32_t) + sizeof(cie) + sizeof(uint32_t), &to_cie, sizeof(to_cie));
	made_up_elf_section(&elf, ".debug_frame", (Elf64_Shdr){ .sh_type = SHT_PROGBITS }, frames,
			    frames_length);
}

static void make_file(void)
{
	static uint8_t code[TEXT_BYTES];

	memset(code, 0x90, sizeof(code));
	memcpy(code + LEAF, "\x48\x89\xf8\xc3", 4); /* mov rax, rdi; ret */
	memcpy(code + PUSHES, "\x50\x58\xc3", 3);   /* push rax; pop rax; ret */
	made_up_elf_begin(&elf);
	text = made_up_elf_section(
		&elf, ".text", (Elf64_Shdr){ .sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR },
		code, sizeof(code));
	add_symbols();
	add_frames();
	add_plt();
	made_up_elf_end(&elf);
}

/* The file as a descriptor, of whatever it holds now. */
static void open_file(bool plain)
{
	static char path[] = "/tmp/test_symbol_file.XXXXXX";
	struct symbol_source source = {
		.base = AT, .end = AT + elf.size, .root = "", .path = "/no/such/file", .plain = plain
	};

	symbol_file_close(file);
	strcpy(strrchr(path, '.') + 1, "XXXXXX");
	source.fd = mkstemp(path);
	assert_true(source.fd >= 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(write(source.fd, elf.bytes, elf.size), elf.size);
	file = symbol_file_open(&source);
	assert_non_null(file);
}

static int begin(void **state)
{
	(void)state;
	make_file();
	open_file(true);
	return 0;
}

static int end(void **state)
{
	(void)state;
	symbol_file_close(file);
	file = NULL;
	return 0;
}

static const char *name_at(uint64_t address)
{
	const size_t count = symbol_file_find(file, AT + address, found);

	assert_in_range(count, 0, 1);
	if (count) {
		assert_string_equal(found[0].file, "");
		assert_int_equal(found[0].line, 0);
	}
	return count ? found[0].name : "";
}

static const char *name_of(uint64_t offset)
{
	return name_at(in_text(offset));
}

static void a_symbol_holds_all_of_its_extent(void **state)
{
	(void)state;
	/* With debug info asked for, and none there, it is the same. */
	for (int plain = 0; plain < 2; plain++) {
		open_file(plain);
		assert_string_equal(name_at(0), "");
		assert_string_equal(name_at(in_text(WHOLE) - 1), "");
		assert_string_equal(name_of(WHOLE + 15), "whole");
		assert_string_equal(name_of(WHOLE + 16), "");
		assert_string_equal(name_of(OUTER), "outer");
		assert_string_equal(name_of(INNER - 1), "outer");
		assert_string_equal(name_of(INNER), "inner");
		assert_string_equal(name_of(INNER + 7), "inner");
		assert_string_equal(name_of(INNER + 8), "outer");
		assert_string_equal(name_of(OUTER + 0x3f), "outer");
		assert_string_equal(name_of(TEXT_BYTES - 1), "");
		assert_string_equal(name_at(UINT64_MAX - AT), "");
	}
}

/* A global name before a local one, one without an underscore, the shortest, the first of the alphabet. */
static void of_several_names_the_plainest_is_taken(void **state)
{
	(void)state;
	assert_string_equal(name_of(WHOLE), "whole");
	assert_string_equal(name_of(TIE), "aaaa");
}

static void only_functions_that_are_there_have_names(void **state)
{
	(void)state;
	assert_string_equal(name_of(NO_FUNCTION), "");
	assert_string_equal(name_of(NOTYPE), "notype");
	assert_string_equal(name_of(IFUNC), "ifunc");
	assert_string_equal(name_of(HUGE), "");
	assert_string_equal(name_of(HUGE + 1), "");
}

static void names_have_no_version_and_are_not_mangled(void **state)
{
	(void)state;
	assert_string_equal(name_of(VERSIONED), "versioned");
	assert_string_equal(name_of(ODD), "@odd");
	assert_string_equal(name_of(MANGLED), "foo::bar");
}

/* Nothing leads to .eh_frame then. */
static void without_section_headers_the_unwind_table_is_found(void **state)
{
	Elf64_Ehdr header;
	struct frame_rules rules;

	(void)state;
	memcpy(&header, elf.bytes, sizeof(header));
	header.e_shoff = header.e_shnum = header.e_shstrndx = 0;
	memcpy(elf.bytes, &header, sizeof(header));
	open_file(true);
	assert_string_equal(name_of(SIZELESS), "");
	assert_true(symbol_file_covers(file, AT + in_text(SIZELESS)));
	assert_true(symbol_file_covers(file, AT + in_text(NAMELESS + 15)));
	assert_false(symbol_file_covers(file, AT + in_text(NAMELESS + 16)));
	assert_true(symbol_file_rules(file, AT + in_text(SIZELESS), &rules));
	assert_int_equal(rules.registers[REGISTER_NUMBER_PC].kind, FRAME_RULE_SAVED);
	assert_false(symbol_file_rules(file, AT + in_text(WHOLE), &rules));
}

static void without_a_size_unwind_tables_say_how_far_it_reaches(void **state)
{
	(void)state;
	assert_string_equal(name_of(SIZELESS), "sizeless");
	assert_string_equal(name_of(SIZELESS + 15), "sizeless");
	assert_string_equal(name_of(UNCOVERED), "");
	assert_string_equal(name_of(NAMELESS), "");
	assert_true(symbol_file_covers(file, AT + in_text(SIZELESS)));
	assert_true(symbol_file_covers(file, AT + in_text(NAMELESS)));
	assert_true(symbol_file_covers(file, AT + in_text(NAMELESS + 15)));
	assert_false(symbol_file_covers(file, AT + in_text(SIZELESS - 1)));
	assert_false(symbol_file_covers(file, AT + in_text(NAMELESS + 16)));
	assert_false(symbol_file_covers(file, AT + in_text(WHOLE)));
}

/* One that begins far before is not looked for in all that lie between. */
static void some_overlaps_are_looked_through(void **state)
{
	(void)state;
	assert_string_equal(name_of(CROWDED), "crowded");
	assert_string_equal(name_of(CROWDED + 1), "small");
	assert_string_equal(name_of(CROWDED + 64), "small");
	assert_string_equal(name_of(CROWDED + 65), "");
	assert_string_equal(name_of(CROWDED_LESS + 63), "small");
	assert_string_equal(name_of(CROWDED_LESS + 64), "less");
	assert_string_equal(name_of(CROWDED_LESS + 0xff), "less");
}

static void entries_of_the_plt_have_names(void **state)
{
	const uint64_t entry = elf.sections[plt].sh_addr;

	(void)state;
	for (uint64_t offset = 0; offset < 16; offset++)
		assert_string_equal(name_at(entry + offset), "ifunc@plt");
	assert_string_equal(name_at(entry + 16), "");
	/* A resolver that has no name gives none. */
	elf.bytes[elf.sections[plt + 1].sh_addr + offsetof(Elf64_Rela, r_addend)] = (uint8_t)in_text(
		NO_FUNCTION);
	open_file(true);
	assert_string_equal(name_at(entry), "");
}

/*---- Extents ----*/

static void assert_extent(uint64_t offset, uint64_t first, uint64_t last)
{
	const struct symbol_extent extent = symbol_file_extent(file, AT + in_text(offset));

	assert_int_equal(extent.begin, AT + in_text(first));
	assert_int_equal(extent.end, AT + in_text(last));
}

static void the_same_is_told_of_a_stretch(void **state)
{
	(void)state;
	assert_extent(WHOLE, WHOLE, WHOLE + 16);
	assert_extent(WHOLE + 15, WHOLE, WHOLE + 16);
	assert_extent(OUTER, OUTER, INNER);
	assert_extent(INNER + 1, INNER, INNER + 8);
	assert_extent(INNER + 8, INNER + 8, OUTER + 0x40);
	assert_extent(TIE + 4, TIE, TIE + 8);
	/* Where there is no name, an entry of .eh_frame bounds it, and the section. */
	assert_extent(NAMELESS + 3, NAMELESS, NAMELESS + 16);
	assert_extent(NAMELESS_END + 3, NAMELESS_END, TEXT_BYTES);
	/* Without one, nothing is known of neighbours. */
	assert_extent(WHOLE + 16, WHOLE + 16, WHOLE + 17);
	assert_extent(NO_FUNCTION, NO_FUNCTION, NO_FUNCTION + 1);
}

static void what_is_in_no_section_of_code_is_told_alone(void **state)
{
	(void)state;
	elf.sections[text].sh_flags = SHF_ALLOC;
	made_up_elf_end(&elf);
	open_file(true);
	assert_extent(NAMELESS + 3, NAMELESS + 3, NAMELESS + 4);
	elf.sections[text].sh_flags |= SHF_EXECINSTR;
	elf.sections[text].sh_name = elf.sections[plt].sh_name;
	made_up_elf_end(&elf);
	open_file(true);
	assert_extent(NAMELESS + 3, NAMELESS + 3, NAMELESS + 4);
}

/*---- Rules ----*/

static bool has_rules(uint64_t address)
{
	struct frame_rules rules, expected;

	memset(&rules, 0xff, sizeof(rules));
	if (!symbol_file_rules(file, AT + address, &rules))
		return false;
	assert_true(frame_rules_valid(&rules));
	frame_rules_of_call(&expected);
	assert_memory_equal(&rules.ops[rules.cfa.first], &expected.ops[expected.cfa.first],
			    sizeof(rules.ops[0]));
	assert_int_equal(rules.registers[REGISTER_NUMBER_PC].kind, FRAME_RULE_SAVED);
	return true;
}

static void rules_come_from_tables_or_hold_after_any_call(void **state)
{
	const uint64_t entry = elf.sections[plt].sh_addr;

	(void)state;
	for (uint64_t offset = 0; offset < 16; offset++)
		assert_true(has_rules(in_text(NAMELESS + offset)));
	assert_false(has_rules(in_text(NAMELESS + 16)));
	/* A leaf, at each of its instructions; not what pushes something. */
	for (uint64_t offset = 0; offset < 4; offset++)
		assert_true(has_rules(in_text(LEAF + offset)));
	assert_false(has_rules(in_text(LEAF + 4)));
	for (uint64_t offset = 0; offset < 3; offset++)
		assert_false(has_rules(in_text(PUSHES + offset)));
	assert_false(has_rules(in_text(WHOLE))); /* does not return */
	assert_true(has_rules(entry));
	assert_false(has_rules(entry + 6));
	assert_false(has_rules(0));
}

static void rules_may_be_with_debug_info_alone(void **state)
{
	(void)state;
	assert_false(has_rules(in_text(PUSHES + 1)));
	add_debug_frames();
	made_up_elf_end(&elf);
	open_file(true);
	for (uint64_t offset = 0; offset < 3; offset++)
		assert_true(has_rules(in_text(PUSHES + offset)));
	assert_false(has_rules(in_text(PUSHES + 3)));
	assert_false(symbol_file_covers(file, AT + in_text(PUSHES)));
	assert_true(has_rules(in_text(NAMELESS)));
	/* Debug info, if any is to be used, tells each address by itself. */
	assert_extent(WHOLE, WHOLE, WHOLE + 16);
	open_file(false);
	assert_extent(WHOLE, WHOLE, WHOLE + 1);
}

static void a_leaf_is_whole_in_the_file(void **state)
{
	const uint64_t code_end = in_text(LEAF) + 4;

	(void)state;
	for (uint64_t missing = 0; missing < 2; missing++) {
		elf.segments[0].p_filesz = code_end - missing;
		memcpy(elf.bytes + sizeof(Elf64_Ehdr), elf.segments, sizeof(elf.segments));
		open_file(true);
		assert_int_equal(has_rules(in_text(LEAF)), !missing);
	}
	elf.segments[0].p_filesz = elf.size;
	elf.segments[0].p_type = PT_NOTE;
	memcpy(elf.bytes + sizeof(Elf64_Ehdr), elf.segments, sizeof(elf.segments));
	open_file(true);
	assert_false(has_rules(in_text(LEAF)));
}

static void what_is_no_file_has_no_names(void **state)
{
	const struct symbol_source closed = {
		.fd = -1, .base = AT, .end = AT + 0x1000, .root = "", .path = "/no/such/file"
	};

	(void)state;
	symbol_file_close(file);
	file = symbol_file_open(&closed);
	assert_string_equal(name_of(WHOLE), "");
	assert_false(symbol_file_covers(file, AT + in_text(NAMELESS)));
	/* One whose names do not end. */
	make_file();
	elf.bytes[elf.sections[text + 1].sh_addr + names_length - 1] = 'x';
	open_file(true);
	assert_string_equal(name_of(WHOLE), "");
	symbol_file_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_symbol_holds_all_of_its_extent, begin, end),
		cmocka_unit_test_setup_teardown(of_several_names_the_plainest_is_taken, begin, end),
		cmocka_unit_test_setup_teardown(only_functions_that_are_there_have_names, begin, end),
		cmocka_unit_test_setup_teardown(names_have_no_version_and_are_not_mangled, begin, end),
		cmocka_unit_test_setup_teardown(without_a_size_unwind_tables_say_how_far_it_reaches, begin,
						end),
		cmocka_unit_test_setup_teardown(without_section_headers_the_unwind_table_is_found, begin,
						end),
		cmocka_unit_test_setup_teardown(some_overlaps_are_looked_through, begin, end),
		cmocka_unit_test_setup_teardown(entries_of_the_plt_have_names, begin, end),
		cmocka_unit_test_setup_teardown(the_same_is_told_of_a_stretch, begin, end),
		cmocka_unit_test_setup_teardown(what_is_in_no_section_of_code_is_told_alone, begin, end),
		cmocka_unit_test_setup_teardown(rules_come_from_tables_or_hold_after_any_call, begin, end),
		cmocka_unit_test_setup_teardown(rules_may_be_with_debug_info_alone, begin, end),
		cmocka_unit_test_setup_teardown(a_leaf_is_whole_in_the_file, begin, end),
		cmocka_unit_test_setup_teardown(what_is_no_file_has_no_names, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

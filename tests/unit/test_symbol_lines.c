/* SPDX-License-Identifier: MIT */
/* Inlined functions, files and lines, as DWARF 5 of a made-up file has them. */
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
#include <elfutils/libdwfl.h>

#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_elf.h"
#include "unwind/symbols/symbol_file.h"

INSTEAD_OF(strdup);
INSTEAD_OF(dwfl_module_addrdie);

enum { TEXT_BYTES = 0x100, COVERED = 0x80, AREA_BYTES = 0x800, LINE = 7 };

/* What an entry of .debug_info is. */
enum { UNIT = 1, FUNCTION, NO_FILE, BLOCK, ORIGIN, INLINED, NO_LINE };

static const uint64_t AT = 0x7f1200000000;

/* The bytes of a section so far. */
struct area {
	uint8_t bytes[AREA_BYTES];
	size_t length;
};

static struct made_up_elf elf;
static struct area info;
static uint32_t text; /* a section */
static struct symbol_file *file;
static struct symbol found[SYMBOL_INLINES_MAX];

static size_t copies_before_failure = SIZE_MAX;

char *__wrap_strdup(const char *string)
{
	return copies_before_failure-- == 0 ? NULL : __real_strdup(string);
}

static Dwfl_Module *asked; /* the module that was asked last */

Dwarf_Die *__wrap_dwfl_module_addrdie(Dwfl_Module *module, Dwarf_Addr address, Dwarf_Addr *ret_bias)
{
	asked = module;
	return __real_dwfl_module_addrdie(module, address, ret_bias);
}

/*---- The file ----*/

static void add_bytes(struct area *area, const void *bytes, size_t length)
{
	assert_in_range(area->length + length, 0, AREA_BYTES);
	memcpy(area->bytes + area->length, bytes, length);
	area->length += length;
}

static void add_number(struct area *area, uint64_t number, size_t length)
{
	add_bytes(area, &number, length);
}

static void add_text(struct area *area, const char *string)
{
	add_bytes(area, string, strlen(string) + 1);
}

static void add_section(const char *name, const struct area *area)
{
	made_up_elf_section(&elf, name, (Elf64_Shdr){ .sh_type = SHT_PROGBITS }, area->bytes, area->length);
}

/* Put the length of what comes behind it into the first four bytes. */
static void end_unit(struct area *area)
{
	const uint32_t length = (uint32_t)(area->length - sizeof(length));

	memcpy(area->bytes, &length, sizeof(length));
}

static void add_abbreviations(void)
{
#define NAME DW_AT_name, DW_FORM_string
#define EXTENT DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data8
#define ITS_FILE DW_AT_decl_file, DW_FORM_data1
#define OF_ORIGIN DW_AT_abstract_origin, DW_FORM_ref4
#define LINES DW_AT_stmt_list, DW_FORM_sec_offset
#define CALL_LINE DW_AT_call_line, DW_FORM_data8
	/* clang-format off */
	static const uint8_t bytes[] = {
		UNIT, DW_TAG_compile_unit, DW_CHILDREN_yes, NAME, LINES, EXTENT, 0, 0,
		FUNCTION, DW_TAG_subprogram, DW_CHILDREN_yes, NAME, ITS_FILE, EXTENT, 0, 0,
		NO_FILE, DW_TAG_subprogram, DW_CHILDREN_yes, NAME, EXTENT, 0, 0,
		BLOCK, DW_TAG_lexical_block, DW_CHILDREN_yes, EXTENT, 0, 0,
		ORIGIN, DW_TAG_subprogram, DW_CHILDREN_no, NAME, ITS_FILE, 0, 0,
		INLINED, DW_TAG_inlined_subroutine, DW_CHILDREN_yes, OF_ORIGIN, EXTENT, CALL_LINE, 0, 0,
		NO_LINE, DW_TAG_inlined_subroutine, DW_CHILDREN_yes, OF_ORIGIN, EXTENT, 0, 0,
		0,
	};
	/* clang-format on */
	struct area abbreviations = { .length = 0 };

	add_bytes(&abbreviations, bytes, sizeof(bytes));
	add_section(".debug_abbrev", &abbreviations);
}

/* The code up to COVERED is of a line of one of two files: the unit's own, 0, and another. */
static void add_lines(uint8_t of_file)
{
	/* Of an instruction, of a line, then how many operands opcodes 1 to 9 have. */
	static const uint8_t header[] = { 1, 1, 1, 0xfb, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1 };
	static const uint8_t format[] = { 1, DW_LNCT_path, DW_FORM_string };
	static const uint8_t format_of_files[] = { 2, DW_LNCT_path, DW_FORM_string, DW_LNCT_directory_index,
						   DW_FORM_udata };
	struct area lines = { .length = 0 };
	size_t header_begin;

	add_number(&lines, 0, 4);
	add_number(&lines, 5, 2);
	add_number(&lines, 8 | 0 << 8, 2); /* bytes of an address, of a segment */
	add_number(&lines, 0, 4);
	header_begin = lines.length;
	add_bytes(&lines, header, sizeof(header));
	add_bytes(&lines, format, sizeof(format));
	add_number(&lines, 1, 1);
	add_text(&lines, "/src");
	add_bytes(&lines, format_of_files, sizeof(format_of_files));
	add_number(&lines, 2, 1);
	add_text(&lines, "own.c");
	add_number(&lines, 0, 1);
	add_text(&lines, "other.h");
	add_number(&lines, 0, 1);
	memcpy(lines.bytes + header_begin - 4, &(uint32_t){ (uint32_t)(lines.length - header_begin) }, 4);
	add_number(&lines, 9 << 8, 2); /* an extended opcode of nine bytes */
	add_number(&lines, DW_LNE_set_address, 1);
	add_number(&lines, elf.sections[text].sh_addr, 8);
	add_number(&lines, DW_LNS_set_file, 1);
	add_number(&lines, of_file, 1);
	add_number(&lines, DW_LNS_advance_line, 1);
	add_number(&lines, LINE - 1, 1);
	add_number(&lines, DW_LNS_copy, 1);
	add_number(&lines, DW_LNS_advance_pc, 1);
	add_number(&lines, COVERED | (COVERED >> 7) << 8, 2);
	add_number(&lines, 1 << 8, 2);
	add_number(&lines, DW_LNE_end_sequence, 1);
	end_unit(&lines);
	add_section(".debug_line", &lines);
}

static void add_extent(void)
{
	add_number(&info, elf.sections[text].sh_addr, 8);
	add_number(&info, TEXT_BYTES, 8);
}

static void begin_info(void)
{
	static uint8_t code[TEXT_BYTES];

	made_up_elf_begin(&elf);
	text = made_up_elf_section(
		&elf, ".text", (Elf64_Shdr){ .sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR },
		code, sizeof(code));
	info.length = 0;
	add_number(&info, 0, 4);
	add_number(&info, 5, 2);
	add_number(&info, DW_UT_compile, 1);
	add_number(&info, 8, 1);
	add_number(&info, 0, 4);
	add_number(&info, UNIT, 1);
	add_text(&info, "own.c");
	add_number(&info, 0, 4);
	add_extent();
}

/* All of the code is of it. */
static void add_function(const char *name, uint8_t of_file)
{
	add_number(&info, FUNCTION, 1);
	add_text(&info, name);
	add_number(&info, of_file, 1);
	add_extent();
}

static void add_function_without_file(const char *name)
{
	add_number(&info, NO_FILE, 1);
	add_text(&info, name);
	add_extent();
}

/* A scope that is no function. */
static void add_block(void)
{
	add_number(&info, BLOCK, 1);
	add_extent();
}

/* One that is only inlined; returns where it is described. */
static uint32_t add_origin(const char *name)
{
	const uint32_t at = (uint32_t)info.length;

	add_number(&info, ORIGIN, 1);
	add_text(&info, name);
	add_number(&info, 0, 1);
	return at;
}

/* It is inlined in what was added last, at this line; -1 if that is not told. */
static void add_inlined(uint32_t origin, int64_t call_line)
{
	add_number(&info, call_line < 0 ? NO_LINE : INLINED, 1);
	add_number(&info, origin, 4);
	add_extent();
	if (call_line >= 0)
		add_number(&info, (uint64_t)call_line, 8);
}

static size_t find_at(uint64_t offset)
{
	return symbol_file_find(file, AT + elf.sections[text].sh_addr + offset, found);
}

/* Open the file, with the code of a line of one of the files. Returns how many functions are at its code. */
static size_t find_functions(size_t depth, uint8_t of_file)
{
	static char path[] = "/tmp/test_symbol_lines.XXXXXX";
	struct symbol_source source = { .base = AT, .root = "", .path = "/no/such/file" };

	for (size_t i = 0; i <= depth; i++)
		add_number(&info, 0, 1);
	end_unit(&info);
	add_section(".debug_info", &info);
	add_abbreviations();
	add_lines(of_file);
	made_up_elf_end(&elf);
	symbol_file_close(file);
	strcpy(strrchr(path, '.') + 1, "XXXXXX");
	source.fd = mkstemp(path);
	source.end = AT + elf.size;
	assert_true(source.fd >= 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(write(source.fd, elf.bytes, elf.size), elf.size);
	file = symbol_file_open(&source);
	assert_non_null(file);
	return find_at(0);
}

static int end(void **state)
{
	(void)state;
	symbol_file_close(file);
	file = NULL;
	return 0;
}

static void assert_symbol(size_t index, const char *name, const char *of_file, uint32_t line)
{
	assert_string_equal(found[index].name, name);
	assert_string_equal(found[index].file, of_file);
	assert_int_equal(found[index].line, line);
}

/*---- Tests ----*/

/* clang numbers the unit's own file 0, of which libdw says nothing. */
static void the_units_own_file_has_the_number_zero(void **state)
{
	(void)state;
	begin_info();
	add_function("own", 0);
	assert_int_equal(find_functions(1, 0), 1);
	assert_symbol(0, "own", "own.c", LINE);
	begin_info();
	add_function("other", 1);
	assert_int_equal(find_functions(1, 1), 1);
	assert_symbol(0, "other", "other.h", LINE);
	/* A line of another file than the function's is none of it. */
	begin_info();
	add_function("other", 1);
	assert_int_equal(find_functions(1, 0), 1);
	assert_symbol(0, "other", "other.h", 0);
}

static void a_function_may_tell_no_file(void **state)
{
	(void)state;
	begin_info();
	add_function_without_file("made by the compiler");
	assert_int_equal(find_functions(1, 0), 1);
	assert_symbol(0, "made by the compiler", "", 0);
	/* Or one that is not in the list. */
	begin_info();
	add_function("damaged", 9);
	assert_int_equal(find_functions(1, 0), 1);
	assert_symbol(0, "damaged", "", 0);
}

static void code_may_have_no_line(void **state)
{
	(void)state;
	begin_info();
	add_function("own", 0);
	assert_int_equal(find_functions(1, 0), 1);
	assert_int_equal(find_at(COVERED - 1), 1);
	assert_symbol(0, "own", "own.c", LINE);
	assert_int_equal(find_at(COVERED), 1);
	assert_symbol(0, "own", "own.c", 0);
}

/* As C of GNU has them: the one around does not run there. */
static void of_nested_functions_the_innermost_is_told_alone(void **state)
{
	(void)state;
	begin_info();
	add_function("around", 0);
	add_function("nested", 0);
	add_block();
	assert_int_equal(find_functions(3, 0), 1);
	assert_symbol(0, "nested", "own.c", LINE);
}

static void each_caller_has_the_line_of_its_call(void **state)
{
	uint32_t origins[3];

	(void)state;
	begin_info();
	origins[0] = add_origin("middle");
	origins[1] = add_origin("inner");
	origins[2] = add_origin("innermost");
	add_function("around", 0);
	add_inlined(origins[0], -1);
	add_block();
	add_inlined(origins[1], 1);
	add_inlined(origins[2], 0); /* unknown */
	add_block();
	assert_int_equal(find_functions(6, 0), 4);
	assert_symbol(0, "innermost", "own.c", LINE);
	assert_symbol(1, "inner", "own.c", 0);
	assert_symbol(2, "middle", "own.c", 1);
	assert_symbol(3, "around", "own.c", 0);
}

/* It is not cut to one that there may be. */
static void a_line_that_is_too_large_is_unknown(void **state)
{
	uint32_t origin;

	(void)state;
	begin_info();
	origin = add_origin("inner");
	add_function("around", 0);
	add_inlined(origin, (INT64_C(1) << 32) + LINE);
	add_block();
	assert_int_equal(find_functions(3, 0), 2);
	assert_symbol(0, "inner", "own.c", LINE);
	assert_symbol(1, "around", "own.c", 0);
}

static void inlined_functions_are_cut_to_the_innermost(void **state)
{
	enum { DEPTH = SYMBOL_INLINES_MAX + 3 };
	uint32_t origins[DEPTH];
	char name[16];

	(void)state;
	begin_info();
	for (int i = 1; i < DEPTH; i++) {
		snprintf(name, sizeof(name), "inlined %d", i);
		origins[i] = add_origin(name);
	}
	add_function("around", 0);
	for (int i = 1; i < DEPTH; i++)
		add_inlined(origins[i], 100 + i);
	assert_int_equal(find_functions(DEPTH, 0), SYMBOL_INLINES_MAX);
	assert_symbol(0, "inlined 34", "own.c", LINE);
	assert_symbol(1, "inlined 33", "own.c", 134);
	assert_symbol(SYMBOL_INLINES_MAX - 1, "inlined 3", "own.c", 104);
}

static void add_symbols(void)
{
	const Elf64_Sym symbols[] = { { 0 },
				      { .st_name = 1,
					.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
					.st_shndx = (uint16_t)text,
					.st_value = elf.sections[text].sh_addr,
					.st_size = COVERED } };
	const uint32_t names = made_up_elf_section(&elf, ".strtab", (Elf64_Shdr){ .sh_type = SHT_STRTAB },
						   "\0own", 5);

	made_up_elf_section(&elf, ".symtab",
			    (Elf64_Shdr){ .sh_type = SHT_SYMTAB,
					  .sh_link = names,
					  .sh_info = 1,
					  .sh_entsize = sizeof(symbols[0]) },
			    symbols, sizeof(symbols));
}

/* Of one letter, by zlib. */
static void add_compressed(const char *name)
{
	static const uint8_t letter[] = { 0x78, 1, 1, 1, 0, 0xfe, 0xff, 'x', 0, 0x79, 0, 0x79 };
	const Elf64_Chdr header = { .ch_type = ELFCOMPRESS_ZLIB, .ch_size = 1, .ch_addralign = 1 };
	uint8_t bytes[sizeof(header) + sizeof(letter)];

	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + sizeof(header), letter, sizeof(letter));
	made_up_elf_section(&elf, name, (Elf64_Shdr){ .sh_type = SHT_PROGBITS, .sh_flags = SHF_COMPRESSED },
			    bytes, sizeof(bytes));
}

static bool is_compressed(const char *name)
{
	Dwarf_Addr bias;
	Elf *read = dwarf_getelf(dwfl_module_getdwarf(asked, &bias));
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t names;

	assert_int_equal(elf_getshdrstrndx(read, &names), 0);
	do {
		section = elf_nextscn(read, section);
		assert_non_null(section);
		assert_non_null(gelf_getshdr(section, &header));
	} while (strcmp(elf_strptr(read, names, header.sh_name), name) != 0);
	return header.sh_flags & SHF_COMPRESSED;
}

static void where_variables_are_is_not_decompressed(void **state)
{
	(void)state;
	begin_info();
	add_symbols();
	add_compressed(".debug_loclists");
	add_compressed(".debug_loc");
	add_compressed(".debug_str_offsets");
	add_function("own", 0);
	assert_int_equal(find_functions(1, 0), 1);
	assert_symbol(0, "own", "own.c", LINE);
	assert_false(is_compressed(".debug_str_offsets"));
	assert_true(is_compressed(".debug_loclists"));
	assert_true(is_compressed(".debug_loc"));
}

static void without_memory_for_its_paths_a_file_is_not_opened(void **state)
{
	const struct symbol_source source = {
		.fd = -1, .base = AT, .end = AT + 0x1000, .root = "", .path = "/no/such/file"
	};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		copies_before_failure = i;
		assert_null(symbol_file_open(&source));
		copies_before_failure = SIZE_MAX;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(the_units_own_file_has_the_number_zero, end),
		cmocka_unit_test_teardown(a_function_may_tell_no_file, end),
		cmocka_unit_test_teardown(code_may_have_no_line, end),
		cmocka_unit_test_teardown(of_nested_functions_the_innermost_is_told_alone, end),
		cmocka_unit_test_teardown(each_caller_has_the_line_of_its_call, end),
		cmocka_unit_test_teardown(a_line_that_is_too_large_is_unknown, end),
		cmocka_unit_test_teardown(inlined_functions_are_cut_to_the_innermost, end),
		cmocka_unit_test_teardown(where_variables_are_is_not_decompressed, end),
		cmocka_unit_test_teardown(without_memory_for_its_paths_a_file_is_not_opened, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

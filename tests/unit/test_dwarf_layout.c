/* SPDX-License-Identifier: MIT */
/*
 * Layouts from debug info, which is made up: structures of LuaJIT's names, with members where the test puts
 * them.
 */
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
#include <elfutils/libdw.h>

#include "luajit-layouts/bytecode.h"
#include "luajit-layouts/module/dwarf_layout.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_elf.h"
#include "tests/unit/open_files.h"

INSTEAD_OF(dwarf_begin);
INSTEAD_OF(dwarf_end);

static int open_count; /* of debug info that libdw holds */

Dwarf *__wrap_dwarf_begin(int fd, Dwarf_Cmd command)
{
	Dwarf *dwarf = __real_dwarf_begin(fd, command);

	open_count += dwarf != NULL;
	return dwarf;
}

int __wrap_dwarf_end(Dwarf *dwarf)
{
	open_count--;
	return __real_dwarf_end(dwarf);
}

enum { INFO_MAX = 4096, UNIT_HEADER = 11 };

/* Numbers of abbreviations. */
enum {
	UNIT = 1,
	STRUCTURE,
	DECLARATION,
	UNION,
	MEMBER,
	PART, /* a member without a place: it begins where the union does */
	NAMELESS,
	TYPEDEF,
	NUMBER,
	ENUMERATION,
	ENUMERATOR,
};

/* Number, tag, whether it has children, and pairs of attribute and form. */
/* clang-format off */
static const uint8_t abbreviations[] = {
	UNIT, DW_TAG_compile_unit, 1, 0, 0,
	STRUCTURE, DW_TAG_structure_type, 1, DW_AT_name, DW_FORM_string, DW_AT_byte_size, DW_FORM_udata, 0, 0,
	DECLARATION, DW_TAG_structure_type, 0, DW_AT_name, DW_FORM_string,
		DW_AT_declaration, DW_FORM_flag_present, 0, 0,
	UNION, DW_TAG_union_type, 1, 0, 0,
	MEMBER, DW_TAG_member, 0, DW_AT_name, DW_FORM_string,
		DW_AT_data_member_location, DW_FORM_udata, DW_AT_type, DW_FORM_ref4, 0, 0,
	PART, DW_TAG_member, 0, DW_AT_name, DW_FORM_string, DW_AT_type, DW_FORM_ref4, 0, 0,
	NAMELESS, DW_TAG_member, 0, DW_AT_data_member_location, DW_FORM_udata, DW_AT_type, DW_FORM_ref4, 0, 0,
	TYPEDEF, DW_TAG_typedef, 0, DW_AT_name, DW_FORM_string, DW_AT_type, DW_FORM_ref4, 0, 0,
	NUMBER, DW_TAG_base_type, 0, DW_AT_name, DW_FORM_string, DW_AT_byte_size, DW_FORM_udata, 0, 0,
	ENUMERATION, DW_TAG_enumeration_type, 1, 0, 0,
	ENUMERATOR, DW_TAG_enumerator, 0, DW_AT_name, DW_FORM_string, DW_AT_const_value, DW_FORM_udata, 0, 0,
	0,
};
/* clang-format on */

static uint8_t info[INFO_MAX];
static size_t length;
static uint32_t number; /* where a type of members that do not matter is */
static struct layout layout;
static char path[] = "/tmp/ljspy-dwarf-XXXXXX";
static unsigned int files_at_begin;

/*---- Writing ----*/

static void add_byte(uint64_t value)
{
	assert_in_range(length, 0, INFO_MAX - 1);
	info[length++] = (uint8_t)value;
}

static void add_number(uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		add_byte(value | 0x80);
	add_byte(value);
}

static void add_text(const char *text)
{
	while (*text)
		add_byte((uint8_t)*text++);
	add_byte(0);
}

/* Begin one thing, and tell where it is. */
static uint32_t add(uint8_t abbreviation)
{
	add_byte(abbreviation);
	return (uint32_t)length - 1;
}

static void add_reference(uint32_t place)
{
	for (unsigned int i = 0; i < sizeof(place); i++)
		add_byte(place >> 8 * i);
}

static uint32_t structure(const char *name, uint64_t size)
{
	uint32_t place = add(STRUCTURE);

	add_text(name);
	add_number(size);
	return place;
}

static void close_children(void)
{
	add_byte(0);
}

static void member_of(const char *name, uint64_t at, uint32_t type)
{
	add(MEMBER);
	add_text(name);
	add_number(at);
	add_reference(type);
}

static void member(const char *name, uint64_t at)
{
	member_of(name, at, number);
}

static void enumerator(const char *name, uint64_t value)
{
	add(ENUMERATOR);
	add_text(name);
	add_number(value);
}

static uint32_t type_called(const char *name, uint32_t of)
{
	uint32_t place = add(TYPEDEF);

	add_text(name);
	add_reference(of);
	return place;
}

static void begin_unit(void)
{
	memset(info, 0, sizeof(info));
	length = UNIT_HEADER;
	add(UNIT);
	number = add(NUMBER);
	add_text("int");
	add_number(4);
}

static enum dwarf_layout_status read_it(void)
{
	static struct made_up_elf elf;
	const uint16_t version = 4;
	uint32_t size;

	close_children(); /* of the unit */
	size = (uint32_t)length - 4;
	memcpy(info, &size, sizeof(size));
	memcpy(info + 4, &version, sizeof(version));
	info[10] = 8; /* bytes of an address */
	made_up_elf_begin(&elf);
	made_up_elf_section(&elf, ".debug_abbrev", (Elf64_Shdr){ .sh_type = SHT_PROGBITS }, abbreviations,
			    sizeof(abbreviations));
	made_up_elf_section(&elf, ".debug_info", (Elf64_Shdr){ .sh_type = SHT_PROGBITS }, info, length);
	made_up_elf_end(&elf);
	made_up_elf_write(&elf, path);
	length--;
	return dwarf_layout_read(path, &layout);
}

/*---- LuaJIT's structures ----*/

static int bytecode_of(enum layout_bytecode set, enum bytecode_op op)
{
	const struct layout numbered = { .bytecode = set };

	return bytecode_number(&numbered, op);
}

static void add_bytecode(enum layout_bytecode set)
{
	add(ENUMERATION);
	enumerator("BC_JMP", (uint64_t)bytecode_of(set, BC_JMP));
	enumerator("BC_FUNCF", (uint64_t)bytecode_of(set, BC_FUNCF));
	close_children();
}

static void add_references(uint64_t size)
{
	structure("GCRef", size);
	close_children();
}

static int begin(void **state)
{
	int fd;

	(void)state;
	memset(path + strlen(path) - 6, 'X', 6);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	files_at_begin = open_files_count();
	begin_unit();
	layout = (struct layout){ .name = "untouched" };
	return 0;
}

/* Whatever was read, nothing of it stays open. */
static int end(void **state)
{
	(void)state;
	assert_int_equal(open_count, 0);
	assert_int_equal(open_files_count(), files_at_begin);
	return unlink(path);
}

static void add_global(uint64_t vmstate)
{
	structure("global_State", 0x300);
	member("vmstate", vmstate);
	close_children();
}

static void members_become_offsets(void **state)
{
	(void)state;
	structure("lua_State", 0x60);
	member("status", 11);
	member("base", 0x20);
	member("top", 0x28);
	close_children();
	structure("GCfuncC", 0x40);
	member("ffid", 10);
	member("f", 0x20);
	close_children();
	add_global(0x100);
	add_bytecode(BYTECODE_V21);
	add_references(8);
	assert_int_equal(read_it(), DWARF_LAYOUT_OK);
	assert_string_equal(layout.name, "debug-info");
	assert_int_equal(layout.L_status, 11);
	assert_int_equal(layout.L_base, 0x20);
	assert_int_equal(layout.L_top, 0x28);
	assert_int_equal(layout.L_size, 0x60);
	assert_int_equal(layout.g_vmstate, 0x100);
	/* It stands for the union, too, which shares its start. */
	assert_int_equal(layout.GCfunc_ffid, 10);
	assert_int_equal(layout.GCfuncC_f, 0x20);
	/* What a structure lacks is absent, and what none describes is unknown. */
	assert_int_equal(layout.L_cframe, LAYOUT_ABSENT);
	assert_int_equal(layout.g_cur_L, LAYOUT_ABSENT);
	assert_int_equal(layout.GCstr_len, LAYOUT_UNKNOWN);
	assert_int_equal(layout.CFRAME_L, LAYOUT_UNKNOWN);
	assert_int_equal(layout.bytecode, BYTECODE_V21);
	assert_int_equal(layout.vmstates, VMSTATES_LUAJIT);
	assert_true(layout.gc64);
	assert_false(layout.has_jit);
}

static void members_of_members_are_added_up(void **state)
{
	uint32_t collector, buffer, nameless, strings;

	(void)state;
	collector = structure("GCState", 0x60);
	member("total", 0);
	member("state", 0x11);
	close_children();
	buffer = structure("SBuf", 0x20);
	member("p", 0);
	member("L", 0x18);
	close_children();
	strings = structure("StrInternState", 0x30);
	member("tab", 0);
	member("mask", 8);
	close_children();
	/* A union in which a structure without a name holds a member. */
	nameless = add(UNION);
	add(PART);
	add_text("other");
	add_reference(number);
	add(PART);
	add_text("hookmask");
	add_reference(number);
	close_children();
	collector = type_called("GCState", collector);
	structure("global_State", 0x300);
	member_of("gc", 0x10, collector);
	member_of("str", 0x80, strings);
	member_of("tmpbuf", 0xc0, buffer);
	add(NAMELESS);
	add_number(0x109);
	add_reference(nameless);
	member("vmstate", 0x110);
	member("vmstate", 0x999); /* the first one counts */
	close_children();
	add_bytecode(BYTECODE_V20);
	add_references(4);
	assert_int_equal(read_it(), DWARF_LAYOUT_OK);
	assert_int_equal(layout.g_gc_total, 0x10);
	assert_int_equal(layout.g_gc_state, 0x21);
	assert_int_equal(layout.g_gc_root, LAYOUT_ABSENT);
	assert_int_equal(layout.g_strhash, 0x80);
	assert_int_equal(layout.g_strmask, 0x88);
	assert_int_equal(layout.g_tmpbuf_L, 0xd8);
	assert_int_equal(layout.g_hookmask, 0x109);
	assert_int_equal(layout.g_vmstate, 0x110);
	assert_int_equal(layout.bytecode, BYTECODE_V20);
	assert_false(layout.gc64);
}

/* Each without a name in the next one, so deep that no LuaJIT has it so. */
static void members_are_sought_to_some_depth(void **state)
{
	enum { DEEPEST = 4 };

	(void)state;
	for (uint64_t depth = 1; depth <= DEEPEST + 1; depth++) {
		uint32_t nameless;

		begin_unit();
		nameless = add(UNION);
		add(PART);
		add_text("hookmask");
		add_reference(number);
		close_children();
		for (uint64_t i = 1; i < depth; i++) {
			uint32_t outer = add(UNION);

			add(NAMELESS);
			add_number(3);
			add_reference(nameless);
			close_children();
			nameless = outer;
		}
		structure("global_State", 0x300);
		add(NAMELESS);
		add_number(0x100);
		add_reference(nameless);
		member("vmstate", 0x110);
		close_children();
		add_bytecode(BYTECODE_V21);
		assert_int_equal(read_it(), DWARF_LAYOUT_OK);
		assert_int_equal(layout.g_hookmask,
				 depth <= DEEPEST ? (int)(0x100 + (depth - 1) * 3) : LAYOUT_ABSENT);
		assert_int_equal(layout.g_vmstate, 0x110);
	}
}

/* Until 2020 the table of strings was in the state itself. */
static void a_field_may_have_an_older_name(void **state)
{
	(void)state;
	structure("global_State", 0x300);
	member("strhash", 8);
	member("strmask", 16);
	member("strnum", 20);
	member("vmstate", 0x110);
	close_children();
	add_bytecode(BYTECODE_V21);
	assert_int_equal(read_it(), DWARF_LAYOUT_OK);
	assert_int_equal(layout.g_strhash, 8);
	assert_int_equal(layout.g_strmask, 16);
	assert_int_equal(layout.g_strnum, 20);
}

static void places_in_the_whole_state_are_told_from_g(void **state)
{
	(void)state;
	add_global(0x100);
	structure("GG_State", 0x1800);
	member("g", 0x60);
	member("J", 0x2c8);
	member("dispatch", 0xf00);
	close_children();
	structure("jit_State", 0x800);
	member("exitno", 0x400);
	close_children();
	add(ENUMERATION);
	enumerator("IR_KGC", 0x17);
	enumerator("IR_LAST", 0x18);
	close_children();
	add_bytecode(BYTECODE_V21);
	assert_int_equal(read_it(), DWARF_LAYOUT_OK);
	assert_int_equal(layout.GG_J, 0x2c8 - 0x60);
	assert_int_equal(layout.GG_dispatch, 0xf00 - 0x60);
	assert_int_equal(layout.J_exitno, 0x400);
	assert_int_equal(layout.IR_KGC, 0x17);
	assert_true(layout.has_jit);
	/* Where g is has to be known. */
	begin_unit();
	add_global(0x100);
	structure("GG_State", 0x1800);
	member("J", 0x2c8);
	close_children();
	add_bytecode(BYTECODE_V21);
	assert_int_equal(read_it(), DWARF_LAYOUT_OK);
	assert_int_equal(layout.GG_J, LAYOUT_ABSENT);
	assert_false(layout.has_jit);
}

static void a_declaration_says_nothing(void **state)
{
	(void)state;
	add_global(0x100);
	add(DECLARATION);
	add_text("lua_State");
	add_bytecode(BYTECODE_V21);
	assert_int_equal(read_it(), DWARF_LAYOUT_OK);
	assert_int_equal(layout.L_base, LAYOUT_UNKNOWN);
}

static void the_numbering_of_bytecodes_has_to_be_known(void **state)
{
	(void)state;
	for (enum layout_bytecode set = 0; set < BYTECODE_COUNT; set++) {
		begin_unit();
		add_global(0x100);
		add_bytecode(set);
		assert_int_equal(read_it(), DWARF_LAYOUT_OK);
		assert_int_equal(layout.bytecode, set);
	}
	layout = (struct layout){ .name = "untouched" };
	for (int i = 0; i < 3; i++) {
		begin_unit();
		add_global(0x100);
		add(ENUMERATION);
		if (i != 0)
			enumerator("BC_JMP", (uint64_t)bytecode_of(BYTECODE_V21, BC_JMP) + (i == 2));
		if (i != 1)
			enumerator("BC_FUNCF", (uint64_t)bytecode_of(BYTECODE_V21, BC_FUNCF));
		close_children();
		assert_int_equal(read_it(), DWARF_LAYOUT_NOT_LUAJIT);
	}
	assert_string_equal(layout.name, "untouched");
}

static void the_numbering_of_states_is_told_by_their_names(void **state)
{
	(void)state;
	add_global(0x100);
	add_bytecode(BYTECODE_V21);
	add(ENUMERATION);
	enumerator("LJ_VMST_INTERP", 0);
	enumerator("LJ_VMST_LFUNC", 1);
	close_children();
	assert_int_equal(read_it(), DWARF_LAYOUT_OK);
	assert_int_equal(layout.vmstates, VMSTATES_TARANTOOL);
	begin_unit();
	add_global(0x100);
	add_bytecode(BYTECODE_V21);
	add(ENUMERATION);
	enumerator("LJ_VMST_HEAD", 1);
	close_children();
	assert_int_equal(read_it(), DWARF_LAYOUT_OTHER_STATES);
}

static void what_is_not_luajits_is_said_to_be_none(void **state)
{
	static struct made_up_elf elf;

	(void)state;
	add_bytecode(BYTECODE_V21);
	assert_int_equal(read_it(), DWARF_LAYOUT_NOT_LUAJIT);
	made_up_elf_begin(&elf);
	made_up_elf_end(&elf);
	made_up_elf_write(&elf, path);
	assert_int_equal(dwarf_layout_read(path, &layout), DWARF_LAYOUT_NO_DEBUG_INFO);
	assert_int_equal(dwarf_layout_read("/nonexistent", &layout), DWARF_LAYOUT_UNREADABLE);
	assert_string_equal(layout.name, "untouched");
}

static void each_status_has_a_text(void **state)
{
	(void)state;
	for (enum dwarf_layout_status a = DWARF_LAYOUT_OK; a <= DWARF_LAYOUT_NOT_LUAJIT; a++)
		for (enum dwarf_layout_status b = DWARF_LAYOUT_OK; b < a; b++)
			assert_string_not_equal(dwarf_layout_status_text(a), dwarf_layout_status_text(b));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(members_become_offsets),
		TEST(members_of_members_are_added_up),
		TEST(members_are_sought_to_some_depth),
		TEST(a_field_may_have_an_older_name),
		TEST(places_in_the_whole_state_are_told_from_g),
		TEST(a_declaration_says_nothing),
		TEST(the_numbering_of_bytecodes_has_to_be_known),
		TEST(the_numbering_of_states_is_told_by_their_names),
		TEST(what_is_not_luajits_is_said_to_be_none),
		TEST(each_status_has_a_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

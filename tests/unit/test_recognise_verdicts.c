/* SPDX-License-Identifier: MIT */
/*
 * Which part of a module or of a layout is not known is said, and nothing is guessed. What the code shows is
 * made up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "luajit-layouts/recognise/recognise.h"
#include "luajit-layouts/release.h"
#include "luajit-layouts/tables.h"
#include "tests/unit/shown_code.h"

static const char *const releases[] = { "2.1.0-beta3-gc64", "2.1.0-beta3-gc32" };

static struct layout layout; /* of the release whose code is shown */
static struct vm_code vm;

static void show_release(const char *name)
{
	assert_true(release_layout(name, &layout));
	show_code(&layout);
}

static int begin(void **state)
{
	(void)state;
	show_release(releases[0]);
	return 0;
}

/*---- Verdicts ----*/

static struct {
	char probe[32], text[256];
} verdicts[32];
static size_t verdict_count;

static void note_verdict(void *context, const char *probe, const char *verdict)
{
	(void)context;
	assert_in_range(verdict_count, 0, sizeof(verdicts) / sizeof(verdicts[0]) - 1);
	snprintf(verdicts[verdict_count].probe, sizeof(verdicts[0].probe), "%s", probe);
	snprintf(verdicts[verdict_count++].text, sizeof(verdicts[0].text), "%s", verdict);
}

static enum recognise_status recognise(void)
{
	verdict_count = 0;
	vm = (struct vm_code){ .begin = 1 };
	return recognise_vm(&shown_memory, shown.machine, 0, note_verdict, NULL, &vm);
}

/* The last verdict is the reason. */
static void expect_refusal(enum recognise_status status, const char *probe, const char *text)
{
	assert_int_equal(recognise(), status);
	assert_true(verdict_count > 0);
	assert_string_equal(verdicts[verdict_count - 1].probe, probe);
	assert_string_equal(verdicts[verdict_count - 1].text, text);
}

/* The last verdict on this, or an empty text. */
static const char *verdict_on(const char *probe)
{
	const char *text = "";

	for (size_t i = 0; i < verdict_count; i++)
		if (strcmp(verdicts[i].probe, probe) == 0)
			text = verdicts[i].text;
	return text;
}

static void expect_verdict(const char *probe, const char *text)
{
	assert_int_equal(recognise(), RECOGNISE_OK);
	assert_string_equal(verdict_on(probe), text);
}

/*---- The module ----*/

static void an_image_that_is_none_is_said_to_be_none(void **state)
{
	(void)state;
	shown.elf = ELF_IMAGE_UNREADABLE;
	expect_refusal(RECOGNISE_UNREADABLE, "ELF image", "its headers cannot be read");
	shown.elf = ELF_IMAGE_MALFORMED;
	expect_refusal(RECOGNISE_UNREADABLE, "ELF image", "not a sound ELF image");
	shown.elf = ELF_IMAGE_OTHER_MACHINE;
	expect_refusal(RECOGNISE_OTHER_MACHINE, "ELF image", "for another machine (e_machine 62)");
	assert_int_equal(vm.begin, 1); /* untouched */
}

/* Of the two machines that are known, it has to be the target's. */
static void an_image_is_for_the_targets_machine(void **state)
{
	(void)state;
	verdict_count = 0;
	shown.machine = EM_AARCH64;
	assert_int_equal(recognise_vm(&shown_memory, EM_X86_64, 0, note_verdict, NULL, &vm),
			 RECOGNISE_OTHER_MACHINE);
	assert_string_equal(verdict_on("ELF image"), "for another machine (e_machine 183)");
}

static void the_vm_is_looked_for_by_its_dispatches_if_it_has_no_entry(void **state)
{
	(void)state;
	expect_verdict("VM", "at 0x1000, 4096 bytes, found by its unwind entry");
	shown.by_entry = VM_FIND_NONE;
	expect_verdict("VM",
		       "at 0x1000, 4096 bytes, found by the dispatch sequence (it has no unwind entry)");
	shown.extent.ffi_call = shown.extent.ffi_call_end = 0;
	expect_verdict("VM", "at 0x1000, 4096 bytes, found by the dispatch sequence (it has no unwind entry);"
			     " no FFI");
	shown.by_dispatch = VM_FIND_NONE;
	expect_refusal(RECOGNISE_NO_VM, "VM", "no LuaJIT interpreter in this module");
	shown.by_dispatch = VM_FIND_UNREADABLE;
	expect_refusal(RECOGNISE_UNREADABLE, "VM", "the module cannot be read");
	shown.by_entry = VM_FIND_UNREADABLE;
	expect_refusal(RECOGNISE_UNREADABLE, "VM", "the module cannot be read");
	assert_int_equal(vm.begin, 1);
}

static void where_the_code_is_stays_known_if_it_tells_nothing(void **state)
{
	static const struct {
		enum vm_code_status status;
		enum recognise_status recognised;
		const char *text;
	} reads[] = {
		{ VM_CODE_NOT_A_VM, RECOGNISE_NO_VM, "does not dispatch as LuaJIT's interpreter does" },
		{ VM_CODE_CONTRADICTION, RECOGNISE_UNKNOWN_LAYOUT, "two places disagree about g_vmstate" },
		{ VM_CODE_NO_MEMORY, RECOGNISE_UNREADABLE, "out of memory" },
	};

	(void)state;
	shown.evidence.contradiction = "g_vmstate";
	for (size_t i = 0; i < sizeof(reads) / sizeof(reads[0]); i++) {
		shown.status = reads[i].status;
		expect_refusal(reads[i].recognised, "VM code", reads[i].text);
		assert_int_equal(vm.begin, SHOWN_BEGIN);
		assert_int_equal(vm.end, SHOWN_END);
		assert_int_equal(vm.ffi_call, SHOWN_END);
		assert_int_equal(vm.ffi_call_end, SHOWN_CALL_END);
		assert_int_equal(vm.machine, EM_X86_64);
	}
	shown.status = VM_CODE_OK;
	shown.is_unreadable = true;
	expect_refusal(RECOGNISE_UNREADABLE, "VM code", "cannot be read");
	assert_int_equal(vm.begin, SHOWN_BEGIN);
}

static void the_mode_is_said(void **state)
{
	(void)state;
	shown.evidence.dispatches = 77;
	expect_verdict("mode", "64-bit (GC64) references, 77 dispatch sequences");
	show_release(releases[1]);
	shown.evidence.dispatches = 78;
	expect_verdict("mode", "32-bit references, 78 dispatch sequences");
}

/*---- The layout ----*/

static void the_layout_of_a_release_is_recognised(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		show_release(releases[i]);
		assert_int_equal(recognise(), RECOGNISE_OK);
		assert_null(layout_conflict(&vm.layout, &layout));
		assert_int_equal(vm.layout.gc64, layout.gc64);
		assert_int_equal(vm.layout.bytecode, layout.bytecode);
		assert_false(vm.bytecode_open);
		assert_false(vm.confirmed);
		assert_int_equal(vm.begin, SHOWN_BEGIN);
		assert_int_equal(vm.ffi_call_end, SHOWN_CALL_END);
		assert_int_equal(vm.machine, EM_X86_64);
		/* It is named after its row of g. */
		assert_memory_equal(verdict_on("global_State"), vm.layout.name, strlen(vm.layout.name));
	}
}

/* Of each part there is a verdict, those that do not fit behind those that do. */
static void a_part_that_does_not_fit_is_the_reason(void **state)
{
	static const char *const refused = "no known layout fits: the code contradicts them at ";
	static const struct {
		const char *name;
		size_t field;
	} parts[] = {
		{ "objects", offsetof(struct layout, L_status) },
		{ "C frame", offsetof(struct layout, CFRAME_L) },
		{ "global_State", offsetof(struct layout, g_hookmask) },
	};

	for (unsigned int wrong = 1; wrong < 8; wrong++) {
		size_t number = 0, said[3];

		begin(state);
		for (size_t i = 0; i < 3; i++)
			if (wrong >> i & 1)
				*(int32_t *)(void *)((char *)&shown.evidence.offsets + parts[i].field) = 3;
		assert_int_equal(recognise(), RECOGNISE_UNKNOWN_LAYOUT);
		assert_int_equal(vm.begin, SHOWN_BEGIN);
		assert_int_equal(vm.layout.L_base, 0); /* nothing is known of it */
		for (size_t i = 0; i < verdict_count; i++)
			for (size_t j = 0; j < 3; j++)
				if (strcmp(verdicts[i].probe, parts[j].name) == 0) {
					said[number++] = j;
					assert_int_equal(
						strncmp(verdicts[i].text, refused, strlen(refused)) == 0,
						wrong >> j & 1);
				}
		assert_int_equal(number, 3);
		for (size_t i = 1; i < 3; i++)
			assert_true((wrong >> said[i] & 1) >= (wrong >> said[i - 1] & 1));
		assert_string_equal(verdicts[verdict_count - 1].probe, parts[said[2]].name);
	}
}

static void of_several_states_that_fit_none_is_taken(void **state)
{
	struct layout_row row;
	char expected[64];
	size_t fitting = 0;

	(void)state;
	for (size_t i = 0; i < layout_field_count; i++)
		if (strcmp(layout_fields[i].structure, "g") == 0 ||
		    strcmp(layout_fields[i].structure, "GCstr") == 0)
			*layout_offset_in(&shown.evidence.offsets, &layout_fields[i]) = LAYOUT_UNKNOWN;
	for (size_t i = 0; i < layout_row_count(LAYOUT_GROUP_GLOBAL); i++) {
		layout_row_get(LAYOUT_GROUP_GLOBAL, i, &row);
		/* The code shows a number that BC_JMP has not had in 2.0. */
		fitting += (row.modes & LAYOUT_MODE(LAYOUT_X64_GC64)) != 0 && row.bytecode != BYTECODE_V20;
	}
	assert_true(fitting > 1);
	snprintf(expected, sizeof(expected), "%zu layouts fit the code; not guessing", fitting);
	expect_refusal(RECOGNISE_UNKNOWN_LAYOUT, "global_State", expected);
	assert_non_null(
		strstr(verdicts[verdict_count - 2].text, " or another that the code cannot tell apart"));
}

/* Where its first fields are is as in several releases. */
static void of_several_compilers_that_fit_none_is_taken(void **state)
{
	(void)state;
	shown.evidence.offsets.J_parent = shown.evidence.offsets.J_exitno = LAYOUT_UNKNOWN;
	shown.evidence.offsets.J_trace = shown.evidence.offsets.J_L = LAYOUT_UNKNOWN;
	assert_int_equal(recognise(), RECOGNISE_UNKNOWN_LAYOUT);
	assert_string_equal(verdicts[verdict_count - 1].probe, "jit_State");
	assert_non_null(strstr(verdicts[verdict_count - 1].text, " layouts fit the code; not guessing"));
	assert_true(strtoul(verdicts[verdict_count - 1].text, NULL, 10) > 1);
	/* They differ only in where the areas of machine code are, or only in the exit stubs. */
	show_release("debian-bookworm-luajit");
	shown.evidence.offsets.J_parent = shown.evidence.offsets.J_exitno = LAYOUT_UNKNOWN;
	shown.evidence.offsets.J_trace = LAYOUT_UNKNOWN;
	expect_refusal(RECOGNISE_UNKNOWN_LAYOUT, "jit_State", "2 layouts fit the code; not guessing");
	show_release("2.0.5-gc32");
	shown.evidence.op_jmp = LAYOUT_UNKNOWN;
	expect_refusal(RECOGNISE_UNKNOWN_LAYOUT, "jit_State", "3 layouts fit the code; not guessing");
	/* Or there is none like it. */
	begin(state);
	shown.evidence.offsets.J_parent += 4;
	assert_int_equal(recognise(), RECOGNISE_UNKNOWN_LAYOUT);
	assert_string_equal(verdicts[verdict_count - 1].probe, "jit_State");
	assert_non_null(strstr(verdicts[verdict_count - 1].text, "no known layout fits"));
}

static void traces_that_no_release_has_are_not_guessed_at(void **state)
{
	(void)state;
	shown.evidence.offsets.GCtrace_mcode = 3;
	expect_refusal(RECOGNISE_UNKNOWN_LAYOUT, "trace objects",
		       "no known layout fits: the code contradicts them at GCtrace.mcode");
}

static void a_build_without_the_compiler_has_no_fields_of_it(void **state)
{
	(void)state;
	shown.evidence.offsets.has_jit = false;
	expect_verdict("jit_State", "built without the JIT compiler: BC_JLOOP does nothing");
	assert_false(vm.layout.has_jit);
	assert_int_equal(vm.layout.J_trace, LAYOUT_ABSENT);
	assert_int_equal(vm.layout.GCtrace_ir, LAYOUT_ABSENT);
	assert_false(vm.traces_open);
	assert_string_equal(verdict_on("trace objects"), "");
}

static void what_the_code_does_not_show_of_bytecodes_stays_open(void **state)
{
	static const struct {
		int op_jmp, op_funcf;
		bool is_open;
		enum layout_bytecode bytecode;
		const char *verdict;
	} numbers[] = {
		{ 88, 89, false, BYTECODE_V21, "LuaJIT 2.1" },
		{ 88, 96, false, BYTECODE_V21_BITOPS, "LuaJIT 2.1 with bit operators" },
		{ 88, LAYOUT_UNKNOWN, true, BYTECODE_V21, "LuaJIT 2.1, to be confirmed by a state" },
		{ LAYOUT_UNKNOWN, LAYOUT_UNKNOWN, true, BYTECODE_V21,
		  "LuaJIT 2.1, to be confirmed by a state" },
		{ LAYOUT_UNKNOWN, 96, false, BYTECODE_V21_BITOPS, "LuaJIT 2.1 with bit operators" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		shown.evidence.op_jmp = numbers[i].op_jmp;
		shown.evidence.op_funcf = numbers[i].op_funcf;
		expect_verdict("bytecode", numbers[i].verdict);
		assert_int_equal(vm.layout.bytecode, numbers[i].bytecode);
		assert_int_equal(vm.bytecode_open, numbers[i].is_open);
	}
	shown.evidence.op_jmp = 88;
	shown.evidence.op_funcf = 85; /* as in 2.0, which has another BC_JMP */
	expect_refusal(RECOGNISE_UNKNOWN_LAYOUT, "bytecode",
		       "unknown numbering: BC_JMP is 88, BC_FUNCF is 85");
	assert_int_equal(vm.begin, SHOWN_BEGIN);
}

static void states_of_the_vm_are_numbered_as_in_the_release(void **state)
{
	static const uint32_t known[] = { 0, 0x3, 0xb };

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		shown.evidence.vmstates = known[i];
		expect_verdict("VM states", "");
		assert_int_equal(vm.layout.vmstates, VMSTATES_LUAJIT);
	}
	shown.evidence.vmstates = 0x1;
	expect_refusal(RECOGNISE_UNKNOWN_LAYOUT, "VM states",
		       "an unknown numbering: the code stores those of 0x1");
	shown.evidence.vmstates = 0x2f; /* Tarantool's */
	expect_refusal(RECOGNISE_UNKNOWN_LAYOUT, "VM states",
		       "an unknown numbering: the code stores those of 0x2f");
}

/* The first row of each table for a machine, with all that it has. */
static void show_first_rows(enum layout_mode mode)
{
	static const enum layout_group groups[] = { LAYOUT_GROUP_OBJECT, LAYOUT_GROUP_CFRAME,
						    LAYOUT_GROUP_GLOBAL, LAYOUT_GROUP_JIT };
	struct layout_row row;

	layout_clear(&layout);
	layout.gc64 = true;
	layout.has_jit = true;
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		size_t number = 0;

		do
			layout_row_get(groups[i], number++, &row);
		while ((row.modes & LAYOUT_MODE(mode)) == 0);
		layout_fill(&layout, &row.offsets);
		if (groups[i] == LAYOUT_GROUP_GLOBAL) {
			layout.bytecode = row.bytecode;
			snprintf(layout.name, sizeof(layout.name), "%s", row.name);
		}
	}
	show_code(&layout);
	shown.evidence.exit_error_code = row.mcofs;
}

static void arm64_has_rows_of_its_own(void **state)
{
	struct layout_row row;
	bool serves_x86_64 = false;

	(void)state;
	show_first_rows(LAYOUT_ARM64);
	shown.machine = EM_AARCH64;
	assert_int_equal(recognise(), RECOGNISE_OK);
	assert_string_equal(vm.layout.name, layout.name);
	assert_int_equal(vm.layout.CFRAME_size, layout.CFRAME_size);
	assert_int_equal(vm.machine, EM_AARCH64);
	/* It has a C frame that x86-64 has not. */
	for (size_t i = 0; i < layout_row_count(LAYOUT_GROUP_CFRAME); i++) {
		layout_row_get(LAYOUT_GROUP_CFRAME, i, &row);
		serves_x86_64 |= (row.modes & LAYOUT_MODE(LAYOUT_X64_GC64)) != 0 &&
				 row.offsets.CFRAME_size == layout.CFRAME_size;
	}
	assert_false(serves_x86_64);
}

/*---- A layout that is given ----*/

static enum recognise_status recognise_as(const struct layout *given, bool trusted)
{
	const struct inquiry inquiry = { .memory = &shown_memory, .evidence = note_verdict };

	verdict_count = 0;
	vm = (struct vm_code){ .begin = 1 };
	return recognise_vm_as(&inquiry, shown.machine, 0, given, trusted, &vm);
}

static void expect_refusal_of(const struct layout *given, const char *text)
{
	assert_int_equal(recognise_as(given, false), RECOGNISE_UNKNOWN_LAYOUT);
	assert_string_equal(verdicts[verdict_count - 1].probe, "layout given");
	assert_string_equal(verdicts[verdict_count - 1].text, text);
	assert_int_equal(vm.begin, SHOWN_BEGIN);
}

static void a_layout_given_has_the_numbers_of_bytecodes_that_the_code_shows(void **state)
{
	(void)state;
	assert_int_equal(recognise_as(&layout, false), RECOGNISE_OK);
	shown.evidence.op_jmp++;
	expect_refusal_of(&layout, "the code contradicts it at the numbers of bytecodes");
	shown.evidence.op_jmp = LAYOUT_UNKNOWN;
	assert_int_equal(recognise_as(&layout, false), RECOGNISE_OK);
	shown.evidence.op_funcf++;
	expect_refusal_of(&layout, "the code contradicts it at the numbers of bytecodes");
	shown.evidence.op_funcf = LAYOUT_UNKNOWN;
	assert_int_equal(recognise_as(&layout, false), RECOGNISE_OK);
}

/* What the code leaves open is decided: it is the one that was given. */
static void a_layout_given_leaves_nothing_open(void **state)
{
	(void)state;
	shown.evidence.op_jmp = shown.evidence.op_funcf = LAYOUT_UNKNOWN;
	assert_int_equal(recognise(), RECOGNISE_OK);
	assert_true(vm.bytecode_open);
	assert_int_equal(recognise_as(&layout, false), RECOGNISE_OK);
	assert_false(vm.bytecode_open);
	assert_false(vm.traces_open);
	assert_false(vm.confirmed);
	assert_memory_equal(&vm.layout, &layout, sizeof(layout));
	assert_int_equal(vm.begin, SHOWN_BEGIN);
	assert_int_equal(vm.ffi_call_end, SHOWN_CALL_END);
}

/* Only the layout is the user's, not where the code is. */
static void a_trusted_layout_needs_code_but_none_that_can_be_read(void **state)
{
	(void)state;
	shown.is_unreadable = true;
	assert_int_equal(recognise_as(&layout, false), RECOGNISE_UNREADABLE);
	assert_int_equal(recognise_as(&layout, true), RECOGNISE_OK);
	assert_memory_equal(&vm.layout, &layout, sizeof(layout));
	/* What it lacks cannot be had then. */
	layout.g_vmstate = LAYOUT_UNKNOWN;
	assert_int_equal(recognise_as(&layout, true), RECOGNISE_UNKNOWN_LAYOUT);
	assert_string_equal(verdicts[verdict_count - 1].text, "it lacks g.vmstate");
	shown.is_unreadable = false;
	assert_int_equal(recognise_as(&layout, true), RECOGNISE_OK);
	assert_true(vm.layout.g_vmstate > 0);
	shown.by_entry = shown.by_dispatch = VM_FIND_NONE;
	assert_int_equal(recognise_as(&layout, true), RECOGNISE_NO_VM);
	assert_int_equal(vm.begin, 1);
}

/* Code that fits no release is no obstacle, as long as it does not speak against the layout. */
static void a_layout_given_may_be_that_of_no_release(void **state)
{
	(void)state;
	shown.evidence.offsets.g_hookmask = layout.g_hookmask = 3;
	assert_int_equal(recognise(), RECOGNISE_UNKNOWN_LAYOUT);
	assert_int_equal(recognise_as(&layout, false), RECOGNISE_OK);
	assert_int_equal(vm.layout.g_hookmask, 3);
	layout.L_base = LAYOUT_ABSENT;
	shown.evidence.offsets.L_base = LAYOUT_UNKNOWN;
	expect_refusal_of(&layout, "L.base cannot be right");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, begin)
	const struct CMUnitTest tests[] = {
		TEST(an_image_that_is_none_is_said_to_be_none),
		TEST(an_image_is_for_the_targets_machine),
		TEST(the_vm_is_looked_for_by_its_dispatches_if_it_has_no_entry),
		TEST(where_the_code_is_stays_known_if_it_tells_nothing),
		TEST(the_mode_is_said),
		TEST(the_layout_of_a_release_is_recognised),
		TEST(a_part_that_does_not_fit_is_the_reason),
		TEST(of_several_states_that_fit_none_is_taken),
		TEST(of_several_compilers_that_fit_none_is_taken),
		TEST(traces_that_no_release_has_are_not_guessed_at),
		TEST(a_build_without_the_compiler_has_no_fields_of_it),
		TEST(what_the_code_does_not_show_of_bytecodes_stays_open),
		TEST(states_of_the_vm_are_numbered_as_in_the_release),
		TEST(arm64_has_rows_of_its_own),
		TEST(a_layout_given_has_the_numbers_of_bytecodes_that_the_code_shows),
		TEST(a_layout_given_leaves_nothing_open),
		TEST(a_trusted_layout_needs_code_but_none_that_can_be_read),
		TEST(a_layout_given_may_be_that_of_no_release),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Which frames of a stack a Lua developer sees. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "unwind/names/fold.h"

enum { FRAMES_MAX = 16 };

/* Letters, root first: what each kind of frame is. */
static uint8_t kind_of(char letter)
{
	static const struct {
		char letter;
		enum fold_kind kind;
	} letters[] = {
		{ '?', FOLD_KEPT },     { 't', FOLD_LEFT_OUT },   { 'L', FOLD_LUA },
		{ 'B', FOLD_BUILTIN },  { 'C', FOLD_C_FUNCTION }, { 'O', FOLD_OWN_FUNCTION },
		{ 'v', FOLD_VM },       { 'f', FOLD_FFI_CALL },   { 'j', FOLD_LUAJIT },
		{ 'x', FOLD_NAMELESS }, { 'l', FOLD_LIBC },       { 'n', FOLD_NATIVE },
	};

	for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++)
		if (letters[i].letter == letter)
			return (uint8_t)letters[i].kind;
	fail_msg("no kind of frame is '%c'", letter);
	return 0;
}

/* Hidden frames become dots, those that are part of a [vm] frame V. */
static void expect(const char *stack, const char *shown)
{
	size_t count = strlen(stack);
	uint8_t kinds[FRAMES_MAX], decided[FRAMES_MAX];
	char text[FRAMES_MAX + 1] = "";

	assert_true(count <= FRAMES_MAX);
	for (size_t i = 0; i < count; i++)
		kinds[count - 1 - i] = kind_of(stack[i]);
	fold(kinds, count, decided);
	for (size_t i = 0; i < count; i++) {
		uint8_t one = decided[count - 1 - i];

		text[i] = '.';
		if (one == FOLD_SHOWN)
			text[i] = stack[i];
		else if (one == FOLD_AS_VM)
			text[i] = 'V';
	}
	assert_string_equal(text, shown);
}

static void the_luajit_program_itself_is_hidden(void **state)
{
	(void)state;
	expect("jlljjOvjLLv", "........LL.");
}

static void builtins_and_c_functions_are_leaves(void **state)
{
	(void)state;
	expect("nLBvjl", "nLB...");
	expect("nLCvnnl", "nLC....");
	/* Those that call back into Lua as well. */
	expect("nLBvjvLv", "nLB...L.");
}

static void what_luajit_does_for_a_lua_function_is_one_vm_frame(void **state)
{
	(void)state;
	expect("nLvjjl", "nL.V..");
}

static void code_called_through_the_ffi_stands_on_its_lua_function(void **state)
{
	(void)state;
	expect("nLBvjjfnl", "nL.....nl");     /* interpreted */
	expect("nLtnl", "nL.nl");             /* compiled */
	expect("nLBvjj", "nLB...");           /* on the way there */
	expect("nLBvjfnjvLv", "nL....n..L."); /* and back into Lua */
}

static void an_event_loop_outside_of_lua_is_shown(void **state)
{
	(void)state;
	expect("nllnnjvLv", "...nn..L.");
	expect("nllnnl", "...nnl"); /* idle */
	expect("llnLv", "..nL.");   /* in a thread */
}

static void a_function_as_the_leaf_was_called_by_luajit(void **state)
{
	(void)state;
	expect("nllnjL", "...n.L");
	expect("nllnjB", "...n.B");
	expect("nllnjC", "...n.C");
	expect("nllnjO", "...n..");
}

static void luajit_alone_is_one_vm_frame(void **state)
{
	(void)state;
	expect("nllnjj", "...nVV");
}

static void nameless_code_belongs_to_the_program_outside_of_lua_only(void **state)
{
	(void)state;
	expect("nllxjvLvx", "...x..L.V");
}

static void the_c_library_at_the_root_is_shown_where_it_starts_nothing(void **state)
{
	(void)state;
	expect("l", "l");
	expect("ll", "ll");
	expect("nl", "nl");
	expect("Ll", "Ll");
	expect("?l", "?l");
	expect("", "");
}

/* Of a stack that is cut short, nobody started what is outermost. */
static void a_root_that_nobody_started_is_shown(void **state)
{
	(void)state;
	expect("Lln", "Lln");
	expect("Bln", "B..");
	expect("Cln", "C..");
	expect("Oln", ".ln");
	expect("?ln", "?ln");
	expect("nnlL", "nnlL");
	expect("nln", "..n"); /* but for the program's start */
}

static void lost_frames_are_shown(void **state)
{
	(void)state;
	expect("?LB?v", "?LB?.");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_luajit_program_itself_is_hidden),
		cmocka_unit_test(builtins_and_c_functions_are_leaves),
		cmocka_unit_test(what_luajit_does_for_a_lua_function_is_one_vm_frame),
		cmocka_unit_test(code_called_through_the_ffi_stands_on_its_lua_function),
		cmocka_unit_test(an_event_loop_outside_of_lua_is_shown),
		cmocka_unit_test(a_function_as_the_leaf_was_called_by_luajit),
		cmocka_unit_test(a_root_that_nobody_started_is_shown),
		cmocka_unit_test(luajit_alone_is_one_vm_frame),
		cmocka_unit_test(nameless_code_belongs_to_the_program_outside_of_lua_only),
		cmocka_unit_test(the_c_library_at_the_root_is_shown_where_it_starts_nothing),
		cmocka_unit_test(lost_frames_are_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

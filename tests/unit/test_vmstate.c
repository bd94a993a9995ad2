/* SPDX-License-Identifier: MIT */
/* States of the VM mean the same, however a build numbers them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "luajit-layouts/vmstate.h"

static void luajits_own_numbers_stay(void **state)
{
	const struct layout layout = { .vmstates = VMSTATES_LUAJIT };

	(void)state;
	for (int32_t stored = VMST_LOWEST; stored < 10; stored++)
		assert_int_equal(vmstate_of(&layout, stored), stored);
}

/* INTERP, LFUNC, FFUNC, CFUNC, GC, EXIT, RECORD, OPT, ASM */
static void tarantools_three_kinds_of_functions_are_interpreted_or_c(void **state)
{
	const struct layout layout = { .vmstates = VMSTATES_TARANTOOL };

	(void)state;
	assert_int_equal(vmstate_of(&layout, ~0), VMST_INTERP);
	assert_int_equal(vmstate_of(&layout, ~1), VMST_INTERP);
	assert_int_equal(vmstate_of(&layout, ~2), VMST_INTERP);
	assert_int_equal(vmstate_of(&layout, ~3), VMST_C);
	assert_int_equal(vmstate_of(&layout, ~4), VMST_GC);
	assert_int_equal(vmstate_of(&layout, ~5), VMST_EXIT);
	assert_int_equal(vmstate_of(&layout, ~8), VMST_ASM);
	assert_int_equal(vmstate_of(&layout, ~9), ~9);
	assert_int_equal(vmstate_of(&layout, 3), 3);
	assert_int_equal(vmstate_of(&layout, 0), 0);
	assert_int_equal(vmstate_of(&layout, INT32_MIN), INT32_MIN);
}

static void the_code_tells_the_numbering(void **state)
{
	static const struct {
		uint32_t stored;
		enum layout_vmstates vmstates;
	} known[] = {
		{ 0x3, VMSTATES_LUAJIT }, /* without the JIT compiler */
		{ 0xb, VMSTATES_LUAJIT },
		{ 0xf, VMSTATES_TARANTOOL }, /* without the JIT compiler */
		{ 0x2f, VMSTATES_TARANTOOL },
	};
	enum layout_vmstates found;

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		assert_true(vmstate_numbering(known[i].stored, &found));
		assert_int_equal(found, known[i].vmstates);
	}
	assert_false(vmstate_numbering(0x1, &found));
	assert_false(vmstate_numbering(0x7, &found));
	assert_false(vmstate_numbering(0x1f, &found));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(luajits_own_numbers_stay),
		cmocka_unit_test(tarantools_three_kinds_of_functions_are_interpreted_or_c),
		cmocka_unit_test(the_code_tells_the_numbering),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

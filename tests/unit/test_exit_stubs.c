/* SPDX-License-Identifier: MIT */
/* Numbers of exits, by the address that a jump out of a trace leads to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "unwind/jit/exit_stubs.h"

enum {
	MCODE = 0x10000,
	SZMCODE = 64,
	NOP = (int)0xd503201f,
	STORE_LR = (int)0xf90003fe,
	CALL = (int)0x94001000,
	LOAD_LR = (int)0xf947fade,
	CALL_LR = (int)0xd63f03c0,
	MOVZ_W0 = (int)0x528000e0,
	CALL_BACK = (int)0x97fffffd,
};

static const struct trace trace = { .mcode = MCODE, .szmcode = SZMCODE };

static int number_at(const int *words, size_t count, size_t word)
{
	uint8_t bytes[64];

	memcpy(bytes, words, count * sizeof(*words));
	return exit_stub_number(&trace, bytes, count * sizeof(*words), MCODE + SZMCODE + word * 4);
}

static void test_own_stubs(void **state)
{
	static const int words[] = { STORE_LR, CALL, MOVZ_W0, CALL_BACK, CALL_BACK };

	(void)state;
	assert_int_equal(number_at(words, 5, 3), 0);
	assert_int_equal(number_at(words, 5, 4), 1);
	assert_int_equal(number_at(words, 5, 2), -1);
	assert_int_equal(number_at(words, 5, 5), -1);
}

static void test_own_stubs_behind_fillers(void **state)
{
	static const int words[] = { NOP, NOP, STORE_LR, CALL, MOVZ_W0, CALL_BACK, CALL_BACK };

	(void)state;
	assert_int_equal(number_at(words, 7, 5), 0);
	assert_int_equal(number_at(words, 7, 6), 1);
}

/* Where vm_exit_handler is out of the reach of a call. */
static void test_own_stubs_by_a_loaded_address(void **state)
{
	static const int words[] = { STORE_LR, LOAD_LR, CALL_LR, MOVZ_W0, CALL_BACK, CALL_BACK };

	(void)state;
	assert_int_equal(number_at(words, 6, 4), 0);
	assert_int_equal(number_at(words, 6, 5), 1);
}

static void test_what_is_no_stub(void **state)
{
	static const int words[] = { NOP, CALL, MOVZ_W0, CALL_BACK }, cut[] = { NOP, STORE_LR };

	(void)state;
	assert_int_equal(number_at(words, 4, 3), -1);
	assert_int_equal(number_at(cut, 2, 1), -1);
	assert_int_equal(number_at(words, 0, 0), -1);
}

static void test_groups(void **state)
{
	const uint64_t groups[EXIT_GROUPS] = { 0x5000, 0, 0x7000 };

	(void)state;
	assert_int_equal(exit_group_number(groups, 0x5000), 0);
	assert_int_equal(exit_group_number(groups, 0x5004), 1);
	assert_int_equal(exit_group_number(groups, 0x7000), 64);
	assert_int_equal(exit_group_number(groups, 0x5000 + 32 * 4), -1);
	assert_true(exit_group_contains(groups, 0x5000 + 32 * 4 + 4));
	assert_int_equal(exit_group_number(groups, 0), -1);
	assert_false(exit_group_contains(groups, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_stubs),
		cmocka_unit_test(test_own_stubs_behind_fillers),
		cmocka_unit_test(test_own_stubs_by_a_loaded_address),
		cmocka_unit_test(test_what_is_no_stub),
		cmocka_unit_test(test_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

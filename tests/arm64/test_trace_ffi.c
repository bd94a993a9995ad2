/* SPDX-License-Identifier: MIT */
/* Calls of traces on arm64: of which function, or by a register. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "unwind/trace/trace_ffi.h"

enum { PC = 0x10000000, NOP = 0xd503201f };

/* What code that ends with these instructions at PC has called. */
static enum trace_callee callee_of(uint32_t before, uint32_t last, uint64_t *ret_address)
{
	const uint32_t words[] = { before, last };

	*ret_address = 0;
	return trace_callee_before((const uint8_t *)words, sizeof(words), PC, ret_address);
}

static void a_direct_call_tells_its_function(void **state)
{
	static const struct {
		uint32_t word;
		int64_t offset; /* from the call on */
	} calls[] = {
		{ 0x94000001, 4 },          /* bl .+4 */
		{ 0x94000400, 0x1000 },     /* bl .+0x1000 */
		{ 0x95ffffff, 0x7fffffc },  /* the farthest */
		{ 0x97ffffff, -4 },         /* bl .-4 */
		{ 0x97fffc00, -0x1000 },    /* bl .-0x1000 */
		{ 0x96000000, -0x8000000 }, /* the farthest */
	};
	uint64_t address;

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		assert_int_equal(callee_of(NOP, calls[i].word, &address), TRACE_CALLEE_CONSTANT);
		assert_int_equal(address, (uint64_t)(PC - 4 + calls[i].offset));
	}
}

static void a_call_by_a_register_may_be_of_any_function(void **state)
{
	uint64_t address;

	(void)state;
	assert_int_equal(callee_of(NOP, 0xd63f0100, &address), TRACE_CALLEE_VARIABLE); /* blr x8 */
	assert_int_equal(callee_of(NOP, 0xd63f0380, &address), TRACE_CALLEE_VARIABLE); /* blr x28 */
}

static void all_else_is_unknown(void **state)
{
	static const uint32_t others[] = {
		NOP,        0xd61f0100, /* br x8 */
		0xd65f03c0,             /* ret */
		0x14000001,             /* b .+4 */
		0xd73f0900,             /* blraa x8, x0 */
	};
	const uint32_t call = 0x94000001;
	uint64_t address;

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_int_equal(callee_of(call, others[i], &address), TRACE_CALLEE_UNKNOWN);
	for (size_t length = 0; length < sizeof(call); length++)
		assert_int_equal(trace_callee_before((const uint8_t *)&call, length, PC, &address),
				 TRACE_CALLEE_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_direct_call_tells_its_function),
		cmocka_unit_test(a_call_by_a_register_may_be_of_any_function),
		cmocka_unit_test(all_else_is_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

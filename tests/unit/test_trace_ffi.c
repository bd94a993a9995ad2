/* SPDX-License-Identifier: MIT */
/* Calls of traces on x86-64: of LuaJIT's own functions, or through the FFI. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/made_up_trace.h"
#include "unwind/trace/trace_ffi.h"

enum {
	CODE_BYTES = 64,
	CALL_END = 32,
	CONSTANT = TRACE_REF_BIAS - 8,
	ARGUMENTS = TRACE_REF_BASE + 2,
	FUNCTION = TRACE_REF_BASE + 3,
	CALL = TRACE_REF_BASE + 4,
	NEAR = MADE_UP_MCODE + CALL_END - 0x10000, /* "call" of it ends at CALL_END */
};

static const uint64_t far = 0x7f0123456789;

static struct made_up_trace made_up;
static uint8_t code[CODE_BYTES];

/* The code ends with these bytes at CALL_END. */
static void set_call(const char *bytes, size_t length)
{
	memset(code, 0x90, sizeof(code));
	memcpy(code + CALL_END - length, bytes, length);
}

#define SET_CALL(literal) set_call((literal), sizeof(literal) - 1)

static bool calls(void)
{
	return trace_calls_by_ffi(&made_up.trace, &made_up.layout, code, MADE_UP_MCODE + CALL_END);
}

static int begin(void **state)
{
	(void)state;
	made_up_trace_begin(&made_up, true);
	made_up.trace.szmcode = CODE_BYTES;
	return 0;
}

static void call_constant(uint64_t address)
{
	put_wide(&made_up, CONSTANT, IR_KINT64, IRT_INT, address);
	put_ir(&made_up, CALL, IR_CALLXS, IRT_INT, ARGUMENTS, CONSTANT);
}

static void a_trace_without_such_calls_calls_luajit(void **state)
{
	(void)state;
	SET_CALL("\xff\xd3"); /* call rbx */
	assert_false(calls());
}

static void a_constant_function_is_told_by_its_address(void **state)
{
	(void)state;
	call_constant(NEAR);
	SET_CALL("\xe8\x00\x00\xff\xff"); /* call .-0x10000 */
	assert_true(calls());
	SET_CALL("\xe8\x00\x10\xff\xff");
	assert_false(calls());
	call_constant(far);
	assert_false(calls());
}

/* asm_callx() avoids what emit_call() does for LuaJIT's own functions. */
static void a_constant_function_that_is_far_is_called_by_a_register_that_calls_keep(void **state)
{
	(void)state;
	call_constant(far);
	SET_CALL("\x48\xbb\x89\x67\x45\x23\x01\x7f\x00\x00\xff\xd3"); /* mov rbx, far; call rbx */
	assert_true(calls());
	SET_CALL("\x48\xb8\x89\x67\x45\x23\x01\x7f\x00\x00\xff\xd0"); /* mov rax, far; call rax */
	assert_false(calls());
}

static void any_other_function_is_called_by_such_a_register_too(void **state)
{
	static const char *const kept[] = { "\x90\xff\xd3", "\x90\xff\xd5", "\x41\xff\xd4",
					    "\x41\xff\xd5", "\x41\xff\xd6", "\x41\xff\xd7" };
	static const char *const scratch[] = { "\x90\xff\xd0", "\x90\xff\xd1", "\x90\xff\xd2", "\x90\xff\xd4",
					       "\x90\xff\xd6", "\x90\xff\xd7", "\x90\xff\xe3" };

	(void)state;
	put_ir(&made_up, FUNCTION, IR_FLOAD, IRT_INT, 0, 0);
	put_ir(&made_up, CALL, IR_CALLXS, IRT_INT, ARGUMENTS, FUNCTION);
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		set_call(kept[i], 3);
		assert_true(calls());
	}
	/* Without the prefix, or of a jump, they are others. */
	for (size_t i = 0; i < sizeof(scratch) / sizeof(scratch[0]); i++) {
		set_call(scratch[i], 3);
		assert_false(calls());
	}
	SET_CALL("\xe8\x00\x10\xff\xff");
	assert_false(calls());
}

static void the_type_of_a_function_may_stand_beside_it(void **state)
{
	(void)state;
	call_constant(NEAR);
	put_ir(&made_up, FUNCTION, IR_CARG, IRT_NIL, CONSTANT, 0);
	put_ir(&made_up, CALL, IR_CALLXS, IRT_INT, ARGUMENTS, FUNCTION);
	SET_CALL("\xe8\x00\x00\xff\xff");
	assert_true(calls());
	SET_CALL("\xe8\x00\x10\xff\xff");
	assert_false(calls());
}

static void what_is_unknown_is_no_such_call(void **state)
{
	struct trace unread = made_up.trace;

	(void)state;
	call_constant(NEAR);
	SET_CALL("\xe8\x00\x00\xff\xff");
	assert_false(trace_calls_by_ffi(&made_up.trace, &made_up.layout, NULL, MADE_UP_MCODE + CALL_END));
	unread.bytes = NULL;
	assert_false(trace_calls_by_ffi(&unread, &made_up.layout, code, MADE_UP_MCODE + CALL_END));
	/* No call ends there, or not in this code. */
	assert_false(trace_calls_by_ffi(&made_up.trace, &made_up.layout, code, MADE_UP_MCODE));
	assert_false(
		trace_calls_by_ffi(&made_up.trace, &made_up.layout, code, MADE_UP_MCODE + CODE_BYTES + 1));
	/* Either call .-0x2c00f000, or call rbx behind other code. */
	SET_CALL("\xe8\x00\x10\xff\xd3");
	assert_false(calls());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_trace_without_such_calls_calls_luajit, begin),
		cmocka_unit_test_setup(a_constant_function_is_told_by_its_address, begin),
		cmocka_unit_test_setup(
			a_constant_function_that_is_far_is_called_by_a_register_that_calls_keep, begin),
		cmocka_unit_test_setup(any_other_function_is_called_by_such_a_register_too, begin),
		cmocka_unit_test_setup(the_type_of_a_function_may_stand_beside_it, begin),
		cmocka_unit_test_setup(what_is_unknown_is_no_such_call, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Which functions leave the stack, and the registers that calls keep, as they find them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unwind/symbols/leaf_function.h"

#define IS_LEAF(literal) leaf_function((const uint8_t *)(literal), sizeof(literal) - 1)

static void a_function_that_uses_no_stack_is_a_leaf(void **state)
{
	(void)state;
	assert_true(IS_LEAF("\xc3"));                         /* ret */
	assert_true(IS_LEAF("\x90\x48\x89\xf8\xc3"));         /* nop; mov rax, rdi; ret */
	assert_true(IS_LEAF("\x48\x89\x44\x24\xf8\xc3"));     /* mov [rsp-8], rax; ret */
	assert_true(IS_LEAF("\x74\x01\xc3\x31\xc0\xc3"));     /* je 1f; ret; 1: xor eax, eax; ret */
	assert_true(IS_LEAF("\xc3\x0f\x1f\x44\x00\x00\x90")); /* ret; nop; nop */
	assert_true(IS_LEAF("\x48\x8b\x03\xc3"));             /* mov rax, [rbx]; ret */
}

static void what_changes_a_kept_register_is_none(void **state)
{
	(void)state;
	assert_false(IS_LEAF("\x50\x58\xc3"));             /* push rax; pop rax; ret */
	assert_false(IS_LEAF("\x48\x83\xec\x08\xc3"));     /* sub rsp, 8; ret */
	assert_false(IS_LEAF("\x31\xdb\xc3"));             /* xor ebx, ebx; ret */
	assert_false(IS_LEAF("\xb7\x01\xc3"));             /* mov bh, 1; ret */
	assert_false(IS_LEAF("\x48\x89\xfd\xc3"));         /* mov rbp, rdi; ret */
	assert_false(IS_LEAF("\x49\x89\xfc\xc3"));         /* mov r12, rdi; ret */
	assert_false(IS_LEAF("\x49\x89\xff\xc3"));         /* mov r15, rdi; ret */
	assert_false(IS_LEAF("\xe8\0\0\0\0\xc3"));         /* call +0; ret */
	assert_false(IS_LEAF("\xc3\x48\x83\xc4\x08\xc3")); /* ret; add rsp, 8; ret */
	assert_true(IS_LEAF("\x49\x89\xfb\xc3"));          /* mov r11, rdi; ret */
}

static void all_of_it_must_be_code_that_returns(void **state)
{
	(void)state;
	assert_false(IS_LEAF(""));
	assert_false(IS_LEAF("\x90\x90"));     /* nop; nop */
	assert_false(IS_LEAF("\xeb\xfe"));     /* jmp itself */
	assert_false(IS_LEAF("\xc3\x06"));     /* ret; an invalid byte */
	assert_false(IS_LEAF("\x06\xc3"));     /* an invalid byte; ret */
	assert_false(IS_LEAF("\xc3\x48\x89")); /* ret; a part of an instruction */
}

static void a_function_has_a_largest_size(void **state)
{
	enum { BYTES_MAX = 64 << 10 };
	uint8_t *code = malloc(BYTES_MAX + 1);

	(void)state;
	assert_non_null(code);
	memset(code, 0xc3, BYTES_MAX + 1);
	assert_true(leaf_function(code, BYTES_MAX));
	assert_false(leaf_function(code, BYTES_MAX + 1));
	free(code);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_that_uses_no_stack_is_a_leaf),
		cmocka_unit_test(what_changes_a_kept_register_is_none),
		cmocka_unit_test(all_of_it_must_be_code_that_returns),
		cmocka_unit_test(a_function_has_a_largest_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

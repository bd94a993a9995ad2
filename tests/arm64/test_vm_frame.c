/* SPDX-License-Identifier: MIT */
/* What arm64 code around an address says of PC, in the VM's own words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/made_up_memory.h"
#include "unwind/vm/vm_frame.h"

enum {
	WORD = 4,
	VM_WORDS = 64,
	AT = MADE_UP_AT + 0x100,
	FETCH = (int)0xb84046b0,          /* ldr w16, [x21], #4 */
	BRANCH = (int)0xd1408395,         /* sub x21, x28, #0x20, lsl #12 */
	BRANCH_OF_LOOP = (int)0xd1408115, /* sub x21, x8, #0x20, lsl #12: BC_IITERL */
	CHOICE = (int)0x9a95d395,         /* csel x21, x28, x21, le: BC_IFORL */
	STORE = (int)0xf81f8120,          /* str x0, [x9, #-8] */
	JUMP = 0x17fffff0,                /* b .-64 */
	COMPARE = 0x1e602020,             /* fcmp d1, d0 */
	STORE_BASE = (int)0xf90012f3,     /* str x19, [x23, #32] */
	STORE_CALLER = (int)0xf90012f1,   /* str x17, [x23, #32] */
	CALL_AT = (int)0x94000000,        /* bl ., and so many words on */
	CALL = CALL_AT + 2,
	SAVEREGS = (int)0xd10343ff,     /* sub sp, sp, #208 */
	SAVEREGS_OLD = (int)0xa9b37bfd, /* stp x29, x30, [sp, #-208]! */
	BTI = (int)0xd503245f,          /* bti c */
};

static struct memory *memory;

static int begin(void **state)
{
	(void)state;
	memory = made_up_memory_begin();
	return 0;
}

static void put_words(const uint32_t *words, size_t count)
{
	put_bytes(AT, words, count * sizeof(*words));
}

#define CODE(...) \
	put_words((const uint32_t[]){ __VA_ARGS__ }, sizeof((const uint32_t[]){ __VA_ARGS__ }) / WORD)

/* Before the instruction of this number? */
static bool is_before_next(unsigned int number)
{
	const struct layout layout = { .gc64 = true };

	return vm_is_before_next(&layout, memory, AT + number * WORD);
}

static void a_branch_is_told_until_the_fetch(void **state)
{
	static const uint32_t branches[] = { BRANCH, BRANCH_OF_LOOP, CHOICE };

	(void)state;
	for (size_t i = 0; i < sizeof(branches) / WORD; i++) {
		CODE(branches[i], STORE, FETCH, COMPARE);
		assert_false(is_before_next(0));
		assert_true(is_before_next(1));
		assert_true(is_before_next(2)); /* the fetch itself */
		assert_false(is_before_next(3));
		/* What lies behind a jump to the fetch is something else. */
		CODE(branches[i], JUMP, COMPARE);
		assert_true(is_before_next(1));
		assert_false(is_before_next(2));
	}
}

static void other_registers_are_no_pc(void **state)
{
	static const uint32_t others[] = {
		0xd1408394, /* sub x20, x28, #0x20, lsl #12 */
		0xd1404395, /* sub x21, x28, #0x10, lsl #12 */
		0x91408395, /* add x21, x28, #0x20, lsl #12 */
		0x9a95d394, /* csel x20, x28, x21, le */
		0x9a94d395, /* csel x21, x28, x20, le */
		0x9a95d795, /* csinc x21, x28, x21, le */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(others) / WORD; i++) {
		CODE(others[i], STORE, FETCH);
		assert_false(is_before_next(1));
		assert_true(is_before_next(2));
	}
}

static void a_call_may_come_after_a_branch(void **state)
{
	const uint32_t call = 0x97fffff0; /* bl .-64 */

	(void)state;
	CODE(BRANCH, STORE, call, STORE, FETCH);
	assert_true(vm_jumps_before_call(memory, AT + 3 * WORD));
	CODE(FETCH, STORE, call, STORE);
	assert_false(vm_jumps_before_call(memory, AT + 3 * WORD));
}

struct rule {
	bool stores_base, moves_base;
};

/* What is known of BASE at a call that returns to the instruction of this number. */
static struct rule rule_of(unsigned int number, bool old)
{
	const struct vm_code vm = {
		.begin = AT,
		.end = AT + VM_WORDS * WORD,
		.layout = { .gc64 = true, .L_base = 32, .CFRAME_PREV = old ? 8 : 0 },
	};

	return (struct rule){
		.stores_base = vm_call_stores_base(&vm.layout, memory, &vm, AT + number * WORD),
		.moves_base = vm_call_moves_base(&vm.layout, memory, &vm, AT + number * WORD),
	};
}

static void assert_rule(unsigned int number, bool old, bool stores_base, bool moves_base)
{
	const struct rule rule = rule_of(number, old);

	assert_int_equal(rule.stores_base, stores_base);
	assert_int_equal(rule.moves_base, moves_base);
}

static void a_call_may_store_base_before_it(void **state)
{
	(void)state;
	CODE(STORE_BASE, COMPARE, CALL, COMPARE, COMPARE);
	assert_rule(3, false, true, false);
	CODE(STORE_CALLER, COMPARE, CALL, COMPARE, COMPARE);
	assert_rule(3, false, true, true);
	CODE(STORE_BASE, JUMP, CALL, COMPARE, COMPARE);
	assert_rule(3, false, false, false);
}

/* coroutine.resume() stores BASE too far above to be looked for, and then moves it. */
static void a_resume_moves_base(void **state)
{
	(void)state;
	CODE(JUMP, CALL, COMPARE, SAVEREGS, COMPARE);
	assert_rule(2, false, true, true);
	assert_rule(2, true, false, false);
	CODE(JUMP, CALL, COMPARE, SAVEREGS_OLD, COMPARE);
	assert_rule(2, true, true, true);
	assert_rule(2, false, false, false);
	CODE(JUMP, CALL, COMPARE, BTI, SAVEREGS);
	assert_rule(2, false, true, true);
	CODE(JUMP, CALL, COMPARE, COMPARE, SAVEREGS);
	assert_rule(2, false, false, false);
}

/* C functions outside of the VM begin as lj_vm_resume() does if their frames are as large. */
static void a_call_of_a_function_in_c_moves_no_base(void **state)
{
	static const uint32_t begins[] = { SAVEREGS, SAVEREGS_OLD };
	const uint32_t call_behind = CALL_AT + VM_WORDS - 1; /* from word 1 to VM_WORDS */

	(void)state;
	for (int old = false; old <= true; old++) {
		CODE(JUMP, call_behind, COMPARE);
		put_bytes(AT + VM_WORDS * WORD, &begins[old], WORD);
		assert_rule(2, old, false, false);
		/* The last word of the VM */
		CODE(JUMP, call_behind - 1, COMPARE);
		put_bytes(AT + (VM_WORDS - 1) * WORD, &begins[old], WORD);
		assert_rule(2, old, true, true);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_branch_is_told_until_the_fetch, begin),
		cmocka_unit_test_setup(other_registers_are_no_pc, begin),
		cmocka_unit_test_setup(a_call_may_come_after_a_branch, begin),
		cmocka_unit_test_setup(a_call_may_store_base_before_it, begin),
		cmocka_unit_test_setup(a_resume_moves_base, begin),
		cmocka_unit_test_setup(a_call_of_a_function_in_c_moves_no_base, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

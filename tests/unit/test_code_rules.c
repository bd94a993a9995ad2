/* SPDX-License-Identifier: MIT */
/* Frames of code without unwind tables, at each instruction of small functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/range_bytes.h"
#include "unwind/native/code_rules.h"

enum { ADDRESS = 0x400000, CODE_MAX = 256, RSP = REGISTER_NUMBER_SP, RBX = 3, RBP = 6 };

/* Code at ADDRESS, then what stops it, and nothing else. */
struct code {
	struct memory memory; /* must be first */
	uint8_t bytes[CODE_MAX];
};

struct fixture {
	struct code code;
	struct image *image;
	struct code_rules *rules;
};

static void read_code(struct memory *memory, struct memory_range *ranges, size_t count)
{
	const struct code *code = (const struct code *)memory;

	range_bytes(ranges, count, ADDRESS, code->bytes, CODE_MAX);
}

static int set_up(void **state)
{
	static struct fixture fixture;

	fixture.code.memory.read_ranges = read_code;
	fixture.image = image_new(&fixture.code.memory);
	assert_non_null(fixture.image);
	fixture.rules = code_rules_new(fixture.image);
	assert_non_null(fixture.rules);
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	code_rules_free(fixture->rules);
	image_free(fixture->image);
	return 0;
}

static void set_code(struct fixture *fixture, const char *bytes, size_t length)
{
	const uint8_t int3 = 0xcc;

	assert_true(length <= CODE_MAX);
	memset(fixture->code.bytes, int3, CODE_MAX);
	memcpy(fixture->code.bytes, bytes, length);
}

#define SET_CODE(fixture, literal) set_code((fixture), (literal), sizeof(literal) - 1)

static bool find(struct fixture *fixture, size_t at, struct frame_rules *ret_rules)
{
	return code_rules_find(fixture->rules, &fixture->code.memory, ADDRESS + at, ret_rules);
}

/* Reckoned from what a register holds. */
static void expect(const struct frame_rules *rules, const struct frame_rule *rule, enum frame_rule_kind kind,
		   unsigned int number, int64_t offset)
{
	assert_int_equal(rule->kind, kind);
	assert_int_equal(rules->ops[rule->first].number, number);
	assert_int_equal((int64_t)rules->ops[rule->first].number2, offset);
}

/* The stack pointer is so far from the return address at an instruction. */
static void expect_distance(struct fixture *fixture, size_t at, int64_t distance)
{
	struct frame_rules rules;

	assert_true(find(fixture, at, &rules));
	assert_true(frame_rules_valid(&rules));
	expect(&rules, &rules.cfa, FRAME_RULE_VALUE, RSP, distance + 8);
	expect(&rules, &rules.registers[REGISTER_NUMBER_PC], FRAME_RULE_SAVED, RSP, distance);
}

static void what_was_pushed_is_restored(void **state)
{
	struct fixture *fixture = *state;
	struct frame_rules rules;

	/* push rbp; push rbx; sub rsp, 24; inc ebx; jne -2; add rsp, 24; pop rbx; pop rbp; ret */
	SET_CODE(fixture, "\x55\x53\x48\x83\xec\x18\xff\xc3\x75\xfc\x48\x83\xc4\x18\x5b\x5d\xc3");
	expect_distance(fixture, 0, 0);
	expect_distance(fixture, 1, 8);
	expect_distance(fixture, 2, 16);
	expect_distance(fixture, 6, 40);
	expect_distance(fixture, 8, 40);
	expect_distance(fixture, 14, 16);
	expect_distance(fixture, 16, 0);
	assert_true(find(fixture, 6, &rules));
	expect(&rules, &rules.registers[RBX], FRAME_RULE_SAVED, RSP, 24);
	expect(&rules, &rules.registers[RBP], FRAME_RULE_SAVED, RSP, 32);
	/* It has pushed what it still holds. */
	assert_true(find(fixture, 0, &rules));
	expect(&rules, &rules.registers[RBX], FRAME_RULE_VALUE, RBX, 0);
}

static void a_frame_may_be_found_by_its_pointer(void **state)
{
	struct fixture *fixture = *state;
	struct frame_rules rules;

	/* push rbp; mov rbp, sp; push rbx; and rsp, -64; nop; lea rsp, [rbp-8]; pop rbx; pop rbp; ret */
	SET_CODE(fixture, "\x55\x48\x89\xe5\x53\x48\x83\xe4\xc0\x90\x48\x8d\x65\xf8\x5b\x5d\xc3");
	assert_true(find(fixture, 9, &rules));
	expect(&rules, &rules.cfa, FRAME_RULE_VALUE, RBP, 16);
	expect(&rules, &rules.registers[RBX], FRAME_RULE_SAVED, RBP, -8);
	expect_distance(fixture, 1, 8);
	/* leave; ret */
	SET_CODE(fixture, "\xc9\xc3");
	assert_true(find(fixture, 0, &rules));
	expect(&rules, &rules.cfa, FRAME_RULE_VALUE, RBP, 16);
}

static void all_ways_must_agree(void **state)
{
	struct fixture *fixture = *state;
	struct frame_rules rules;

	/* je 1f; pop rbx; ret; 1: ret */
	SET_CODE(fixture, "\x74\x02\x5b\xc3\xc3");
	assert_false(find(fixture, 0, &rules));
	expect_distance(fixture, 2, 8);
	/* je 1f; add rsp, 8; ret; 1: pop rbx; ret: rbx is the one's, or the other's */
	SET_CODE(fixture, "\x74\x05\x48\x83\xc4\x08\xc3\x5b\xc3");
	assert_true(find(fixture, 0, &rules));
	assert_int_equal(rules.registers[RBX].kind, FRAME_RULE_UNKNOWN);
}

static void a_routine_may_keep_its_return_address(void **state)
{
	struct fixture *fixture = *state;
	struct frame_rules rules;

	/* pop rax; nop; push rax; ret: as sljit's fast calls */
	SET_CODE(fixture, "\x58\x90\x50\xc3");
	expect_distance(fixture, 0, 0);
	assert_true(find(fixture, 1, &rules));
	expect(&rules, &rules.cfa, FRAME_RULE_VALUE, RSP, 0);
	expect(&rules, &rules.registers[REGISTER_NUMBER_PC], FRAME_RULE_VALUE, 0, 0);
}

static void what_is_stored_over_is_not_restored(void **state)
{
	struct fixture *fixture = *state;
	struct frame_rules rules;

	/* mov [sp], eax; pop rbx; ret */
	SET_CODE(fixture, "\x89\x04\x24\x5b\xc3");
	expect_distance(fixture, 0, 8);
	assert_true(find(fixture, 0, &rules));
	assert_int_equal(rules.registers[RBX].kind, FRAME_RULE_UNKNOWN);
	/* mov [sp], rbp; pop rbx; ret */
	SET_CODE(fixture, "\x48\x89\x2c\x24\x5b\xc3");
	assert_true(find(fixture, 0, &rules));
	expect(&rules, &rules.registers[RBX], FRAME_RULE_VALUE, RBP, 0);
	/* mov [sp], eax; ret */
	SET_CODE(fixture, "\x89\x04\x24\xc3");
	assert_false(find(fixture, 0, &rules));
}

static void where_no_way_returns_nothing_is_told(void **state)
{
	struct fixture *fixture = *state;
	struct frame_rules rules;

	SET_CODE(fixture, "\xeb\xfe"); /* jmp itself */
	assert_false(find(fixture, 0, &rules));
	SET_CODE(fixture, "\xff\xe0"); /* jmp rax */
	assert_false(find(fixture, 0, &rules));
	SET_CODE(fixture, "\x48\x89\xc4\xc3"); /* mov rsp, rax; ret */
	assert_true(find(fixture, 0, &rules));
	SET_CODE(fixture, "\x48\x8b\x20\xc3"); /* mov rsp, [rax]; ret */
	assert_false(find(fixture, 0, &rules));
	SET_CODE(fixture, "\x90\x90"); /* nop; nop; int3 */
	assert_false(find(fixture, 0, &rules));
}

static void code_that_has_changed_is_read_again(void **state)
{
	struct fixture *fixture = *state;
	struct frame_rules rules;

	SET_CODE(fixture, "\x5b\xc3"); /* pop rbx; ret */
	expect_distance(fixture, 0, 8);
	SET_CODE(fixture, "\x90\xc3");
	expect_distance(fixture, 0, 0);
	SET_CODE(fixture, "\xf4\xc3"); /* hlt */
	assert_false(find(fixture, 0, &rules));
	SET_CODE(fixture, "\x90\xc3");
	expect_distance(fixture, 0, 0);
}

static void calls_are_told_by_the_code_before(void **state)
{
	struct fixture *fixture = *state;
	struct memory *memory = &fixture->code.memory;

	/* call +0; call rax; call [rax+8]; call [r12+0x100]; nop */
	SET_CODE(fixture, "\xe8\0\0\0\0\xff\xd0\xff\x50\x08\x41\xff\x94\x24\0\1\0\0\x90\x90\x90\x90");
	assert_true(code_rules_follows_call(fixture->rules, memory, ADDRESS + 5));
	assert_true(code_rules_follows_call(fixture->rules, memory, ADDRESS + 7));
	assert_true(code_rules_follows_call(fixture->rules, memory, ADDRESS + 10));
	assert_true(code_rules_follows_call(fixture->rules, memory, ADDRESS + 18));
	assert_false(code_rules_follows_call(fixture->rules, memory, ADDRESS + 20));
	assert_false(code_rules_follows_call(fixture->rules, memory, ADDRESS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_pushed_is_restored, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_frame_may_be_found_by_its_pointer, set_up, tear_down),
		cmocka_unit_test_setup_teardown(all_ways_must_agree, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_routine_may_keep_its_return_address, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_stored_over_is_not_restored, set_up, tear_down),
		cmocka_unit_test_setup_teardown(where_no_way_returns_nothing_is_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(code_that_has_changed_is_read_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(calls_are_told_by_the_code_before, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

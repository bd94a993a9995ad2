/* SPDX-License-Identifier: MIT */
/* Frames of code without unwind tables, at each instruction of small functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/range_bytes.h"
#include "unwind/native/code_rules.h"

enum { ADDRESS = 0x400000, CODE_MAX = 4096, RSP = REGISTER_NUMBER_SP, RBX = 3, RBP = 6 };

/* A page of code at ADDRESS, then what stops it, and nothing else. */
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

/* A call that does not return may be the last instruction of a function: what follows it is another one. */
static void a_way_may_run_into_the_function_behind(void **state)
{
	struct fixture *fixture = *state;

	/* jne 1f; add rsp, 8; ret; 1: call; push rbx; pop rbx; ret */
	SET_CODE(fixture, "\x75\x05\x48\x83\xc4\x08\xc3\xe8\x00\x01\x00\x00\x53\x5b\xc3");
	expect_distance(fixture, 0, 8);
	/*
	 * The same, but with the way that returns second: je 1f; call; push rbx; pop rbx; ret; 1: add rsp, 8;
	 * ret
	 */
	SET_CODE(fixture, "\x74\x08\xe8\x00\x01\x00\x00\x53\x5b\xc3\x48\x83\xc4\x08\xc3");
	expect_distance(fixture, 0, 8);
	/* A function may call with nothing on the stack, if no way tells otherwise: call; ret */
	SET_CODE(fixture, "\xe8\x00\x01\x00\x00\xc3");
	expect_distance(fixture, 0, 0);
	/* What is above the stack at its calls is told by all ways: jne 1f; call; pop rbx; ret; 1: ret */
	SET_CODE(fixture, "\x75\x07\xe8\x00\x01\x00\x00\x5b\xc3\xc3");
	assert_false(find(fixture, 0, &(struct frame_rules){ 0 }));
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

static void vector_instructions_are_passed(void **state)
{
	struct fixture *fixture = *state;
	struct frame_rules rules;

	/*
	 * push rbp; push rbx; sub rsp, 64; vcmpltps k1, ymm28, ymm9; vmovups [rsp], zmm3; vzeroupper;
	 * add rsp, 64; pop rbx; pop rbp; ret
	 */
	SET_CODE(fixture, "\x55\x53\x48\x83\xec\x40\x62\xd1\x1c\x20\xc2\xc9\x01\x62\xf1\x7c\x48\x11\x1c\x24"
			  "\xc5\xf8\x77\x48\x83\xc4\x40\x5b\x5d\xc3");
	expect_distance(fixture, 0, 0);
	expect_distance(fixture, 6, 80);
	expect_distance(fixture, 13, 80);
	expect_distance(fixture, 20, 80);
	expect_distance(fixture, 23, 80);
	assert_true(find(fixture, 6, &rules));
	expect(&rules, &rules.registers[RBX], FRAME_RULE_SAVED, RSP, 64);
	expect(&rules, &rules.registers[RBP], FRAME_RULE_SAVED, RSP, 72);
}

static void what_a_vector_is_stored_over_is_not_restored(void **state)
{
	struct fixture *fixture = *state;
	struct frame_rules rules;

	/* push rbp; push rbx; sub rsp, 64; vmovups [rsp+64], xmm17; add rsp, 64; pop rbx; pop rbp; ret */
	SET_CODE(fixture,
		 "\x55\x53\x48\x83\xec\x40\x62\xe1\x7c\x08\x11\x4c\x24\x04\x48\x83\xc4\x40\x5b\x5d\xc3");
	expect_distance(fixture, 6, 80);
	assert_true(find(fixture, 6, &rules));
	assert_int_equal(rules.registers[RBX].kind, FRAME_RULE_UNKNOWN);
	assert_int_equal(rules.registers[RBP].kind, FRAME_RULE_UNKNOWN);
	/* push rbx; vmovd ebx, xmm17; pop rbx; ret */
	SET_CODE(fixture, "\x53\x62\xe1\x7d\x08\x7e\xcb\x5b\xc3");
	assert_true(find(fixture, 1, &rules));
	expect(&rules, &rules.registers[RBX], FRAME_RULE_SAVED, RSP, 0);
	SET_CODE(fixture, "\x62\xe1\x7d\x08\x7e\xcb\xc3");
	assert_true(find(fixture, 0, &rules));
	assert_int_equal(rules.registers[RBX].kind, FRAME_RULE_UNKNOWN);
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

/* Sixteen bytes of the code, as the module's that holds them. */
static struct module *set_module(struct fixture *fixture)
{
	struct module *module = calloc(1, sizeof(*module));

	assert_non_null(module);
	module->begin = module->base = ADDRESS;
	module->end = ADDRESS + 16;
	image_set_modules(fixture->image, module, 1);
	code_rules_reset(fixture->rules);
	return module;
}

static void the_code_of_a_module_is_read_once(void **state)
{
	struct fixture *fixture = *state;

	SET_CODE(fixture, "\x5b\xc3"); /* pop rbx; ret */
	set_module(fixture);
	expect_distance(fixture, 0, 8);
	SET_CODE(fixture, "\x90\xc3");
	expect_distance(fixture, 0, 8);
	set_module(fixture);
	expect_distance(fixture, 0, 0);
}

static void ways_into_the_vm_lead_astray(void **state)
{
	struct fixture *fixture = *state;
	const struct vm_code vm = { .begin = ADDRESS + 1, .end = ADDRESS + 2 };
	const struct vm_code call = { .ffi_call = ADDRESS + 1, .ffi_call_end = ADDRESS + 2 };
	struct frame_rules rules;
	struct module *module;

	SET_CODE(fixture, "\x5b\x90\xc3"); /* pop rbx; nop; ret */
	for (size_t i = 0; i < 3; i++) {
		module = set_module(fixture);
		expect_distance(fixture, 0, 8);
		code_rules_reset(fixture->rules);
		if (i == 2)
			module->unknown_vm = &vm;
		else
			module->vm = i ? &call : &vm;
		assert_false(find(fixture, 0, &rules));
		assert_false(find(fixture, 1, &rules));
		expect_distance(fixture, 2, 0);
	}
	/* Even if another way returns: je 1f; ret; 1: into it */
	SET_CODE(fixture, "\x74\x01\xc3\xc3");
	module = set_module(fixture);
	expect_distance(fixture, 0, 0);
	code_rules_reset(fixture->rules);
	module->vm = &(const struct vm_code){ .begin = ADDRESS + 3, .end = ADDRESS + 4 };
	assert_false(find(fixture, 0, &rules));
}

static void read_nothing(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	for (size_t i = 0; i < count; i++)
		ranges[i].status = MEMORY_NOT_CAPTURED;
}

static void generated_code_that_was_not_copied_is_read_of_the_target(void **state)
{
	struct fixture *fixture = *state;
	struct memory nothing = { .read_ranges = read_nothing };
	struct frame_rules rules;

	SET_CODE(fixture, "\x5b\xc3");
	assert_true(code_rules_find(fixture->rules, &nothing, ADDRESS, &rules));
	expect(&rules, &rules.cfa, FRAME_RULE_VALUE, RSP, 16);
	assert_false(code_rules_find(fixture->rules, &nothing, ADDRESS + CODE_MAX, &rules));
	SET_CODE(fixture, "\xff\xd0");
	assert_true(code_rules_follows_call(fixture->rules, &nothing, ADDRESS + 2));
	assert_false(code_rules_follows_call(fixture->rules, &nothing, ADDRESS + CODE_MAX + 10));
}

static size_t reads;

static void count_reads(struct memory *memory, struct memory_range *ranges, size_t count)
{
	reads++;
	read_code(memory, ranges, count);
}

/* One read compares all of it. */
static void known_code_is_not_followed_again(void **state)
{
	struct fixture *fixture = *state;

	SET_CODE(fixture, "\x74\x02\x5b\x5b\x5b\xc3"); /* je 1f; pop rbx; pop rbx; 1: pop rbx; ret */
	fixture->code.memory.read_ranges = count_reads;
	for (size_t at = 2; at <= 4; at += 2) {
		reads = 0;
		expect_distance(fixture, at, at == 2 ? 24 : 8);
		assert_true(reads > 2);
		reads = 0;
		expect_distance(fixture, at, at == 2 ? 24 : 8);
		assert_int_equal(reads, 1);
	}
	/* That there are no rules is known, too. */
	SET_CODE(fixture, "\x90\x90\x90\xf4");
	assert_false(find(fixture, 0, &(struct frame_rules){ 0 }));
	reads = 0;
	assert_false(find(fixture, 0, &(struct frame_rules){ 0 }));
	assert_int_equal(reads, 1);
}

static void read_far_code(struct memory *memory, struct memory_range *ranges, size_t count);

/* A jump to a return, the last of so many bytes. */
static struct far_code {
	struct memory memory; /* must be first */
	uint8_t bytes[(64 << 10) + CODE_MAX];
} far_code = { .memory = { .read_ranges = read_far_code } };

static void read_far_code(struct memory *memory, struct memory_range *ranges, size_t count)
{
	const struct far_code *code = (const struct far_code *)memory;

	reads++;
	range_bytes(ranges, count, ADDRESS, code->bytes, sizeof(code->bytes));
}

static bool find_far(struct fixture *fixture, uint32_t bytes, struct frame_rules *ret_rules)
{
	const uint32_t distance = bytes - 1 - 5;

	memset(far_code.bytes, 0xf4, sizeof(far_code.bytes)); /* hlt */
	far_code.bytes[0] = 0xe9;
	memcpy(&far_code.bytes[1], &distance, sizeof(distance));
	far_code.bytes[bytes - 1] = 0xc3;
	reads = 0;
	return code_rules_find(fixture->rules, &far_code.memory, ADDRESS, ret_rules);
}

/* It is compared as a whole: that of more than 64 KiB is followed each time. */
static void known_code_may_be_far_apart_but_not_too_far(void **state)
{
	struct fixture *fixture = *state;
	struct frame_rules rules;

	for (uint32_t bytes = 64 << 10; bytes <= (64 << 10) + 1; bytes++) {
		for (size_t i = 0; i < 2; i++) {
			assert_true(find_far(fixture, bytes, &rules));
			expect(&rules, &rules.cfa, FRAME_RULE_VALUE, RSP, 8);
			assert_int_equal(reads == 1, i > 0 && bytes == 64 << 10);
		}
		code_rules_reset(fixture->rules);
	}
}

static void known_code_that_cannot_be_read_any_more_has_no_rules(void **state)
{
	struct fixture *fixture = *state;

	SET_CODE(fixture, "\x5b\xc3");
	expect_distance(fixture, 0, 8);
	fixture->code.memory.read_ranges = read_nothing;
	assert_false(find(fixture, 0, &(struct frame_rules){ 0 }));
	fixture->code.memory.read_ranges = read_code;
	expect_distance(fixture, 0, 8);
}

/* What was copied is what was there when the target was stopped. */
static void the_copy_counts_more_than_the_target(void **state)
{
	struct fixture *fixture = *state;
	static struct code copy;
	struct frame_rules rules;

	SET_CODE(fixture, "\x5b\xc3");
	copy = fixture->code;
	SET_CODE(fixture, "\x90\xc3");
	assert_true(code_rules_find(fixture->rules, &copy.memory, ADDRESS, &rules));
	expect(&rules, &rules.cfa, FRAME_RULE_VALUE, RSP, 16);
	assert_true(code_rules_find(fixture->rules, &fixture->code.memory, ADDRESS, &rules));
	expect(&rules, &rules.cfa, FRAME_RULE_VALUE, RSP, 8);
}

static void code_may_end_with_its_page(void **state)
{
	struct fixture *fixture = *state;
	uint8_t *bytes = fixture->code.bytes;
	struct frame_rules rules;

	memset(bytes, 0x90, CODE_MAX);
	bytes[CODE_MAX - 1] = 0xc3;
	for (uint64_t left = 1; left < 40; left++) {
		assert_true(find(fixture, CODE_MAX - left, &rules));
		expect(&rules, &rules.cfa, FRAME_RULE_VALUE, RSP, 8);
	}
	bytes[CODE_MAX - 1] = 0x90;
	assert_false(find(fixture, CODE_MAX - 20, &rules));
}

static void code_is_followed_for_so_many_instructions(void **state)
{
	enum { INSTRUCTIONS_MAX = 2048 };
	struct fixture *fixture = *state;
	uint8_t *bytes = fixture->code.bytes;
	struct frame_rules rules;

	memset(bytes, 0x90, CODE_MAX);
	bytes[3000] = 0xc3;
	assert_true(find(fixture, 3001 - INSTRUCTIONS_MAX, &rules));
	assert_false(find(fixture, 3000 - INSTRUCTIONS_MAX, &rules));
	/* What has changed anywhere between is seen. */
	bytes[2999] = 0x5b;
	assert_true(find(fixture, 3001 - INSTRUCTIONS_MAX, &rules));
	expect(&rules, &rules.cfa, FRAME_RULE_VALUE, RSP, 16);
	bytes[3001 - INSTRUCTIONS_MAX] = 0x5b;
	assert_true(find(fixture, 3001 - INSTRUCTIONS_MAX, &rules));
	expect(&rules, &rules.cfa, FRAME_RULE_VALUE, RSP, 24);
}

static void two_returns_that_agree_are_enough(void **state)
{
	struct fixture *fixture = *state;

	/* je 1f; ret; 1: je 2f; ret; 2: pop rbx; ret: the third disagrees, but nobody asks it */
	SET_CODE(fixture, "\x74\x04\x5b\xc3\xcc\xcc\x74\x01\xc3\xc3");
	expect_distance(fixture, 6, 0);
	/* je 1f; je 2f; pop rbx; ret; 1: nop; ret; 2: ret */
	SET_CODE(fixture, "\x74\x04\x74\x04\x90\xc3\x90\xc3\x5b\xc3");
	assert_false(find(fixture, 0, &(struct frame_rules){ 0 }));
	/* A way that ends, or comes to what was seen, is not one of them: je 1f; ret; 1: hlt */
	SET_CODE(fixture, "\x74\x01\xc3\xf4");
	expect_distance(fixture, 0, 0);
	SET_CODE(fixture, "\x74\x01\xc3\xeb\xfb"); /* je 1f; ret; 1: jmp to its beginning */
	expect_distance(fixture, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_pushed_is_restored, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_frame_may_be_found_by_its_pointer, set_up, tear_down),
		cmocka_unit_test_setup_teardown(all_ways_must_agree, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_way_may_run_into_the_function_behind, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_routine_may_keep_its_return_address, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_stored_over_is_not_restored, set_up, tear_down),
		cmocka_unit_test_setup_teardown(vector_instructions_are_passed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_a_vector_is_stored_over_is_not_restored, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(where_no_way_returns_nothing_is_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(code_that_has_changed_is_read_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(calls_are_told_by_the_code_before, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_code_of_a_module_is_read_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(ways_into_the_vm_lead_astray, set_up, tear_down),
		cmocka_unit_test_setup_teardown(generated_code_that_was_not_copied_is_read_of_the_target,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(known_code_is_not_followed_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(known_code_may_be_far_apart_but_not_too_far, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(known_code_that_cannot_be_read_any_more_has_no_rules, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(the_copy_counts_more_than_the_target, set_up, tear_down),
		cmocka_unit_test_setup_teardown(code_may_end_with_its_page, set_up, tear_down),
		cmocka_unit_test_setup_teardown(code_is_followed_for_so_many_instructions, set_up, tear_down),
		cmocka_unit_test_setup_teardown(two_returns_that_agree_are_enough, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

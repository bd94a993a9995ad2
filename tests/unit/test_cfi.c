/* SPDX-License-Identifier: MIT */
/* From a frame to its caller by rules of every kind, which come in the place of a file's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <dwarf.h>

#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_words.h"
#include "tests/unit/same_registers.h"
#include "unwind/machine/signal_frame.h"
#include "unwind/native/cfi.h"

INSTEAD_OF(symbols_rules);

enum { PC = 0x4000, RAX = 0, RBX = 3, RBP = 6, RSP = REGISTER_NUMBER_SP, R12 = 12, R13 = 13, RIP = 16 };

/* Rules of all addresses, unless there are none; and how often they were asked for. */
static struct {
	struct frame_rules rules;
	bool is_found;
	size_t count;
} given;

bool __wrap_symbols_rules(struct symbols *symbols, uint64_t address, struct frame_rules *ret_rules)
{
	(void)symbols;
	(void)address;
	given.count++;
	*ret_rules = given.rules;
	return given.is_found;
}

static struct made_up stack;
static bool is_in_place; /* can the stack be read without a copy? */
static size_t views;     /* how often it was */
static struct image *image;
static struct cfi *cfi;
static struct registers frame, caller;

static const void *view(struct memory *memory, uint64_t address, size_t length)
{
	const struct made_up *made_up = (const void *)memory;

	views++;
	return is_in_place && address >= BASE && address + length <= BASE + sizeof(made_up->words)
		       ? (const uint8_t *)made_up->words + (address - BASE)
		       : NULL;
}

/* The rules just after a call; each word of the stack has its own address plus one. */
static int begin(void **state)
{
	(void)state;
	stack = (struct made_up){ .memory = { .read_ranges = read_ranges, .view = view } };
	is_in_place = false;
	for (size_t i = 0; i < WORDS; i++)
		stack.words[i] = at(i) + 1;
	image = image_new(&stack.memory);
	cfi = cfi_new(image, NULL);
	assert_non_null(cfi);
	given.is_found = true;
	given.count = 0;
	frame_rules_of_call(&given.rules);
	frame = (struct registers){ .pc = PC,
				    .sp = at(100),
				    .rax = 1,
				    .rbx = 2,
				    .rbp = at(200),
				    .r12 = 4,
				    .r13 = 5,
				    .flags = 6,
				    .call_number = 7,
				    .thread_pointer = 8 };
	memset(&caller, 0xff, sizeof(caller));
	return 0;
}

static int end(void **state)
{
	(void)state;
	cfi_free(cfi);
	image_free(image);
	return 0;
}

static enum cfi_status step(void)
{
	cfi_reset(cfi);
	return cfi_step(cfi, PC, &frame, &stack.memory, &caller);
}

static void after_a_call_the_caller_has_the_same_registers(void **state)
{
	struct registers expected = frame;
	uint64_t sp;

	(void)state;
	expected.pc = at(100) + 1;
	expected.sp = at(101);
	expected.flags = 0;
	expected.call_number = UINT64_MAX;
	assert_int_equal(step(), CFI_CALLER);
	assert_same_registers(&caller, &expected);
	assert_true(cfi_caller_sp(cfi, PC, &frame, &stack.memory, &sp));
	assert_int_equal(sp, at(101));
}

static void rules_are_asked_for_once(void **state)
{
	(void)state;
	assert_int_equal(cfi_step(cfi, PC, &frame, &stack.memory, &caller), CFI_CALLER);
	assert_int_equal(cfi_step(cfi, PC, &frame, &stack.memory, &caller), CFI_CALLER);
	assert_int_equal(given.count, 1);
	assert_int_equal(cfi_step(cfi, PC + 1, &frame, &stack.memory, &caller), CFI_CALLER);
	assert_int_equal(given.count, 2);
	cfi_reset(cfi);
	given.is_found = false;
	memset(&caller, 0xff, sizeof(caller));
	/* That there are none is known, too. */
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(cfi_step(cfi, PC, &frame, &stack.memory, &caller), CFI_NONE);
	assert_int_equal(given.count, 3);
	assert_int_equal(caller.pc, UINT64_MAX);
	assert_false(cfi_caller_sp(cfi, PC, &frame, &stack.memory, &caller.sp));
}

static void the_outermost_frame_has_no_caller(void **state)
{
	uint64_t sp;

	(void)state;
	given.rules.is_outermost = true;
	assert_int_equal(step(), CFI_CALLER);
	assert_int_equal(caller.pc, 0);
	assert_int_equal(caller.sp, frame.sp);
	assert_false(cfi_caller_sp(cfi, PC, &frame, &stack.memory, &sp));
}

static void a_stack_that_was_not_captured_has_no_caller(void **state)
{
	(void)state;
	frame.sp = at(WORDS);
	assert_int_equal(step(), CFI_NONE);
	assert_int_equal(caller.pc, UINT64_MAX);
	frame.sp = at(WORDS - 1);
	assert_int_equal(step(), CFI_CALLER);
}

/*---- Registers ----*/

static struct frame_rule add_ops(const struct frame_rule_op *ops, size_t count, enum frame_rule_kind kind)
{
	const struct frame_rule rule = { .kind = (uint8_t)kind,
					 .first = given.rules.op_count,
					 .count = (uint8_t)count };

	assert_in_range(given.rules.op_count + count, 1, FRAME_RULE_OPS_MAX);
	memcpy(given.rules.ops + given.rules.op_count, ops, count * sizeof(*ops));
	given.rules.op_count = (uint8_t)(given.rules.op_count + count);
	return rule;
}

static void registers_are_found_by_their_rules(void **state)
{
	const struct frame_rule_op below = { .atom = DW_OP_plus_uconst, .number = (uint64_t)-24 };
	const struct frame_rule_op sum = { .atom = DW_OP_bregx, .number = RBP, .number2 = 16 };

	(void)state;
	given.rules.registers[RBX] = add_ops(&below, 1, FRAME_RULE_SAVED_AT_CFA);
	given.rules.registers[RBP] = (struct frame_rule){ .kind = FRAME_RULE_REGISTER, .number = R12 };
	given.rules.registers[R12] = add_ops(&sum, 1, FRAME_RULE_VALUE);
	given.rules.registers[R13] = add_ops(&sum, 1, FRAME_RULE_SAVED);
	given.rules.registers[RAX] = (struct frame_rule){ .kind = FRAME_RULE_UNKNOWN };
	for (int i = 0; i < 2; i++) {
		is_in_place = i;
		assert_int_equal(step(), CFI_CALLER);
		assert_int_equal(caller.rbx, at(101 - 3) + 1);
		assert_int_equal(caller.rbp, 4);
		assert_int_equal(caller.r12, at(202));
		assert_int_equal(caller.r13, at(202) + 1);
		assert_int_equal(caller.unknown, REGISTER_OTHERS);
		assert_int_equal(caller.thread_pointer, 8);
	}
}

/* Words below the CFA, those that are read at once and those further down. */
static void saved_words_are_at_any_distance(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		is_in_place = i;
		for (uint64_t distance = 1; distance < 90; distance++) {
			const struct frame_rule_op below = { .atom = DW_OP_plus_uconst, .number = -distance };
			uint64_t expected;

			frame_rules_of_call(&given.rules);
			given.rules.registers[RBX] = add_ops(&below, 1, FRAME_RULE_SAVED_AT_CFA);
			memcpy(&expected, (const uint8_t *)stack.words + (at(101) - BASE) - distance,
			       sizeof(expected));
			assert_int_equal(step(), CFI_CALLER);
			assert_true(caller.rbx == expected);
		}
	}
	/* With no word below it that can be read, others still can. */
	frame_rules_of_call(&given.rules);
	given.rules.registers[RBX] = add_ops(
		&(struct frame_rule_op){ .atom = DW_OP_plus_uconst, .number = (uint64_t)-8 }, 1,
		FRAME_RULE_SAVED_AT_CFA);
	frame.sp = at(0);
	assert_int_equal(step(), CFI_CALLER);
	assert_int_equal(caller.rbx, at(0) + 1);
}

static struct frame_rule saved_below(uint64_t distance)
{
	const struct frame_rule_op below = { .atom = DW_OP_plus_uconst, .number = -distance };

	return add_ops(&below, 1, FRAME_RULE_SAVED_AT_CFA);
}

/* A thread is unwound after each look at it: what a function has saved is read at once. */
static void what_is_saved_below_the_cfa_is_read_at_once(void **state)
{
	struct registers one_by_one;

	(void)state;
	given.rules.registers[RIP] = saved_below(8);
	given.rules.registers[RBX] = saved_below(16);
	given.rules.registers[RBP] = saved_below(400);
	given.rules.registers[R12] = saved_below(24);
	given.rules.registers[R13] = (struct frame_rule){ .kind = FRAME_RULE_UNKNOWN };
	frame.unknown = REGISTER_RBX | REGISTER_R14;
	assert_int_equal(step(), CFI_CALLER);
	assert_int_equal(caller.rbx, at(101 - 2) + 1);
	assert_int_equal(caller.rbp, at(101 - 50) + 1);
	assert_int_equal(caller.r12, at(101 - 3) + 1);
	assert_int_equal(caller.unknown, REGISTER_R13 | REGISTER_R14);
	one_by_one = caller;
	is_in_place = true;
	views = 0;
	assert_int_equal(step(), CFI_CALLER);
	assert_int_equal(views, 1);
	assert_same_registers(&caller, &one_by_one);
	/* One that is saved elsewhere, or an unknown register that tells where the CFA is, needs more. */
	given.rules.registers[RBX] = saved_below(-(uint64_t)8);
	assert_int_equal(step(), CFI_CALLER);
	assert_int_equal(caller.rbx, at(101 + 1) + 1);
	assert_int_equal(caller.rbp, one_by_one.rbp);
	given.rules.registers[RBX] = saved_below(4000);
	assert_int_equal(step(), CFI_CALLER);
	assert_int_equal(caller.unknown, REGISTER_RBX | REGISTER_R13 | REGISTER_R14);
	assert_int_equal(caller.rbp, one_by_one.rbp);
}

static uint64_t randomness = 1;

static uint64_t below(uint64_t limit)
{
	randomness = randomness * UINT64_C(6364136223846793005) + 1442695040888963407U;
	return (randomness >> 33) % limit;
}

static struct frame_rule any_rule(void)
{
	/* Most are saved below the CFA, some too far, or above it. */
	const uint64_t distance = below(8) ? 8 * (1 + below(16)) : below(1200) - 100;

	switch (below(8)) {
	case 0: return (struct frame_rule){ .kind = FRAME_RULE_UNKNOWN };
	case 1: return (struct frame_rule){ .kind = FRAME_RULE_REGISTER, .number = (uint8_t)below(RIP) };
	case 2: return (struct frame_rule){ .kind = FRAME_RULE_SAME };
	default: return saved_below(distance);
	}
}

/* A CFA by a register that may be unknown, and some registers that are recovered. */
static void make_any_rules(void)
{
	const struct frame_rule_op cfa = { .atom = DW_OP_bregx,
					   .number = below(RIP + 1),
					   .number2 = 8 * below(9) };

	frame_rules_of_call(&given.rules);
	given.rules.cfa = add_ops(&cfa, 1, FRAME_RULE_VALUE);
	if (below(8))
		given.rules.registers[RSP] = given.rules.cfa;
	given.rules.registers[RIP] = below(8) ? saved_below(8) : any_rule();
	for (uint64_t count = below(6); count > 0; count--)
		given.rules.registers[(RSP + 1 + below(RIP - 1)) % RIP] = any_rule();
	for (int number = 0; number < RIP; number++)
		*registers_locate(&frame, number) = at(40 + below(WORDS - 40)) + (below(8) ? 0 : below(8));
	frame.unknown = below(4) ? 0 : (unsigned int)below(REGISTER_OTHERS + UINT64_C(1)) & REGISTER_OTHERS;
}

/* Words that a function saved in one place are the same, read at once or one by one. */
static void what_is_read_at_once_is_as_read_one_by_one(void **state)
{
	size_t at_once = 0, of_others = 0;

	(void)state;
	for (size_t i = 0; i < 20000; i++) {
		struct registers one_by_one;
		enum cfi_status status;

		make_any_rules();
		memset(&caller, 0xff, sizeof(caller));
		is_in_place = false;
		status = step();
		one_by_one = caller;
		memset(&caller, 0xff, sizeof(caller));
		is_in_place = true;
		views = 0;
		assert_int_equal(step(), status);
		assert_same_registers(&caller, &one_by_one);
		if (status == CFI_CALLER)
			*(views == 1 ? &at_once : &of_others) += 1;
	}
	assert_true(at_once > 1000 && of_others > 1000);
}

static void what_cannot_be_found_is_unknown(void **state)
{
	const struct frame_rule_op nowhere = { .atom = DW_OP_const8u, .number = 0 };
	const struct frame_rule_op outside = { .atom = DW_OP_constu, .number = at(WORDS) };

	(void)state;
	given.rules.registers[RBX] = (struct frame_rule){ .kind = FRAME_RULE_UNKNOWN };
	given.rules.registers[RBP] = (struct frame_rule){ .kind = FRAME_RULE_REGISTER, .number = R12 };
	given.rules.registers[R13] = add_ops(&outside, 1, FRAME_RULE_SAVED);
	frame.unknown = REGISTER_R12 | REGISTER_R14;
	assert_int_equal(step(), CFI_CALLER);
	assert_int_equal(caller.unknown,
			 REGISTER_RBX | REGISTER_RBP | REGISTER_R12 | REGISTER_R13 | REGISTER_R14);
	/* Of a register that is found again, it does not matter. */
	given.rules.registers[R12] = (struct frame_rule){ .kind = FRAME_RULE_REGISTER, .number = RAX };
	assert_int_equal(step(), CFI_CALLER);
	assert_int_equal(caller.r12, 1);
	assert_int_equal(caller.unknown, REGISTER_RBX | REGISTER_RBP | REGISTER_R13 | REGISTER_R14);
	/* An operation that is not known has no value. */
	given.rules.registers[R13] = add_ops(&nowhere, 1, FRAME_RULE_VALUE);
	assert_int_equal(step(), CFI_CALLER);
	assert_true(caller.unknown & REGISTER_R13);
}

/* The stack is found by an unknown register: that is told apart from having no rules. */
static void rules_may_need_an_unknown_register(void **state)
{
	const struct frame_rule_op by_rbp = { .atom = DW_OP_breg0 + RBP, .number = 16 };
	const struct frame_rule_op no_register = { .atom = DW_OP_bregx, .number = REGISTER_NUMBERS };

	(void)state;
	given.rules.cfa = given.rules.registers[RSP] = add_ops(&by_rbp, 1, FRAME_RULE_VALUE);
	assert_int_equal(step(), CFI_CALLER);
	assert_int_equal(caller.sp, at(202));
	frame.unknown = REGISTER_RBP;
	assert_int_equal(step(), CFI_REGISTER_UNKNOWN);
	frame.unknown = REGISTER_RBX;
	assert_int_equal(step(), CFI_CALLER);
	frame.unknown = 0;
	given.rules.cfa = add_ops(&no_register, 1, FRAME_RULE_VALUE);
	assert_int_equal(step(), CFI_REGISTER_UNKNOWN);
	/* The return address. */
	frame_rules_of_call(&given.rules);
	given.rules.registers[RIP] = (struct frame_rule){ .kind = FRAME_RULE_REGISTER, .number = RBX };
	assert_int_equal(step(), CFI_CALLER);
	assert_int_equal(caller.pc, 2);
	frame.unknown = REGISTER_RBX;
	assert_int_equal(step(), CFI_REGISTER_UNKNOWN);
	given.rules.registers[RIP] = (struct frame_rule){ .kind = FRAME_RULE_UNKNOWN };
	assert_int_equal(step(), CFI_NONE);
}

/*---- Expressions ----*/

/* The value of an expression; false if it has none. */
static bool evaluate(const struct frame_rule_op *ops, size_t count, uint64_t *ret_value)
{
	frame_rules_of_call(&given.rules);
	given.rules.registers[RBX] = add_ops(ops, count, FRAME_RULE_VALUE);
	frame.unknown = REGISTER_R13;
	assert_int_equal(step(), CFI_CALLER);
	*ret_value = caller.rbx;
	return !(caller.unknown & REGISTER_RBX);
}

static void assert_result(const struct frame_rule_op *ops, size_t count, uint64_t expected)
{
	uint64_t value;

	assert_true(evaluate(ops, count, &value));
	assert_true(value == expected);
}

static void operations_push_values(void **state)
{
	static const uint8_t constants[] = { DW_OP_const1u, DW_OP_const1s, DW_OP_const2u, DW_OP_const2s,
					     DW_OP_const4u, DW_OP_const4s, DW_OP_constu,  DW_OP_consts };
	struct frame_rule_op op;

	(void)state;
	for (unsigned int number = 0; number < 32; number++) {
		op = (struct frame_rule_op){ .atom = (uint8_t)(DW_OP_lit0 + number) };
		assert_result(&op, 1, number);
	}
	for (size_t i = 0; i < sizeof(constants); i++) {
		op = (struct frame_rule_op){ .atom = constants[i], .number = (uint64_t)-5 };
		assert_result(&op, 1, (uint64_t)-5);
	}
	op = (struct frame_rule_op){ .atom = DW_OP_call_frame_cfa };
	assert_result(&op, 1, at(101));
	op = (struct frame_rule_op){ .atom = DW_OP_breg0 + R12, .number = (uint64_t)-1 };
	assert_result(&op, 1, 3);
	op = (struct frame_rule_op){ .atom = DW_OP_breg0 + RIP, .number = 1 };
	assert_result(&op, 1, PC + 1);
	op = (struct frame_rule_op){ .atom = DW_OP_bregx, .number = R12, .number2 = 10 };
	assert_result(&op, 1, 14);
}

static void operations_combine_values(void **state)
{
	static const struct {
		uint8_t atom;
		int64_t left, right, result;
	} two[] = {
		{ DW_OP_plus, 7, 5, 12 }, { DW_OP_minus, 7, 5, 2 },        { DW_OP_and, 12, 6, 4 },
		{ DW_OP_shl, 3, 2, 12 },  { DW_OP_shl, 1, 63, INT64_MIN }, { DW_OP_shl, 1, 64, 0 },
		{ DW_OP_ge, 5, 4, 1 },    { DW_OP_ge, 5, 5, 1 },           { DW_OP_ge, 5, 6, 0 },
		{ DW_OP_ge, -1, 1, 0 },
	};
	const struct frame_rule_op add[] = { { .atom = DW_OP_constu, .number = 5 },
					     { .atom = DW_OP_plus_uconst, .number = 6 } };
	const struct frame_rule_op load[] = { { .atom = DW_OP_bregx, .number = RSP, .number2 = 16 },
					      { .atom = DW_OP_deref } };
	const struct frame_rule_op three[] = { { .atom = DW_OP_lit0 + 20 },
					       { .atom = DW_OP_lit0 + 3 },
					       { .atom = DW_OP_lit0 + 2 },
					       { .atom = DW_OP_minus },
					       { .atom = DW_OP_minus } };

	(void)state;
	for (size_t i = 0; i < sizeof(two) / sizeof(two[0]); i++) {
		const struct frame_rule_op ops[] = {
			{ .atom = DW_OP_consts, .number = (uint64_t)two[i].left },
			{ .atom = DW_OP_consts, .number = (uint64_t)two[i].right },
			{ .atom = two[i].atom },
		};

		assert_result(ops, 3, (uint64_t)two[i].result);
	}
	assert_result(add, 2, 11);
	assert_result(load, 2, at(102) + 1);
	assert_result(three, 5, 20 - (3 - 2));
	/* The last value is the result. */
	assert_result(three, 3, 2);
}

static void expressions_of_no_sense_have_no_value(void **state)
{
	const struct frame_rule_op lit = { .atom = DW_OP_lit0 };
	const struct frame_rule_op faults[][3] = {
		{ { .atom = DW_OP_plus } },
		{ { .atom = DW_OP_lit0 }, { .atom = DW_OP_plus } },
		{ { .atom = DW_OP_deref } },
		{ { .atom = DW_OP_plus_uconst, .number = 1 } },
		{ { .atom = DW_OP_lit0 }, { .atom = DW_OP_lit0 }, { .atom = DW_OP_mul } },
		{ { .atom = DW_OP_lit0 }, { .atom = DW_OP_deref } },
		{ { .atom = DW_OP_breg0 + R13 } },
		{ { .atom = DW_OP_breg0 + REGISTER_NUMBERS } },
		{ { .atom = DW_OP_bregx, .number = R13 } },
	};
	static const size_t counts[] = { 1, 2, 1, 1, 3, 2, 1, 1, 1 };
	enum { DEPTH_MAX = 16 };
	struct frame_rule_op many[DEPTH_MAX + 1];
	uint64_t value;

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		assert_false(evaluate(faults[i], counts[i], &value));
	assert_false(evaluate(&lit, 0, &value));
	for (size_t i = 0; i < DEPTH_MAX + 1; i++)
		many[i] = lit;
	assert_true(evaluate(many, DEPTH_MAX, &value));
	assert_false(evaluate(many, DEPTH_MAX + 1, &value));
}

/*---- Frames of signals ----*/

/* mov rax, 15; syscall */
static const uint8_t sigreturn[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };

static void a_signals_handler_returns_to_known_code(void **state)
{
	(void)state;
	memcpy(&stack.words[1], sigreturn, sizeof(sigreturn));
	assert_true(signal_frame_is_at(&stack.memory, at(1)));
	assert_false(signal_frame_is_at(&stack.memory, at(1) - 1));
	assert_false(signal_frame_is_at(&stack.memory, at(1) + 1));
	for (size_t i = 0; i < sizeof(sigreturn); i++) {
		((uint8_t *)&stack.words[1])[i] ^= 0x10;
		assert_false(signal_frame_is_at(&stack.memory, at(1)));
		((uint8_t *)&stack.words[1])[i] ^= 0x10;
	}
	assert_false(signal_frame_is_at(&stack.memory, at(WORDS)));
}

/* struct ucontext has the registers from its 40th byte on, in this order. */
static void the_interrupted_registers_are_on_the_stack(void **state)
{
	static const size_t order[] = {
		offsetof(struct registers, r8),  offsetof(struct registers, r9),
		offsetof(struct registers, r10), offsetof(struct registers, r11),
		offsetof(struct registers, r12), offsetof(struct registers, r13),
		offsetof(struct registers, r14), offsetof(struct registers, r15),
		offsetof(struct registers, rdi), offsetof(struct registers, rsi),
		offsetof(struct registers, rbp), offsetof(struct registers, rbx),
		offsetof(struct registers, rdx), offsetof(struct registers, rax),
		offsetof(struct registers, rcx), offsetof(struct registers, sp),
		offsetof(struct registers, pc),  offsetof(struct registers, flags),
	};
	enum { WORDS_OF_ALL = sizeof(order) / sizeof(order[0]), FIRST = 5 };
	struct registers expected = { .call_number = UINT64_MAX, .thread_pointer = 8 };

	(void)state;
	frame.unknown = REGISTER_OTHERS;
	for (size_t i = 0; i < WORDS_OF_ALL; i++)
		*(uint64_t *)(void *)((char *)&expected + order[i]) = at(100 + FIRST + i) + 1;
	assert_true(signal_frame_interrupted(&stack.memory, &frame, &caller));
	assert_same_registers(&caller, &expected);
	frame.sp = at(WORDS - FIRST - WORDS_OF_ALL);
	assert_true(signal_frame_interrupted(&stack.memory, &frame, &caller));
	expected = caller;
	frame.sp++;
	assert_false(signal_frame_interrupted(&stack.memory, &frame, &caller));
	assert_same_registers(&caller, &expected);
}

/*---- Code without rules ----*/

static void rules_of_code_hold_where_a_call_was(void **state)
{
	(void)state;
	/* pop rbx; ret; and where it returns to, behind a call. */
	memcpy(&stack.words[0], "\x5b\xc3\xff\xd0\x90\x90", 6);
	frame.pc = at(0);
	stack.words[101] = at(0) + 4;
	assert_int_equal(cfi_step_by_code(cfi, &frame, &stack.memory, &caller), CFI_CALLER);
	assert_int_equal(caller.pc, at(0) + 4);
	assert_int_equal(caller.sp, at(102));
	assert_int_equal(caller.rbx, at(100) + 1);
	memset(&caller, 0xff, sizeof(caller));
	stack.words[101] = at(0) + 5;
	assert_int_equal(cfi_step_by_code(cfi, &frame, &stack.memory, &caller), CFI_NONE);
	frame.sp = at(WORDS);
	assert_int_equal(cfi_step_by_code(cfi, &frame, &stack.memory, &caller), CFI_NONE);
	frame.pc = at(WORDS);
	assert_int_equal(cfi_step_by_code(cfi, &frame, &stack.memory, &caller), CFI_NONE);
	assert_int_equal(caller.pc, UINT64_MAX);
	/* leave; ret */
	memcpy(&stack.words[0], "\xc9\xc3", 2);
	frame.pc = at(0);
	frame.unknown = REGISTER_RBP;
	assert_int_equal(cfi_step_by_code(cfi, &frame, &stack.memory, &caller), CFI_REGISTER_UNKNOWN);
	assert_int_equal(given.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(after_a_call_the_caller_has_the_same_registers, begin, end),
		cmocka_unit_test_setup_teardown(rules_are_asked_for_once, begin, end),
		cmocka_unit_test_setup_teardown(the_outermost_frame_has_no_caller, begin, end),
		cmocka_unit_test_setup_teardown(a_stack_that_was_not_captured_has_no_caller, begin, end),
		cmocka_unit_test_setup_teardown(registers_are_found_by_their_rules, begin, end),
		cmocka_unit_test_setup_teardown(saved_words_are_at_any_distance, begin, end),
		cmocka_unit_test_setup_teardown(what_is_saved_below_the_cfa_is_read_at_once, begin, end),
		cmocka_unit_test_setup_teardown(what_is_read_at_once_is_as_read_one_by_one, begin, end),
		cmocka_unit_test_setup_teardown(what_cannot_be_found_is_unknown, begin, end),
		cmocka_unit_test_setup_teardown(rules_may_need_an_unknown_register, begin, end),
		cmocka_unit_test_setup_teardown(operations_push_values, begin, end),
		cmocka_unit_test_setup_teardown(operations_combine_values, begin, end),
		cmocka_unit_test_setup_teardown(expressions_of_no_sense_have_no_value, begin, end),
		cmocka_unit_test_setup_teardown(a_signals_handler_returns_to_known_code, begin, end),
		cmocka_unit_test_setup_teardown(the_interrupted_registers_are_on_the_stack, begin, end),
		cmocka_unit_test_setup_teardown(rules_of_code_hold_where_a_call_was, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

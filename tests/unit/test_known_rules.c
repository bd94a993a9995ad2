/* SPDX-License-Identifier: MIT */
/* The cache of frame rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "unwind/native/known_rules.h"

enum { MAX = 5, OPS = 3 };

static struct known_rules known;
static const struct made_code made = { 1, 2, 3 };

static int begin(void **state)
{
	(void)state;
	known = (struct known_rules){ .max = MAX };
	return 0;
}

static int end(void **state)
{
	(void)state;
	known_rules_clear(&known);
	assert_null(known_rules_find(&known, 0));
	return 0;
}

/* Rules that are told apart by a number. */
static struct frame_rules rules_of(uint64_t number)
{
	struct frame_rules rules;

	frame_rules_of_call(&rules);
	rules.op_count = OPS;
	rules.ops[OPS - 1].number2 = number;
	return rules;
}

static void add(uint64_t pc)
{
	const struct frame_rules rules = rules_of(pc);

	assert_non_null(known_rules_add(&known, pc, &rules, &made));
}

static bool is_known(uint64_t pc)
{
	const struct known_rule *rule = known_rules_find(&known, pc);

	if (rule)
		assert_int_equal(known_rule_rules(rule)->ops[OPS - 1].number2, pc);
	return rule;
}

static void rules_are_kept_up_to_their_last_operation(void **state)
{
	const struct frame_rules rules = rules_of(7);
	const size_t length = offsetof(struct frame_rules, ops) + OPS * sizeof(rules.ops[0]);
	const struct known_rule *rule;

	(void)state;
	assert_int_equal(frame_rules_length(&rules), length);
	rule = known_rules_add(&known, 100, &rules, &made);
	assert_non_null(rule);
	assert_ptr_equal(known_rules_find(&known, 100), rule);
	assert_memory_equal(known_rule_rules(rule), &rules, length);
	assert_memory_equal(known_rule_made(rule), &made, sizeof(made));
	assert_null(known_rules_find(&known, 101));
	assert_null(known_rules_find(&known, 99));
}

/* The first register that calls keep, whose number is at least from. */
static int kept_register(int from)
{
	while (!registers_are_kept(from))
		from++;
	return from;
}

static void only_some_registers_have_a_rule_to_follow(void **state)
{
	const int lost = kept_register(0), moved = kept_register(lost + 1);
	struct frame_rules rules = rules_of(7);
	const struct other_rules *others;

	(void)state;
	rules.registers[lost].kind = FRAME_RULE_UNKNOWN;
	rules.registers[moved] = (struct frame_rule){ .kind = FRAME_RULE_REGISTER, .number = (uint8_t)lost };
	others = known_rule_others(known_rules_add(&known, 100, &rules, &made));
	assert_int_equal(others->lost, registers_set_of(lost));
	assert_int_equal(others->count, 1);
	assert_int_equal(others->numbers[0], moved);
	assert_int_equal(others->kept | others->lost | registers_set_of(moved), REGISTERS_ALL_BUT_PC_AND_SP);
	assert_int_equal(others->kept & (others->lost | registers_set_of(moved)), 0);
}

static void that_there_are_none_is_kept_too(void **state)
{
	const struct known_rule *rule = known_rules_add(&known, 100, NULL, &made);

	(void)state;
	assert_non_null(rule);
	assert_ptr_equal(known_rules_find(&known, 100), rule);
	assert_null(known_rule_rules(rule));
	assert_memory_equal(known_rule_made(rule), &made, sizeof(made));
}

/* Rules with other numbers between their fields, as memory had them. */
static struct frame_rules equal_rules(int garbage)
{
	const struct frame_rules rules = rules_of(7);
	struct frame_rules equal;

	memset(&equal, garbage, sizeof(equal));
	equal.is_outermost = rules.is_outermost;
	equal.op_count = rules.op_count;
	equal.cfa = rules.cfa;
	memcpy(equal.registers, rules.registers, sizeof(equal.registers));
	for (size_t i = 0; i < rules.op_count; i++) {
		equal.ops[i].number = rules.ops[i].number;
		equal.ops[i].number2 = rules.ops[i].number2;
		equal.ops[i].atom = rules.ops[i].atom;
	}
	return equal;
}

static const struct frame_rules *added(uint64_t pc, const struct frame_rules *rules,
				       const struct made_code *of)
{
	const struct known_rule *rule = known_rules_add(&known, pc, rules, of);

	assert_non_null(rule);
	return known_rule_rules(rule);
}

static void equal_rules_are_kept_once(void **state)
{
	const struct frame_rules first = equal_rules(0x55), second = equal_rules(0xaa), other = rules_of(8);
	const struct made_code other_code = { 1, 2, 4 };
	const struct frame_rules *kept = added(100, &first, &made);

	(void)state;
	assert_ptr_equal(added(200, &second, &made), kept);
	assert_ptr_not_equal(added(300, &other, &made), kept);
	assert_ptr_not_equal(added(400, &first, &other_code), kept);
	/* As long as one address has them. */
	known_rules_forget(&known, known_rules_find(&known, 100));
	assert_null(known_rules_find(&known, 100));
	assert_ptr_equal(known_rule_rules(known_rules_find(&known, 200)), kept);
	assert_int_equal(kept->ops[OPS - 1].number2, 7);
	assert_ptr_equal(added(100, &first, &made), kept);
	known_rules_clear(&known);
	assert_null(known.kept);
}

static void rules_of_no_address_are_dropped(void **state)
{
	(void)state;
	for (uint64_t pc = 1; pc <= 3; pc++)
		add(pc);
	known_rules_forget(&known, known_rules_find(&known, 2));
	known_rules_forget(&known, known_rules_find(&known, 1));
	known_rules_forget(&known, known_rules_find(&known, 3));
	assert_null(known.kept);
}

static void one_is_forgotten_alone(void **state)
{
	(void)state;
	for (uint64_t pc = 1; pc <= 3; pc++)
		add(pc);
	known_rules_forget(&known, known_rules_find(&known, 2));
	assert_true(is_known(1));
	assert_false(is_known(2));
	assert_true(is_known(3));
	add(2);
	assert_true(is_known(2));
}

static void a_full_cache_forgets_all(void **state)
{
	(void)state;
	for (uint64_t pc = 1; pc <= MAX; pc++)
		add(pc);
	for (uint64_t pc = 1; pc <= MAX; pc++)
		assert_true(is_known(pc));
	add(MAX + 1);
	for (uint64_t pc = 1; pc <= MAX; pc++)
		assert_false(is_known(pc));
	assert_true(is_known(MAX + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rules_are_kept_up_to_their_last_operation, begin, end),
		cmocka_unit_test_setup_teardown(only_some_registers_have_a_rule_to_follow, begin, end),
		cmocka_unit_test_setup_teardown(that_there_are_none_is_kept_too, begin, end),
		cmocka_unit_test_setup_teardown(equal_rules_are_kept_once, begin, end),
		cmocka_unit_test_setup_teardown(rules_of_no_address_are_dropped, begin, end),
		cmocka_unit_test_setup_teardown(one_is_forgotten_alone, begin, end),
		cmocka_unit_test_setup_teardown(a_full_cache_forgets_all, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

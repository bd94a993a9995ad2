/* SPDX-License-Identifier: MIT */
/* Rules from unwind tables in memory: those of functions that this program has, in this very process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <dwarf.h>

#include "src/linux/proc/live_memory.h"
#include "tests/unit/own_module.h"
#include "unwind/native/table_rules.h"

/* One row after the other, of a byte each. Registers: 0 rax, 3 rbx, 6 rbp, 12 r12, 13 r13, 14 r14. */
__asm__(".text\n"
	".balign 16\n"
	"table_rows:\n"
	".cfi_startproc\n"
	"nop\n"
	".cfi_def_cfa_offset 24\n"
	".cfi_offset 3, -24\n"
	"nop\n"
	".cfi_def_cfa 6, 48\n"
	".cfi_register 12, 0\n"
	".cfi_undefined 13\n"
	".cfi_offset 14, -4096\n"
	"nop\n"
	".cfi_same_value 3\n"
	".cfi_def_cfa 12, -8\n"
	"nop\n"
	".cfi_undefined 16\n"
	"nop\n"
	".cfi_endproc\n"
	".balign 16\n"
	/* An expression, which libunwind is not given. */
	"table_expression:\n"
	".cfi_startproc\n"
	".cfi_escape 0x0f, 2, 0x77, 8\n"
	"nop\n"
	".cfi_endproc\n"
	".balign 16\n"
	/* Its return address is where that of no function is. */
	"table_other:\n"
	".cfi_startproc simple\n"
	".cfi_return_column 3\n"
	".cfi_def_cfa 7, 8\n"
	"nop\n"
	".cfi_endproc\n"
	".balign 16\n"
	"table_nothing:\n"
	"nop\n"
	"nop\n");

extern const char table_rows[] __attribute__((visibility("hidden")));
extern const char table_expression[] __attribute__((visibility("hidden")));
extern const char table_other[] __attribute__((visibility("hidden")));
extern const char table_nothing[] __attribute__((visibility("hidden")));

enum { ROW_CALL, ROW_PUSHED, ROW_BY_POINTER, ROW_BY_OTHER, ROW_OUTERMOST };
enum { RAX = 0, RBX = 3, RBP = 6, RSP = 7, R12 = 12, R13 = 13, R14 = 14, RIP = 16 };

static struct live_memory *live;
static struct image *image;
static struct table_rules *tables;

static int begin(void **state)
{
	struct module *module = calloc(1, sizeof(*module));

	(void)state;
	assert_non_null(module);
	live = live_memory_new(getpid());
	image = image_new(live_memory_memory(live));
	*module = own_program();
	image_set_modules(image, module, 1);
	tables = table_rules_new(image);
	return tables ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	table_rules_free(tables);
	table_rules_free(NULL);
	image_free(image);
	live_memory_free(live);
	return 0;
}

static struct frame_rules rules_of(size_t row)
{
	struct frame_rules rules;

	memset(&rules, 0xff, sizeof(rules));
	assert_int_equal(table_rules_find(tables, (uintptr_t)table_rows + row, &rules), TABLE_RULES_FOUND);
	assert_true(frame_rules_valid(&rules));
	return rules;
}

static void assert_cfa(const struct frame_rules *rules, uint64_t number, int64_t offset)
{
	const struct frame_rule_op *op = &rules->ops[rules->cfa.first];

	assert_false(rules->is_outermost);
	assert_int_equal(rules->cfa.kind, FRAME_RULE_VALUE);
	assert_int_equal(rules->cfa.count, 1);
	assert_int_equal(op->atom, DW_OP_bregx);
	assert_int_equal(op->number, number);
	assert_int_equal(op->number2, (uint64_t)offset);
	assert_memory_equal(&rules->registers[RSP], &rules->cfa, sizeof(rules->cfa));
}

static void assert_saved(const struct frame_rules *rules, int number, int64_t offset)
{
	const struct frame_rule *rule = &rules->registers[number];

	assert_int_equal(rule->kind, FRAME_RULE_SAVED_AT_CFA);
	assert_int_equal(rule->count, 1);
	assert_int_equal(rules->ops[rule->first].number, (uint64_t)offset);
}

static void assert_same(const struct frame_rules *rules, int number)
{
	assert_int_equal(rules->registers[number].kind, FRAME_RULE_SAME);
	assert_int_equal(rules->registers[number].count, 0);
}

static void after_a_call_the_return_address_is_on_top(void **state)
{
	const struct frame_rules rules = rules_of(ROW_CALL);

	(void)state;
	assert_cfa(&rules, RSP, 8);
	assert_saved(&rules, RIP, -8);
	for (int number = 0; number < REGISTER_NUMBER_PC; number++)
		if (number != RSP)
			assert_same(&rules, number);
}

static void registers_are_saved_moved_or_lost(void **state)
{
	struct frame_rules rules = rules_of(ROW_PUSHED);

	(void)state;
	assert_cfa(&rules, RSP, 24);
	assert_saved(&rules, RBX, -24);
	assert_saved(&rules, RIP, -8);
	assert_same(&rules, RBP);
	rules = rules_of(ROW_BY_POINTER);
	assert_cfa(&rules, RBP, 48);
	assert_int_equal(rules.registers[R12].kind, FRAME_RULE_REGISTER);
	assert_int_equal(rules.registers[R12].number, RAX);
	assert_int_equal(rules.registers[R13].kind, FRAME_RULE_UNKNOWN);
	assert_saved(&rules, R14, -4096);
	assert_saved(&rules, RBX, -24);
	rules = rules_of(ROW_BY_OTHER);
	assert_cfa(&rules, R12, -8);
	assert_same(&rules, RBX);
}

static void without_a_return_address_there_is_no_caller(void **state)
{
	(void)state;
	assert_true(rules_of(ROW_OUTERMOST).is_outermost);
}

static void other_code_has_no_rules(void **state)
{
	const uint64_t others[] = { (uintptr_t)table_expression, (uintptr_t)table_other, 16,
				    image_module(image, 0)->begin, image_module(image, 0)->end };
	struct frame_rules rules;

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_int_equal(table_rules_find(tables, others[i], &rules), TABLE_RULES_NONE);
	/* What comes behind the last entry before it is none of its code. */
	assert_int_equal(table_rules_find(tables, (uintptr_t)table_nothing, &rules), TABLE_RULES_NONE);
	/* That has no effect on what comes next. */
	rules = rules_of(ROW_PUSHED);
	assert_cfa(&rules, RSP, 24);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(after_a_call_the_return_address_is_on_top),
		cmocka_unit_test(registers_are_saved_moved_or_lost),
		cmocka_unit_test(without_a_return_address_there_is_no_caller),
		cmocka_unit_test(other_code_has_no_rules),
	};

	return cmocka_run_group_tests(tests, begin, end);
}

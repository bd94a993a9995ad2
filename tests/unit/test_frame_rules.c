/* SPDX-License-Identifier: MIT */
/* Rows of call frame information, those of a function that this file has. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <dwarf.h>

#include "unwind/elf/frame_rules.h"

/* One row after the other, of a byte each. Registers: 0 rax, 3 rbx, 6 rbp, 12 r12, 13 r13, 14 r14, 15 r15. */
__asm__(".text\n"
	".globl rows_of_frame\n"
	"rows_of_frame:\n"
	".cfi_startproc\n"
	"nop\n"
	".cfi_def_cfa_offset 24\n"
	".cfi_offset 3, -24\n"
	"nop\n"
	".cfi_register 12, 0\n"
	".cfi_undefined 13\n"
	".cfi_register 14, 17\n" /* xmm0 */
	".cfi_register 15, 50\n" /* es: beyond DW_OP_reg31 */
	".cfi_same_value 3\n"
	"nop\n"
	".cfi_escape 0x14, 14, 4\n" /* DW_CFA_val_offset: 4 * -8; clang's assembler has no name for it */
	".cfi_def_cfa 6, 16\n"
	"nop\n"
	".cfi_undefined 16\n"
	"nop\n"
	".cfi_endproc\n"
	/* A signal's, whose return address is in another column. */
	"rows_of_other:\n"
	".cfi_startproc simple\n"
	".cfi_return_column 3\n"
	".cfi_def_cfa 7, 8\n"
	"nop\n"
	".cfi_endproc\n"
	/* Expressions of 59, 60 and 61 operations (DW_OP_lit0) for r14. */
	"rows_of_long:\n"
	".cfi_startproc\n"
	".cfi_escape 0x16, 14, 59\n" /* DW_CFA_val_expression */
	".rept 59\n"
	".cfi_escape 0x30\n"
	".endr\n"
	"nop\n"
	".cfi_escape 0x16, 14, 60\n"
	".rept 60\n"
	".cfi_escape 0x30\n"
	".endr\n"
	"nop\n"
	".cfi_escape 0x16, 14, 61\n"
	".rept 61\n"
	".cfi_escape 0x30\n"
	".endr\n"
	"nop\n"
	".cfi_endproc\n");

extern const char rows_of_frame[] __attribute__((visibility("hidden")));
extern const char __executable_start[] __attribute__((visibility("hidden")));

enum {
	ROW_CALL,
	ROW_PUSHED,
	ROW_MOVED,
	ROW_EXPRESSIONS,
	ROW_OUTERMOST,
	ROW_OTHER_COLUMN,
	ROW_LONG,
	ROW_TOO_LONG,
	ROW_FAR_TOO_LONG
};
enum { RAX = 0, RBX = 3, RBP = 6, RSP = 7, R12 = 12, R13 = 13, R14 = 14, R15 = 15, RIP = 16 };

static Elf *elf;
static Dwarf_CFI *cfi;

static int open_own_file(void **state)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	(void)state;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	cfi = dwarf_getcfi_elf(elf);
	return cfi ? 0 : -1;
}

static int close_own_file(void **state)
{
	(void)state;
	dwarf_cfi_end(cfi);
	return elf_end(elf);
}

static bool take(size_t row, struct frame_rules *ret_rules)
{
	Dwarf_Frame *frame;
	bool is_taken;

	assert_int_equal(
		dwarf_cfi_addrframe(cfi, (Dwarf_Addr)(rows_of_frame - __executable_start) + row, &frame), 0);
	memset(ret_rules, 0xff, sizeof(*ret_rules));
	is_taken = frame_rules_take(frame, ret_rules);
	free(frame);
	return is_taken;
}

static struct frame_rules rules_of(size_t row)
{
	struct frame_rules rules;

	assert_true(take(row, &rules));
	assert_true(frame_rules_valid(&rules));
	return rules;
}

static void assert_op(const struct frame_rules *rules, const struct frame_rule *rule, size_t index,
		      uint8_t atom, uint64_t number, uint64_t number2)
{
	const struct frame_rule_op *op = &rules->ops[rule->first + index];

	assert_in_range(index, 0, rule->count - 1);
	assert_int_equal(op->atom, atom);
	assert_int_equal(op->number, number);
	assert_int_equal(op->number2, number2);
}

/* Saved at the CFA plus an offset. */
static void assert_saved(const struct frame_rules *rules, int number, int64_t offset)
{
	const struct frame_rule *rule = &rules->registers[number];

	assert_int_equal(rule->kind, FRAME_RULE_SAVED);
	assert_int_equal(rule->count, 2);
	assert_op(rules, rule, 0, DW_OP_call_frame_cfa, 0, 0);
	assert_op(rules, rule, 1, DW_OP_plus_uconst, (uint64_t)offset, 0);
}

static void after_a_call_the_return_address_is_on_top(void **state)
{
	struct frame_rules rules = rules_of(ROW_CALL), known;

	(void)state;
	assert_false(rules.is_outermost);
	assert_int_equal(rules.cfa.kind, FRAME_RULE_VALUE);
	assert_int_equal(rules.cfa.count, 1);
	assert_op(&rules, &rules.cfa, 0, DW_OP_bregx, RSP, 8);
	assert_saved(&rules, RIP, -8);
	assert_int_equal(rules.registers[RBX].kind, FRAME_RULE_SAME);
	/* The same rules without any information. */
	memset(&known, 0xff, sizeof(known));
	frame_rules_of_call(&known);
	assert_true(frame_rules_valid(&known));
	assert_false(known.is_outermost);
	assert_op(&known, &known.cfa, 0, DW_OP_bregx, RSP, 8);
	assert_int_equal(known.registers[RIP].kind, FRAME_RULE_SAVED);
	assert_int_equal(known.registers[RIP].count, 1);
	assert_op(&known, &known.registers[RIP], 0, DW_OP_bregx, RSP, 0);
	assert_int_equal(known.registers[RSP].kind, FRAME_RULE_VALUE);
	assert_op(&known, &known.registers[RSP], 0, DW_OP_bregx, RSP, 8);
	for (int number = 0; number < REGISTER_NUMBERS; number++)
		if (number != RSP && number != RIP)
			assert_int_equal(known.registers[number].kind, FRAME_RULE_SAME);
}

static void registers_are_saved_moved_lost_or_the_same(void **state)
{
	struct frame_rules rules = rules_of(ROW_PUSHED);

	(void)state;
	assert_op(&rules, &rules.cfa, 0, DW_OP_bregx, RSP, 24);
	assert_saved(&rules, RBX, -24);
	assert_saved(&rules, RIP, -8);
	rules = rules_of(ROW_MOVED);
	assert_int_equal(rules.registers[RBX].kind, FRAME_RULE_SAME);
	assert_int_equal(rules.registers[R12].kind, FRAME_RULE_REGISTER);
	assert_int_equal(rules.registers[R12].number, RAX);
	assert_int_equal(rules.registers[R13].kind, FRAME_RULE_UNKNOWN);
	/* What is in a register that is not followed is unknown. */
	assert_int_equal(rules.registers[R14].kind, FRAME_RULE_UNKNOWN);
	assert_int_equal(rules.registers[R15].kind, FRAME_RULE_UNKNOWN);
	rules = rules_of(ROW_EXPRESSIONS);
	assert_op(&rules, &rules.cfa, 0, DW_OP_bregx, RBP, 16);
	assert_int_equal(rules.registers[R14].kind, FRAME_RULE_VALUE);
	assert_int_equal(rules.registers[R14].count, 2);
	assert_op(&rules, &rules.registers[R14], 0, DW_OP_call_frame_cfa, 0, 0);
	assert_op(&rules, &rules.registers[R14], 1, DW_OP_plus_uconst, (uint64_t)-32, 0);
}

static void without_a_return_address_there_is_no_caller(void **state)
{
	struct frame_rules rules = rules_of(ROW_OUTERMOST);

	(void)state;
	assert_true(rules.is_outermost);
	assert_false(take(ROW_OTHER_COLUMN, &rules));
}

/*
 * The CFA and the stack pointer take an operation each, the return address two, and an expression begins with
 * one.
 */
static void expressions_have_room_for_so_many_operations(void **state)
{
	struct frame_rules rules = rules_of(ROW_LONG);

	(void)state;
	assert_int_equal(rules.op_count, FRAME_RULE_OPS_MAX);
	assert_int_equal(rules.registers[R14].kind, FRAME_RULE_VALUE);
	assert_int_equal(rules.registers[R14].count, 60);
	assert_op(&rules, &rules.registers[R14], 0, DW_OP_call_frame_cfa, 0, 0);
	assert_op(&rules, &rules.registers[R14], 59, DW_OP_lit0, 0, 0);
	assert_op(&rules, &rules.cfa, 0, DW_OP_bregx, RSP, 8);
	/* Without room for the CFA, and without room for the return address either. */
	assert_false(take(ROW_TOO_LONG, &rules));
	assert_false(take(ROW_FAR_TOO_LONG, &rules));
}

static void rules_of_another_process_are_checked(void **state)
{
	struct frame_rules whole = rules_of(ROW_EXPRESSIONS), rules;

	(void)state;
	for (int number = -1; number < REGISTER_NUMBERS; number++) {
		for (int fault = 0; fault < 6; fault++) {
			struct frame_rule *rule;

			rules = whole;
			rule = number < 0 ? &rules.cfa : &rules.registers[number];
			switch (fault) {
			case 0: rule->kind = FRAME_RULE_SAVED_AT_CFA + 1; break;
			case 1: rule->number = REGISTER_NUMBERS; break;
			case 2: rule->first = rules.op_count + 1; break;
			case 3: rule->count = (uint8_t)(rules.op_count - rule->first + 1); break;
			case 4:
				*rule = (struct frame_rule){ .kind = FRAME_RULE_SAVED_AT_CFA, .count = 2 };
				break;
			case 5:
				*rule = (struct frame_rule){ .kind = FRAME_RULE_SAVED_AT_CFA, .count = 0 };
				break;
			}
			assert_false(frame_rules_valid(&rules));
		}
		rules = whole;
		*(number < 0 ? &rules.cfa : &rules.registers[number]) = (struct frame_rule){
			.kind = FRAME_RULE_SAVED_AT_CFA,
			.number = REGISTER_NUMBERS - 1,
			.first = (uint8_t)(rules.op_count - 1),
			.count = 1
		};
		assert_true(frame_rules_valid(&rules));
	}
	rules = whole;
	rules.op_count = FRAME_RULE_OPS_MAX;
	assert_true(frame_rules_valid(&rules));
	rules.op_count++;
	assert_false(frame_rules_valid(&rules));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(after_a_call_the_return_address_is_on_top),
		cmocka_unit_test(registers_are_saved_moved_lost_or_the_same),
		cmocka_unit_test(without_a_return_address_there_is_no_caller),
		cmocka_unit_test(expressions_have_room_for_so_many_operations),
		cmocka_unit_test(rules_of_another_process_are_checked),
	};

	return cmocka_run_group_tests(tests, open_own_file, close_own_file);
}

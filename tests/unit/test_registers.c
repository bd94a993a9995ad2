/* SPDX-License-Identifier: MIT */
/* Registers by their numbers, by their names in code, and as the kernel gives them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/made_up_words.h"
#include "tests/unit/same_registers.h"
#include "unwind/elf/register_part_x86_64.h"
#include "unwind/elf/registers.h"
#include "unwind/machine/machine_decoder.h"
#include "unwind/native/core_registers.h"

/* By DWARF's numbers (System V ABI for x86-64, figure 3.36), and whether functions keep them (figure 3.4). */
static const struct {
	const char *name;
	size_t offset;
	unsigned int set; /* 0: always known */
	bool is_kept;
} by_number[] = {
	{ "rax", offsetof(struct registers, rax), REGISTER_OTHERS, false },
	{ "rdx", offsetof(struct registers, rdx), REGISTER_OTHERS, false },
	{ "rcx", offsetof(struct registers, rcx), REGISTER_OTHERS, false },
	{ "rbx", offsetof(struct registers, rbx), REGISTER_RBX, true },
	{ "rsi", offsetof(struct registers, rsi), REGISTER_OTHERS, false },
	{ "rdi", offsetof(struct registers, rdi), REGISTER_OTHERS, false },
	{ "rbp", offsetof(struct registers, rbp), REGISTER_RBP, true },
	{ "rsp", offsetof(struct registers, sp), 0, false },
	{ "r8", offsetof(struct registers, r8), REGISTER_OTHERS, false },
	{ "r9", offsetof(struct registers, r9), REGISTER_OTHERS, false },
	{ "r10", offsetof(struct registers, r10), REGISTER_OTHERS, false },
	{ "r11", offsetof(struct registers, r11), REGISTER_OTHERS, false },
	{ "r12", offsetof(struct registers, r12), REGISTER_R12, true },
	{ "r13", offsetof(struct registers, r13), REGISTER_R13, true },
	{ "r14", offsetof(struct registers, r14), REGISTER_R14, true },
	{ "r15", offsetof(struct registers, r15), REGISTER_R15, true },
	{ "rip", offsetof(struct registers, pc), 0, false },
};

enum { NUMBERS = sizeof(by_number) / sizeof(by_number[0]) };

/* Each register holds a value of its own. */
static struct registers made_up_registers(void)
{
	struct registers registers = { .flags = 1000 };

	for (size_t i = 0; i < NUMBERS; i++)
		*(uint64_t *)(void *)((char *)&registers + by_number[i].offset) = 100 + i;
	return registers;
}

static void a_register_is_found_by_its_number(void **state)
{
	struct registers registers = made_up_registers();
	uint64_t value;

	(void)state;
	assert_int_equal(NUMBERS, REGISTER_NUMBERS);
	for (int number = 0; number < NUMBERS; number++) {
		assert_ptr_equal((char *)registers_locate(&registers, number),
				 (char *)&registers + by_number[number].offset);
		assert_true(registers_get(&registers, number, &value));
		assert_int_equal(value, 100 + number);
		assert_int_equal(registers_set_of(number), by_number[number].set);
		assert_int_equal(registers_are_kept(number), by_number[number].is_kept);
	}
}

static void there_are_no_other_numbers(void **state)
{
	static const int others[] = { -1, INT32_MIN, NUMBERS, NUMBERS + 1, INT32_MAX };
	struct registers registers = made_up_registers();
	uint64_t value = 1;

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_null(registers_locate(&registers, others[i]));
		assert_false(registers_get(&registers, others[i], &value));
		assert_int_equal(registers_set_of(others[i]), REGISTER_OTHERS);
		assert_false(registers_are_kept(others[i]));
	}
	assert_int_equal(value, 1);
}

static void an_unknown_register_has_no_value(void **state)
{
	struct registers registers = made_up_registers();

	(void)state;
	for (unsigned int set = 1; set <= REGISTER_OTHERS; set <<= 1) {
		registers.unknown = set;
		for (int number = 0; number < NUMBERS; number++) {
			uint64_t value = 1;

			assert_int_equal(registers_get(&registers, number, &value),
					 by_number[number].set != set);
			assert_int_equal(value, by_number[number].set != set ? 100 + number : 1);
		}
	}
}

static void a_call_has_six_arguments_and_a_result(void **state)
{
	const struct registers registers = {
		.rdi = 1, .rsi = 2, .rdx = 3, .r10 = 4, .r8 = 5, .r9 = 6, .rax = (uint64_t)-7, .rcx = 8
	};
	uint64_t arguments[CALL_ARGUMENTS];

	(void)state;
	registers_call_arguments(&registers, arguments);
	for (uint64_t i = 0; i < CALL_ARGUMENTS; i++)
		assert_int_equal(arguments[i], i + 1);
	assert_true(registers_call_result(&registers) == -7);
}

static void a_return_takes_the_address_from_the_stack(void **state)
{
	struct made_up stack = { .memory = { .read_ranges = read_ranges }, .words = { 11, 12 } };
	struct registers called = made_up_registers(), caller, expected;

	(void)state;
	called.sp = at(1);
	called.unknown = REGISTER_RBX;
	expected = called;
	expected.sp = at(2);
	expected.pc = 12;
	assert_true(registers_returned(&called, &stack.memory, &caller));
	assert_same_registers(&caller, &expected);
	called.sp = at(WORDS);
	assert_false(registers_returned(&called, &stack.memory, &caller));
	assert_same_registers(&caller, &expected);
	assert_int_equal(registers_code_address(&called, UINT64_MAX), UINT64_MAX);
}

/* The words of struct user_regs_struct, each with its place as its value. */
static void assert_taken(const struct registers *registers)
{

	assert_int_equal(registers->r15, offsetof(struct kernel_registers, r15));
	assert_int_equal(registers->r14, offsetof(struct kernel_registers, r14));
	assert_int_equal(registers->r13, offsetof(struct kernel_registers, r13));
	assert_int_equal(registers->r12, offsetof(struct kernel_registers, r12));
	assert_int_equal(registers->rbp, offsetof(struct kernel_registers, rbp));
	assert_int_equal(registers->rbx, offsetof(struct kernel_registers, rbx));
	assert_int_equal(registers->r11, offsetof(struct kernel_registers, r11));
	assert_int_equal(registers->r10, offsetof(struct kernel_registers, r10));
	assert_int_equal(registers->r9, offsetof(struct kernel_registers, r9));
	assert_int_equal(registers->r8, offsetof(struct kernel_registers, r8));
	assert_int_equal(registers->rax, offsetof(struct kernel_registers, rax));
	assert_int_equal(registers->rcx, offsetof(struct kernel_registers, rcx));
	assert_int_equal(registers->rdx, offsetof(struct kernel_registers, rdx));
	assert_int_equal(registers->rsi, offsetof(struct kernel_registers, rsi));
	assert_int_equal(registers->rdi, offsetof(struct kernel_registers, rdi));
	assert_int_equal(registers->call_number, offsetof(struct kernel_registers, orig_rax));
	assert_int_equal(registers->pc, offsetof(struct kernel_registers, rip));
	assert_int_equal(registers->flags, offsetof(struct kernel_registers, eflags));
	assert_int_equal(registers->sp, offsetof(struct kernel_registers, rsp));
	assert_int_equal(registers->thread_pointer, offsetof(struct kernel_registers, fs_base));
	assert_int_equal(registers->unknown, 0);
}

static struct kernel_registers places(void)
{
	struct kernel_registers registers;
	uint64_t words[sizeof(registers) / sizeof(uint64_t)];

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		words[i] = i * sizeof(words[0]);
	memcpy(&registers, words, sizeof(registers));
	return registers;
}

static void each_register_of_the_kernels_is_taken(void **state)
{
	const struct kernel_registers kernels = places();
	struct registers registers;

	(void)state;
	memset(&registers, 0xff, sizeof(registers));
	registers_take(&kernels, &registers);
	assert_taken(&registers);
}

/* struct elf_prstatus: the process at 32, the registers at 112, and one more word. */
static void a_core_has_them_in_a_note(void **state)
{
	enum { PROCESS_AT = 32, REGISTERS_AT = 112, NOTE_BYTES = 336 };
	const struct kernel_registers kernels = places();
	const size_t enough = REGISTERS_AT + sizeof(kernels);
	uint8_t note[NOTE_BYTES] = { 0 };
	const int32_t tid = 0x12345678;
	struct registers registers;
	pid_t found = 1;

	(void)state;
	memcpy(note + PROCESS_AT, &tid, sizeof(tid));
	memcpy(note + REGISTERS_AT, &kernels, sizeof(kernels));
	assert_true(core_registers_read(note, sizeof(note), &found, &registers));
	assert_int_equal(found, tid);
	assert_taken(&registers);
	found = 1;
	assert_false(core_registers_read(note, enough - 1, &found, &registers));
	assert_false(core_registers_read(note, 0, &found, &registers));
	assert_int_equal(found, 1);
	assert_true(core_registers_read(note, enough, &found, &registers));
	assert_int_equal(found, tid);
	assert_true(core_registers_machine(EM_X86_64));
	assert_false(core_registers_machine(EM_AARCH64));
	assert_false(core_registers_machine(EM_386));
}

/*---- Names in code ----*/

/* The first operand of an instruction. */
static x86_reg decoded(struct machine_decoder *decoder, const uint8_t *code, size_t length)
{
	uint64_t address = 0;

	assert_true(machine_decoder_next(decoder, &code, &length, &address));
	assert_int_equal(length, 0);
	assert_int_equal(decoder->insn->detail->x86.operands[0].type, X86_OP_REG);
	return decoder->insn->detail->x86.operands[0].reg;
}

static void assert_part(x86_reg reg, int index, unsigned int size, unsigned int shift)
{
	struct register_part part = register_part(reg);

	assert_int_equal(part.index, index);
	assert_int_equal(part.size, size);
	assert_int_equal(part.shift, shift);
}

/* mov REGISTER, REGISTER, which has the register's number in its last byte and prefix. */
static void a_name_in_code_is_a_part_of_a_register(void **state)
{
	enum { REX = 0x40, REX_B = 1, REX_R = 4, REX_W = 8, MOV = 0x89, MOV_BYTE = 0x88, WORD_PREFIX = 0x66 };
	struct machine_decoder decoder;

	(void)state;
	assert_true(machine_decoder_open(&decoder));
	for (int index = 0; index < REGISTER_COUNT; index++) {
		const uint8_t rex = index < 8 ? REX : REX | REX_B | REX_R;
		const uint8_t operands = (uint8_t)(0xc0 | (index & 7) << 3 | (index & 7));
		const uint8_t whole[] = { rex | REX_W, MOV, operands }, half[] = { rex, MOV, operands },
			      word[] = { WORD_PREFIX, rex, MOV, operands },
			      byte[] = { rex, MOV_BYTE, operands }, high[] = { MOV_BYTE, operands };
		x86_reg reg = decoded(&decoder, whole, sizeof(whole));

		assert_part(reg, index, 8, 0);
		assert_string_equal(cs_reg_name(decoder.capstone, reg),
				    by_number[register_dwarf_number(index)].name);
		assert_part(decoded(&decoder, half, sizeof(half)), index, 4, 0);
		assert_part(decoded(&decoder, word, sizeof(word)), index, 2, 0);
		assert_part(decoded(&decoder, byte, sizeof(byte)), index, 1, 0);
		/* Without the prefix, four to seven are the second bytes of the first four. */
		if (index >= 4 && index < 8)
			assert_part(decoded(&decoder, high, sizeof(high)), index - 4, 1, 8);
	}
	machine_decoder_close(&decoder);
	assert_int_equal(register_part(X86_REG_RIP).index, -1);
	assert_int_equal(register_part(X86_REG_XMM0).index, -1);
	assert_int_equal(register_part(X86_REG_INVALID).index, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_register_is_found_by_its_number),
		cmocka_unit_test(there_are_no_other_numbers),
		cmocka_unit_test(an_unknown_register_has_no_value),
		cmocka_unit_test(a_call_has_six_arguments_and_a_result),
		cmocka_unit_test(a_return_takes_the_address_from_the_stack),
		cmocka_unit_test(each_register_of_the_kernels_is_taken),
		cmocka_unit_test(a_core_has_them_in_a_note),
		cmocka_unit_test(a_name_in_code_is_a_part_of_a_register),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

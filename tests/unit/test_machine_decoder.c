/* SPDX-License-Identifier: MIT */
/* Where control goes on behind an instruction of x86-64, and which registers calls keep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unwind/machine/machine_decoder.h"

enum { ADDRESS = 0x1000 };

/* What is known of an instruction at the address. */
static const struct {
	const char *bytes;
	size_t length;
	bool jumps, ends, returns;
	uint64_t target; /* 0: none */
} instructions[] = {
#define IS(bytes) bytes, sizeof(bytes) - 1
	{ IS("\xeb\x0e"), true, true, false, ADDRESS + 0x10 },                   /* jmp .+0x10 */
	{ IS("\xe9\xfb\x0f\x00\x00"), true, true, false, ADDRESS + 0x1000 },     /* jmp .+0x1000 */
	{ IS("\x0f\x85\xfa\xf7\xff\xff"), true, false, false, ADDRESS - 0x800 }, /* jne .-0x800 */
	{ IS("\xe3\x0e"), true, false, false, ADDRESS + 0x10 },                  /* jrcxz .+0x10 */
	{ IS("\xff\xe0"), true, true, false, 0 },                                /* jmp *%rax */
	{ IS("\xff\x63\x08"), true, true, false, 0 },                            /* jmp *0x8(%rbx) */
	{ IS("\xe8\x1b\x00\x00\x00"), false, false, false, ADDRESS + 0x20 },     /* call .+0x20 */
	{ IS("\xff\xd0"), false, false, false, 0 },                              /* call *%rax */
	{ IS("\xc3"), false, true, true, 0 },                                    /* ret */
	{ IS("\xc2\x08\x00"), false, true, true, 0 },                            /* ret $0x8 */
	/* Its number is no address. */
	{ IS("\x6a\x10"), false, false, false, 0 },             /* push $0x10 */
	{ IS("\xb8\x10\x00\x00\x00"), false, false, false, 0 }, /* mov $0x10,%eax */
	{ IS("\x90"), false, false, false, 0 },                 /* nop */
#undef IS
};

static void an_instruction_tells_where_control_goes(void **state)
{
	struct machine_decoder decoder;

	(void)state;
	assert_true(machine_decoder_open(&decoder));
	for (size_t i = 0; i < sizeof(instructions) / sizeof(instructions[0]); i++) {
		const uint8_t *code = (const uint8_t *)instructions[i].bytes;
		uint64_t address = ADDRESS, target = 0;
		size_t length = instructions[i].length;

		assert_true(machine_decoder_next(&decoder, &code, &length, &address));
		assert_ptr_equal(code, instructions[i].bytes + instructions[i].length);
		assert_int_equal(address, ADDRESS + instructions[i].length);
		assert_int_equal(length, 0);
		assert_int_equal(machine_decoder_jumps(&decoder), instructions[i].jumps);
		assert_int_equal(machine_decoder_ends(&decoder), instructions[i].ends);
		assert_int_equal(machine_decoder_returns(&decoder), instructions[i].returns);
		assert_int_equal(machine_decoder_target(&decoder, &target), instructions[i].target != 0);
		assert_int_equal(target, instructions[i].target);
	}
	machine_decoder_close(&decoder);
}

static void bytes_that_are_no_instruction_are_stepped_over(void **state)
{
	static const uint8_t bytes[] = { 0x06, 0x90 }; /* no instruction of 64-bit code; nop */
	struct machine_decoder decoder;
	const uint8_t *code = bytes;
	uint64_t address = ADDRESS;
	size_t length = sizeof(bytes);

	(void)state;
	assert_true(machine_decoder_open(&decoder));
	assert_false(machine_decoder_next(&decoder, &code, &length, &address));
	assert_ptr_equal(code, bytes);
	assert_int_equal(length, sizeof(bytes));
	assert_int_equal(address, ADDRESS);
	code += machine_decoder_step();
	length -= machine_decoder_step();
	assert_true(machine_decoder_next(&decoder, &code, &length, &address));
	assert_int_equal(decoder.insn->id, X86_INS_NOP);
	machine_decoder_close(&decoder);
}

/* System V ABI for x86-64, figure 3.4. */
static void calls_keep_six_registers_and_the_stack_pointer(void **state)
{
	static const unsigned int kept[] = { X86_REG_RSP, X86_REG_ESP, X86_REG_SP,   X86_REG_SPL, X86_REG_RBP,
					     X86_REG_EBP, X86_REG_BPL, X86_REG_RBX,  X86_REG_EBX, X86_REG_BL,
					     X86_REG_BH,  X86_REG_R12, X86_REG_R12D, X86_REG_R13, X86_REG_R14,
					     X86_REG_R15, X86_REG_R15B };
	static const unsigned int others[] = { X86_REG_RAX, X86_REG_EAX,     X86_REG_RCX,  X86_REG_DL,
					       X86_REG_RDX, X86_REG_RSI,     X86_REG_RDI,  X86_REG_R8,
					       X86_REG_R9,  X86_REG_R10,     X86_REG_R11,  X86_REG_R11D,
					       X86_REG_RIP, X86_REG_INVALID, X86_REG_XMM0, X86_REG_EFLAGS };

	(void)state;
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		assert_true(machine_decoder_keeps(kept[i]));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(machine_decoder_keeps(others[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_instruction_tells_where_control_goes),
		cmocka_unit_test(bytes_that_are_no_instruction_are_stepped_over),
		cmocka_unit_test(calls_keep_six_registers_and_the_stack_pointer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

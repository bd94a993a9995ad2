/* SPDX-License-Identifier: MIT */
/* What registers and the stack hold after a few instructions, relative to what they held before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "unwind/native/code_path.h"

enum { ADDRESS = 0x1000, RAX = 0, RDX = 1, RCX = 2, RBX = 3, RSI = 4, RBP = 6, RSP = 7, R12 = 12 };

static struct vm_decoder *decoder;
static struct code_path path;
static uint64_t target;
static struct path_value returned;

static int begin(void **state)
{
	(void)state;
	decoder = vm_decoder_new();
	return decoder ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	vm_decoder_free(decoder);
	return 0;
}

/* Follow all instructions, from what the path is at; what becomes of the last one. */
static enum path_step go_on(const char *code, size_t length)
{
	enum path_step step = PATH_ON;

	while (length) {
		const size_t left = length < VM_INSTRUCTION_BYTES_MAX ? length : VM_INSTRUCTION_BYTES_MAX;
		const struct vm_instruction *instruction = vm_decoder_decode(decoder, path.pc,
									     (const uint8_t *)code, left);
		size_t size;

		assert_non_null(instruction);
		assert_int_equal(step, PATH_ON);
		size = vm_instruction_size(instruction);
		step = code_path_step(&path, instruction, &target, &returned);
		code += size;
		length -= size;
	}
	return step;
}

static enum path_step follow(const char *code, size_t length)
{
	code_path_begin(&path, ADDRESS);
	target = 0;
	return go_on(code, length);
}

#define FOLLOW(literal) follow((literal), sizeof(literal) - 1)
#define GO_ON(literal) go_on((literal), sizeof(literal) - 1)

static void assert_value(struct path_value value, enum path_value_kind kind, int number, int64_t offset)
{
	assert_int_equal(value.kind, kind);
	if (kind == PATH_UNKNOWN)
		return;
	assert_int_equal(value.number, number);
	assert_int_equal(value.offset, offset);
}

/* The register holds the initial value of another one plus an offset. */
static void assert_sum(int reg, int number, int64_t offset)
{
	assert_value(path.registers[reg], PATH_SUM, number, offset);
}

/* The register holds the initial word at that place. */
static void assert_loaded(int reg, int number, int64_t offset)
{
	assert_value(path.registers[reg], PATH_LOADED, number, offset);
}

static void assert_unknown(int reg)
{
	assert_value(path.registers[reg], PATH_UNKNOWN, 0, 0);
}

/* All registers but these two are as they were. */
static void assert_others_same(int first, int second)
{
	for (int reg = 0; reg < REGISTER_NUMBER_PC; reg++)
		if (reg != first && reg != second)
			assert_sum(reg, reg, 0);
}

static void at_first_each_register_is_its_own(void **state)
{
	(void)state;
	memset(&path, 0xff, sizeof(path));
	code_path_begin(&path, ADDRESS);
	assert_int_equal(path.pc, ADDRESS);
	assert_others_same(-1, -1);
	assert_int_equal(path.saved_count, 0);
	assert_int_equal(FOLLOW("\x90\x66\x90"), PATH_ON); /* nop; nop */
	assert_int_equal(path.pc, ADDRESS + 3);
	assert_others_same(-1, -1);
}

static void what_is_pushed_is_popped(void **state)
{
	(void)state;
	assert_int_equal(FOLLOW("\x53\x55"), PATH_ON); /* push rbx; push rbp */
	assert_sum(RSP, RSP, -16);
	assert_others_same(RSP, -1);
	assert_int_equal(GO_ON("\x41\x5c\x58"), PATH_ON); /* pop r12; pop rax */
	assert_sum(R12, RBP, 0);
	assert_sum(RAX, RBX, 0);
	assert_sum(RSP, RSP, 0);
	/* Then comes what was there before. */
	assert_int_equal(GO_ON("\x5e"), PATH_ON); /* pop rsi */
	assert_loaded(RSI, RSP, 0);
	assert_sum(RSP, RSP, 8);
	/* A constant, the flags, and a part of a register are no values. */
	FOLLOW("\x6a\x01\x5b"); /* push 1; pop rbx */
	assert_unknown(RBX);
	assert_sum(RSP, RSP, 0);
	FOLLOW("\x9c\x5b"); /* pushfq; pop rbx */
	assert_unknown(RBX);
	FOLLOW("\x53\x9d"); /* push rbx; popfq */
	assert_others_same(-1, -1);
	/* pop rsp leaves what was popped. */
	FOLLOW("\x5c");
	assert_loaded(RSP, RSP, 0);
}

static void moves_take_whole_registers(void **state)
{
	(void)state;
	FOLLOW("\x48\x89\xe5"); /* mov rbp, rsp */
	assert_sum(RBP, RSP, 0);
	assert_others_same(RBP, -1);
	FOLLOW("\x89\xe5"); /* mov ebp, esp */
	assert_unknown(RBP);
	FOLLOW("\x66\x89\xe5"); /* mov bp, sp */
	assert_unknown(RBP);
	FOLLOW("\x88\xc8"); /* mov al, cl */
	assert_unknown(RAX);
	FOLLOW("\x88\xcc"); /* mov ah, cl */
	assert_unknown(RAX);
	assert_others_same(RAX, -1);
	FOLLOW("\x48\xc7\xc3\1\0\0\0"); /* mov rbx, 1 */
	assert_unknown(RBX);
	FOLLOW("\x48\xff\xc3"); /* inc rbx */
	assert_unknown(RBX);
	assert_others_same(RBX, -1);
	FOLLOW("\x48\x99"); /* cqo */
	assert_unknown(RDX);
	FOLLOW("\x48\x93"); /* xchg rax, rbx */
	assert_unknown(RAX);
	assert_unknown(RBX);
	FOLLOW("\x0f\x28\xc1"); /* movaps xmm0, xmm1 */
	assert_others_same(-1, -1);
}

static void sums_are_of_constants(void **state)
{
	(void)state;
	FOLLOW("\x48\x83\xc4\x18"); /* add rsp, 24 */
	assert_sum(RSP, RSP, 24);
	GO_ON("\x48\x83\xec\x08"); /* sub rsp, 8 */
	assert_sum(RSP, RSP, 16);
	GO_ON("\x48\x81\xec\0\1\0\0"); /* sub rsp, 256 */
	assert_sum(RSP, RSP, -240);
	assert_others_same(RSP, -1);
	FOLLOW("\x48\x01\xc4"); /* add rsp, rax */
	assert_unknown(RSP);
	FOLLOW("\x83\xc4\x18"); /* add esp, 24 */
	assert_unknown(RSP);
	FOLLOW("\x48\x03\x04\x24"); /* add rax, [rsp] */
	assert_unknown(RAX);
	/* and rsp, -16: nobody knows by how much. */
	FOLLOW("\x48\x83\xe4\xf0");
	assert_unknown(RSP);
	GO_ON("\x48\x83\xc4\x18");
	assert_unknown(RSP);
}

static void addresses_are_sums(void **state)
{
	(void)state;
	FOLLOW("\x48\x8d\x6c\x24\x10"); /* lea rbp, [rsp+16] */
	assert_sum(RBP, RSP, 16);
	GO_ON("\x48\x8d\x65\xe8"); /* lea rsp, [rbp-24] */
	assert_sum(RSP, RSP, -8);
	FOLLOW("\x48\x8d\x68\x08"); /* lea rbp, [rax+8] */
	assert_sum(RBP, RAX, 8);
	FOLLOW("\x48\x8d\x2c\x04"); /* lea rbp, [rsp+rax] */
	assert_unknown(RBP);
	FOLLOW("\x48\x8d\x2d\0\0\0\0"); /* lea rbp, [rip] */
	assert_unknown(RBP);
	FOLLOW("\x67\x48\x8d\x6d\x08"); /* lea rbp, [ebp+8] */
	assert_unknown(RBP);
	FOLLOW("\x64\x48\x8b\x5c\x24\x08"); /* mov rbx, fs:[rsp+8] */
	assert_unknown(RBX);
	FOLLOW("\x48\x8b\x5c\x24\x08"); /* mov rbx, [rsp+8] */
	assert_loaded(RBX, RSP, 8);
	GO_ON("\x48\x83\xc3\x08"); /* add rbx, 8 */
	assert_unknown(RBX);
	GO_ON("\x48\x8b\x0b"); /* mov rcx, [rbx] */
	assert_unknown(RCX);
	FOLLOW("\x8b\x5c\x24\x08"); /* mov ebx, [rsp+8] */
	assert_unknown(RBX);
}

static void no_frame_is_larger_than_a_gigabyte(void **state)
{
	(void)state;
	FOLLOW("\x48\x8d\xac\x24\0\0\0\x40"); /* lea rbp, [rsp+0x40000000] */
	assert_sum(RBP, RSP, 1 << 30);
	GO_ON("\x48\x8d\x45\x01"); /* lea rax, [rbp+1] */
	assert_unknown(RAX);
	GO_ON("\x48\x8d\x45\xff"); /* lea rax, [rbp-1] */
	assert_sum(RAX, RSP, (1 << 30) - 1);
	FOLLOW("\x48\x8d\xac\x24\1\0\0\x40"); /* lea rbp, [rsp+0x40000001] */
	assert_unknown(RBP);
	FOLLOW("\x48\x8d\xac\x24\0\0\0\xc0"); /* lea rbp, [rsp-0x40000000] */
	assert_sum(RBP, RSP, -(1 << 30));
	GO_ON("\x48\x8d\x45\xff");
	assert_unknown(RAX);
	FOLLOW("\x48\x8d\xac\x24\xff\xff\xff\xbf");
	assert_unknown(RBP);
	/* Twice too far comes not back. */
	FOLLOW("\x48\x81\xec\0\0\0\x40\x48\x81\xec\0\0\0\x40\x48\x81\xc4\0\0\0\x40");
	assert_unknown(RSP);
}

static void a_word_is_what_was_stored_there(void **state)
{
	(void)state;
	/* mov [rsp-16], rbx */
	FOLLOW("\x48\x89\x5c\x24\xf0\x48\x8b\x44\x24\xf0"); /* mov rax, [rsp-16] */
	assert_sum(RAX, RBX, 0);
	GO_ON("\x48\x8b\x44\x24\xf8"); /* mov rax, [rsp-8] */
	assert_loaded(RAX, RSP, -8);
	GO_ON("\x48\x8b\x44\x24\xe8"); /* mov rax, [rsp-24] */
	assert_loaded(RAX, RSP, -24);
	GO_ON("\x48\x8b\x44\x24\xf7"); /* mov rax, [rsp-9] */
	assert_unknown(RAX);
	GO_ON("\x48\x8b\x44\x24\xe9"); /* mov rax, [rsp-23] */
	assert_unknown(RAX);
	/* By another register it is another place. */
	GO_ON("\x48\x8b\x45\xf0"); /* mov rax, [rbp-16] */
	assert_loaded(RAX, RBP, -16);
	/* A later store counts. */
	GO_ON("\x48\x89\x6c\x24\xf0\x48\x8b\x44\x24\xf0"); /* mov [rsp-16], rbp; mov rax, [rsp-16] */
	assert_sum(RAX, RBP, 0);
	assert_int_equal(path.saved_count, 1);
	/* One over half of it takes all of it, and one beside it nothing. */
	GO_ON("\x48\x89\x74\x24\xf8\x48\x8b\x44\x24\xf0"); /* mov [rsp-8], rsi; mov rax, [rsp-16] */
	assert_sum(RAX, RBP, 0);
	GO_ON("\x48\x89\x74\x24\xf4\x48\x8b\x44\x24\xf0"); /* mov [rsp-12], rsi; mov rax, [rsp-16] */
	assert_unknown(RAX);
	GO_ON("\x48\x8b\x44\x24\xf4"); /* mov rax, [rsp-12] */
	assert_sum(RAX, RSI, 0);
}

static void a_store_of_something_else_makes_a_word_unknown(void **state)
{
	(void)state;
	FOLLOW("\x89\x44\x24\xf0"); /* mov [rsp-16], eax */
	GO_ON("\x48\x8b\x5c\x24\xf0");
	assert_unknown(RBX);
	GO_ON("\x48\x8b\x5c\x24\xf3"); /* mov rbx, [rsp-13] */
	assert_unknown(RBX);
	GO_ON("\x48\x8b\x5c\x24\xf4"); /* mov rbx, [rsp-12] */
	assert_loaded(RBX, RSP, -12);
	GO_ON("\x48\x8b\x5c\x24\xe9"); /* mov rbx, [rsp-23] */
	assert_unknown(RBX);
	GO_ON("\x48\x8b\x5c\x24\xe8"); /* mov rbx, [rsp-24] */
	assert_loaded(RBX, RSP, -24);
	/* All between two such stores is in doubt. */
	GO_ON("\x88\x44\x24\xd0\x48\x8b\x5c\x24\xe8"); /* mov [rsp-48], al; mov rbx, [rsp-24] */
	assert_unknown(RBX);
	GO_ON("\x48\x8b\x5c\x24\xc8"); /* mov rbx, [rsp-56] */
	assert_loaded(RBX, RSP, -56);
	GO_ON("\x48\x8b\x5c\x24\xf4");
	assert_loaded(RBX, RSP, -12);
	/* A known word among them stays known, until something is stored over it. */
	GO_ON("\x48\x89\x74\x24\xe0\x48\x8b\x5c\x24\xe0"); /* mov [rsp-32], rsi; mov rbx, [rsp-32] */
	assert_sum(RBX, RSI, 0);
	GO_ON("\xff\x44\x24\xe4\x48\x8b\x5c\x24\xe0"); /* inc dword [rsp-28] */
	assert_unknown(RBX);
	/* At an address that nobody knows it does not matter. */
	FOLLOW("\x53\x48\x31\xc0\x48\x89\x08\x41\x5c"); /* push rbx; xor rax, rax; mov [rax], rcx; pop r12 */
	assert_sum(R12, RBX, 0);
}

static void some_words_are_known_at_one_time(void **state)
{
	(void)state;
	code_path_begin(&path, ADDRESS);
	for (size_t i = 0; i < CODE_PATH_SAVED_MAX; i++)
		GO_ON("\x53"); /* push rbx */
	assert_int_equal(path.saved_count, CODE_PATH_SAVED_MAX);
	GO_ON("\x55\x58"); /* push rbp; pop rax */
	assert_unknown(RAX);
	GO_ON("\x58");
	assert_sum(RAX, RBX, 0);
	GO_ON("\x55\x58"); /* in the place of what was popped */
	assert_sum(RAX, RBP, 0);
}

static void leave_restores_the_callers_frame(void **state)
{
	(void)state;
	FOLLOW("\xc9"); /* leave */
	assert_sum(RSP, RBP, 8);
	assert_loaded(RBP, RBP, 0);
	/* push rbp; mov rbp, rsp; sub rsp, 64; leave */
	FOLLOW("\x55\x48\x89\xe5\x48\x83\xec\x40\xc9");
	assert_others_same(-1, -1);
}

static void a_call_keeps_some_registers(void **state)
{
	(void)state;
	assert_int_equal(FOLLOW("\xe8\0\1\0\0"), PATH_ON); /* call +256 */
	assert_int_equal(path.pc, ADDRESS + 5);
	for (int reg = 0; reg < REGISTER_NUMBER_PC; reg++) {
		if (reg == RSP || registers_are_kept(reg))
			assert_sum(reg, reg, 0);
		else
			assert_unknown(reg);
	}
	assert_int_equal(FOLLOW("\xff\xd0"), PATH_ON); /* call rax */
	assert_sum(RSP, RSP, 0);
	assert_unknown(RAX);
	/* One of what follows it only pushes that address. */
	FOLLOW("\xe8\0\0\0\0");
	assert_sum(RSP, RSP, -8);
	assert_others_same(RSP, -1);
	GO_ON("\x5b"); /* pop rbx */
	assert_unknown(RBX);
}

static void a_return_takes_the_top_of_the_stack(void **state)
{
	(void)state;
	assert_int_equal(FOLLOW("\xc3"), PATH_RETURNS);
	assert_value(returned, PATH_LOADED, RSP, 0);
	assert_sum(RSP, RSP, 8);
	assert_int_equal(FOLLOW("\xc2\x10\0"), PATH_RETURNS); /* ret 16 */
	assert_value(returned, PATH_LOADED, RSP, 0);
	assert_sum(RSP, RSP, 24);
	assert_int_equal(FOLLOW("\x53\xc3"), PATH_RETURNS); /* push rbx; ret */
	assert_value(returned, PATH_SUM, RBX, 0);
	assert_int_equal(FOLLOW("\x48\x31\xe4\xc3"), PATH_RETURNS); /* xor rsp, rsp; ret */
	assert_value(returned, PATH_UNKNOWN, 0, 0);
}

static void jumps_go_on_elsewhere(void **state)
{
	static const char others[] = "\x70\x71\x72\x73\x74\x75\x76\x77\x78\x79\x7a\x7b\x7c\x7d\x7e\x7f\xe3";

	(void)state;
	assert_int_equal(FOLLOW("\xeb\x10"), PATH_ON); /* jmp +16 */
	assert_int_equal(path.pc, ADDRESS + 2 + 16);
	assert_int_equal(FOLLOW("\xff\xe0"), PATH_ENDS); /* jmp rax */
	for (size_t i = 0; i < sizeof(others) - 1; i++) {
		const char code[] = { others[i], 0x10 };

		assert_int_equal(follow(code, sizeof(code)), PATH_BRANCHES);
		assert_int_equal(path.pc, ADDRESS + 2);
		assert_int_equal(target, ADDRESS + 2 + 16);
		assert_others_same(-1, -1);
	}
	assert_int_equal(FOLLOW("\x67\xe3\x10"), PATH_BRANCHES); /* jecxz +16 */
	assert_int_equal(target, ADDRESS + 3 + 16);
	for (int op = 0; op < 3; op++) {
		const char code[] = { (char)(0xe0 + op), 0x10 }; /* loopne, loope, loop */

		assert_int_equal(follow(code, sizeof(code)), PATH_BRANCHES);
		assert_int_equal(target, ADDRESS + 2 + 16);
		assert_unknown(RCX);
		assert_others_same(RCX, -1);
	}
}

static void some_instructions_lead_nowhere(void **state)
{
	(void)state;
	assert_int_equal(FOLLOW("\xcc"), PATH_ENDS);         /* int3 */
	assert_int_equal(FOLLOW("\x0f\x0b"), PATH_ENDS);     /* ud2 */
	assert_int_equal(FOLLOW("\xf4"), PATH_ENDS);         /* hlt */
	assert_int_equal(FOLLOW("\xcb"), PATH_ENDS);         /* retf */
	assert_int_equal(FOLLOW("\x48\xcf"), PATH_ENDS);     /* iretq */
	assert_int_equal(FOLLOW("\xc8\x10\0\0"), PATH_ENDS); /* enter 16, 0 */
	assert_int_equal(FOLLOW("\xff\x18"), PATH_ENDS);     /* call far [rax] */
	assert_int_equal(FOLLOW("\xff\x28"), PATH_ENDS);     /* jmp far [rax] */
}

/*---- The decoder ----*/

static void code_that_has_changed_is_decoded_again(void **state)
{
	static const uint8_t nops[VM_INSTRUCTION_BYTES_MAX + 1] = { 0x90, 0x90 }, call[] = { 0xff, 0xd0 };
	const struct vm_instruction *first, *again;

	(void)state;
	first = vm_decoder_decode(decoder, ADDRESS, nops, 2);
	assert_non_null(first);
	assert_int_equal(vm_instruction_size(first), 1);
	assert_false(vm_instruction_is_call(first));
	again = vm_decoder_decode(decoder, ADDRESS, call, sizeof(call));
	assert_non_null(again);
	assert_int_equal(vm_instruction_size(again), 2);
	assert_true(vm_instruction_is_call(again));
	/* The same bytes at another address that shares the place, and fewer of them. */
	again = vm_decoder_decode(decoder, ADDRESS + (1 << 20), call, sizeof(call));
	assert_non_null(again);
	assert_true(vm_instruction_is_call(again));
	assert_null(vm_decoder_decode(decoder, ADDRESS, call, 1));
	assert_null(vm_decoder_decode(decoder, ADDRESS, call, 0));
	assert_non_null(vm_decoder_decode(decoder, ADDRESS, nops, VM_INSTRUCTION_BYTES_MAX));
	assert_null(vm_decoder_decode(decoder, ADDRESS, nops, VM_INSTRUCTION_BYTES_MAX + 1));
	vm_decoder_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(at_first_each_register_is_its_own),
		cmocka_unit_test(what_is_pushed_is_popped),
		cmocka_unit_test(moves_take_whole_registers),
		cmocka_unit_test(sums_are_of_constants),
		cmocka_unit_test(addresses_are_sums),
		cmocka_unit_test(no_frame_is_larger_than_a_gigabyte),
		cmocka_unit_test(a_word_is_what_was_stored_there),
		cmocka_unit_test(a_store_of_something_else_makes_a_word_unknown),
		cmocka_unit_test(some_words_are_known_at_one_time),
		cmocka_unit_test(leave_restores_the_callers_frame),
		cmocka_unit_test(a_call_keeps_some_registers),
		cmocka_unit_test(a_return_takes_the_top_of_the_stack),
		cmocka_unit_test(jumps_go_on_elsewhere),
		cmocka_unit_test(some_instructions_lead_nowhere),
		cmocka_unit_test(code_that_has_changed_is_decoded_again),
	};

	return cmocka_run_group_tests(tests, begin, end);
}

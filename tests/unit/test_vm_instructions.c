/* SPDX-License-Identifier: MIT */
/* What the machine of the VM's code calculates, and where it branches, is what the CPU does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/range_bytes.h"
#include "unwind/vm/vm_machine.h"

/* Each piece begins with two operands in rax and rcx, the address of some words in r8, and 0 in rdx. */
#define PIECE(name, code) \
#name ":\n" \
	      "mov %rdi, %rax\n" \
	      "mov %rsi, %rcx\n" \
	      "mov %rdx, %r8\n" \
	      "mov $0, %edx\n" code "ret\n"

/*
 * Each condition has two bits of rdx, by a jump and by a conditional move. lea and mov leave the flags alone.
 */
#define JUMP(condition, bit) "j" condition " 1f\nlea " bit "(%rdx), %rdx\n1:\n"
#define MOVE(condition, bit) "lea " bit "(%rdx), %r9\ncmov" condition " %r9, %rdx\n"
#define BOTH(condition, jump_bit, move_bit) JUMP(condition, jump_bit) MOVE(condition, move_bit)
#define CONDITIONS_OF_SHIFTS \
	BOTH("e", "0x1", "0x2") \
	BOTH("ne", "0x4", "0x8") \
	BOTH("b", "0x10", "0x20") \
	BOTH("ae", "0x40", "0x80") \
	BOTH("be", "0x100", "0x200") \
	BOTH("a", "0x400", "0x800") BOTH("s", "0x1000", "0x2000") BOTH("ns", "0x4000", "0x8000")
#define CONDITIONS \
	CONDITIONS_OF_SHIFTS \
	BOTH("l", "0x10000", "0x20000") \
	BOTH("ge", "0x40000", "0x80000") \
	BOTH("le", "0x100000", "0x200000") \
	BOTH("g", "0x400000", "0x800000") JUMP("o", "0x1000000") JUMP("no", "0x2000000")

/* A shift of more than a bit leaves the overflow flag undefined, and one of none all flags as they are. */
#define PIECES(X) \
	X(add_64, "add %rcx, %rax\n" CONDITIONS) \
	X(add_32, "add %ecx, %eax\n" CONDITIONS) \
	X(add_16, "add %cx, %ax\n" CONDITIONS) \
	X(add_8, "add %ch, %al\n" CONDITIONS) \
	X(add_small, "add $-3, %rax\n" CONDITIONS) \
	X(subtract_64, "sub %rcx, %rax\n" CONDITIONS) \
	X(subtract_32, "sub %ecx, %eax\n" CONDITIONS) \
	X(subtract_8, "sub %cl, %ah\n" CONDITIONS) \
	X(compare_64, "cmp %rcx, %rax\n" CONDITIONS) \
	X(compare_32, "cmp %ecx, %eax\n" CONDITIONS) \
	X(compare_16, "cmp %cx, %ax\n" CONDITIONS) \
	X(compare_small, "cmp $-2, %eax\n" CONDITIONS) \
	X(and_64, "and %rcx, %rax\n" CONDITIONS) \
	X(and_8, "and %cl, %al\n" CONDITIONS) \
	X(test_32, "test %ecx, %eax\n" CONDITIONS) \
	X(or_64, "or %rcx, %rax\n" CONDITIONS) \
	X(or_16, "or %cx, %ax\n" CONDITIONS) \
	X(xor_64, "xor %rcx, %rax\n" CONDITIONS) \
	X(xor_32, "xor %ecx, %eax\n" CONDITIONS) \
	X(zero, "xor %eax, %eax\n" CONDITIONS) \
	X(negate_64, "neg %rax\n" CONDITIONS) \
	X(negate_32, "neg %eax\n" CONDITIONS) \
	X(complement, "cmp %rcx, %rax\nnot %rax\n" CONDITIONS) \
	X(left_64, "cmp $2, %rax\nshl %cl, %rax\n" CONDITIONS_OF_SHIFTS) \
	X(left_32, "cmp $2, %rax\nshl %cl, %eax\n" CONDITIONS_OF_SHIFTS) \
	X(left_by_one, "shl %rax\n" CONDITIONS_OF_SHIFTS) \
	X(right_64, "cmp $2, %rax\nshr %cl, %rax\n" CONDITIONS_OF_SHIFTS) \
	X(right_32, "cmp $2, %rax\nshr %cl, %eax\n" CONDITIONS_OF_SHIFTS) \
	X(right_by_three, "shr $3, %rax\n" CONDITIONS_OF_SHIFTS) \
	X(right_by_one, "shr %eax\n" CONDITIONS_OF_SHIFTS) \
	X(signed_right_64, "cmp $2, %rax\nsar %cl, %rax\n" CONDITIONS_OF_SHIFTS) \
	X(signed_right_32, "cmp $2, %rax\nsar %cl, %eax\n" CONDITIONS_OF_SHIFTS) \
	X(signed_right_by_five, "sar $5, %eax\n" CONDITIONS_OF_SHIFTS) \
	X(move_bytes, "mov %cl, %ah\nmov %ch, %al\n") \
	X(move_16, "mov %cx, %ax\n") \
	X(move_32, "mov %ecx, %eax\n") \
	X(move_numbers, "movabs $0x123456789abcdef0, %rcx\nmov $-7, %rdx\nadd %rcx, %rax\n") \
	X(extend_8, "movzbl %ch, %eax\nmovsbq %cl, %rdx\n") \
	X(extend_16, "movzwl %cx, %edx\nmovswl %cx, %eax\n") \
	X(extend_32, "cltq\nmovslq %ecx, %rdx\n") \
	X(exchange, "xchg %rax, %rcx\nmov %rcx, %rdx\n") \
	X(exchange_in_memory, "mov %rcx, (%r8)\nxchg %rax, (%r8)\nmov (%r8), %rdx\n") \
	X(address_64, "lea -8(%rax,%rcx,4), %rax\n") \
	X(address_32, "lea -8(%eax,%ecx,2), %rax\n") \
	X(address_of_code, "lea 1f(%rip), %rax\nlea 1f-7(%rip), %rdx\n1:\n") \
	X(on_the_stack, "push %rax\npush %rcx\nmov 8(%rsp), %rdx\npop %rax\npop %rcx\nadd %rcx, %rax\n") \
	X(numbers_on_the_stack, "push $-7\npop %rax\npush $-0x12345678\npop %rdx\n") \
	X(call, "call 1f\nadd $1, %rax\njmp 2f\n1:\nadd $16, %rax\nret\n2:\n") \
	X(jump_by_register, "lea 1f(%rip), %rcx\njmp *%rcx\nadd $5, %rax\n1:\n") \
	X(words, "and $3, %ecx\nmov (%r8,%rcx,8), %rax\nmovsbl 5(%r8), %edx\n") \
	X(parts_of_a_store, \
	  "mov %rax, 8(%r8)\nmov 12(%r8), %eax\nmovzwl 9(%r8), %edx\nmovsbq 15(%r8), %rcx\nadd %rcx, %rdx\n") \
	X(last_store, "mov %rax, (%r8)\nmov %ecx, 4(%r8)\nmov (%r8), %eax\nmov 4(%r8), %edx\n") \
	X(add_in_memory, "mov %eax, (%r8)\nadd %ecx, (%r8)\n" CONDITIONS "mov (%r8), %eax\n") \
	X(zero_extends, "mov $-1, %rdx\nmov %eax, %edx\n")

__asm__(".text\n"
	"first_piece:\n" PIECES(PIECE) /* The flags are those of the first operand. */
	"with_flags:\n"
	"push %rdi\n"
	"popf\n"
	"flags_are_set:\n"
	"mov $0, %eax\n"
	"mov $0, %edx\n" CONDITIONS "ret\n"
	"nop\n"
	"last_piece:\n"
	".zero 16, 0x90\n");

/* rax and rdx */
struct result {
	uint64_t first, second;
};

typedef struct result piece(uint64_t a, uint64_t b, uint64_t *words);

#define DECLARE(name, code) extern piece name __attribute__((visibility("hidden")));
PIECES(DECLARE)
extern piece first_piece __attribute__((visibility("hidden")));
extern piece last_piece __attribute__((visibility("hidden")));
extern piece with_flags __attribute__((visibility("hidden")));
extern piece flags_are_set __attribute__((visibility("hidden")));

#define ENTRY(name, code) { #name, name },
static const struct {
	const char *name;
	piece *code;
} pieces[] = { PIECES(ENTRY) };

enum { DATA_WORDS = 4, WORDS = 32, STACK_AT = WORDS - 1, RETURNS_TO = 0x1000 };

static const uint64_t data[DATA_WORDS] = { 0x8182838485868788, 0x1020304050607080, UINT64_MAX, 7 };
static uint64_t memory_words[WORDS];

static const uint64_t operands[] = {
	0,
	1,
	2,
	7,
	31,
	32,
	63,
	0x7f,
	0x80,
	0xffff,
	0x7fffffff,
	0x80000000,
	0xfffffffe,
	INT64_MAX,
	(uint64_t)INT64_MIN,
	UINT64_MAX,
	0x123456789abcdef0,
};

enum { OPERANDS = sizeof(operands) / sizeof(operands[0]) };

static uint64_t address_of(piece *code)
{
	return (uint64_t)(uintptr_t)code;
}

/* The pieces and the words. */
static void read_own(struct memory *memory, struct memory_range *ranges, size_t count)
{
	const uint64_t text = address_of(first_piece);

	(void)memory;
	for (size_t i = 0; i < count; i++) {
		range_bytes(&ranges[i], 1, text, (const void *)(uintptr_t)text,
			    address_of(last_piece) + VM_INSTRUCTION_BYTES_MAX - text);
		if (ranges[i].status != MEMORY_OK)
			range_bytes(&ranges[i], 1, (uint64_t)(uintptr_t)memory_words, memory_words,
				    sizeof(memory_words));
	}
}

static struct vm_decoder *decoder;

static int open_decoder(void **state)
{
	(void)state;
	decoder = vm_decoder_new();
	return decoder ? 0 : -1;
}

static int close_decoder(void **state)
{
	(void)state;
	vm_decoder_free(decoder);
	return 0;
}

static void set_words(void)
{
	memcpy(memory_words, data, sizeof(data));
	memory_words[STACK_AT] = RETURNS_TO;
}

/* Run to the return. */
static struct result run(piece *code, uint64_t a, uint64_t b, uint64_t flags)
{
	const struct vm_code vm = { .begin = address_of(first_piece), .end = address_of(last_piece) };
	const struct registers registers = { .pc = address_of(code),
					     .sp = (uint64_t)(uintptr_t)&memory_words[STACK_AT],
					     .rdi = a,
					     .rsi = b,
					     .rdx = (uint64_t)(uintptr_t)memory_words,
					     .flags = flags };
	struct memory memory = { .read_ranges = read_own };
	struct vm_machine machine;

	set_words();
	vm_machine_clear(&machine);
	machine.decoder = decoder;
	machine.vm = &vm;
	machine.text = machine.memory = &memory;
	vm_machine_load_registers(&machine, &registers);
	assert_int_equal(vm_machine_run(&machine), VM_PROGRESS_RETURNED);
	assert_int_equal(machine.pc, RETURNS_TO);
	assert_int_equal(machine.registers[RSP].bits, registers.sp + sizeof(uint64_t));
	assert_false(machine.guessed);
	assert_true(machine.registers[RAX].known && machine.registers[RDX].known);
	return (struct result){ machine.registers[RAX].bits, machine.registers[RDX].bits };
}

static void instructions_give_what_the_cpu_gives(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		for (size_t j = 0; j < (size_t)OPERANDS * OPERANDS; j++) {
			const uint64_t a = operands[j / OPERANDS], b = operands[j % OPERANDS];
			struct result real, made;

			set_words();
			real = pieces[i].code(a, b, memory_words);
			made = run(pieces[i].code, a, b, 0);
			if (real.first != made.first || real.second != made.second)
				fail_msg("%s of %#jx and %#jx", pieces[i].name, (uintmax_t)a, (uintmax_t)b);
		}
	}
}

/* Of the thread's own flags, too. */
static void branches_are_those_of_the_cpu(void **state)
{
	enum { CARRY = 1 << 0, ALWAYS = 1 << 1, ZERO = 1 << 6, SIGN = 1 << 7, OVERFLOW = 1 << 11 };

	(void)state;
	for (unsigned int i = 0; i < 16; i++) {
		const uint64_t flags = ALWAYS | (i & 1 ? CARRY : 0) | (i & 2 ? ZERO : 0) |
				       (i & 4 ? SIGN : 0) | (i & 8 ? OVERFLOW : 0);
		const struct result real = with_flags(flags, 0, memory_words);

		assert_int_equal(real.second, run(flags_are_set, 0, 0, flags).second);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(instructions_give_what_the_cpu_gives),
		cmocka_unit_test(branches_are_those_of_the_cpu),
	};

	return cmocka_run_group_tests(tests, open_decoder, close_decoder);
}

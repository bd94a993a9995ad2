/* SPDX-License-Identifier: MIT */
#include "unwind/native/code_path.h"

#include "unwind/native/code_path_parts.h"
#include "unwind/native/vm_decoder_arm64.h"

enum {
	WORD = 8,
	ZERO_OR_SP = 31,
	SIZE_64 = 3, /* of a load or store, as a shift */
	KINDS_OF_ORR = 0xffe0ffe0,
	MOVE_REGISTER = 0xaa0003e0, /* orr xd, xzr, xm */
};

static const struct path_value unknown = { .kind = PATH_UNKNOWN };

static void set(struct code_path *path, unsigned int number, struct path_value value)
{
	if (number != ZERO_OR_SP)
		path->registers[number] = value;
}

static struct path_value get(const struct code_path *path, unsigned int number)
{
	return number == ZERO_OR_SP ? unknown : path->registers[number];
}

/* Load or store one 64-bit register, or lose what has other sizes. */
static void transfer(struct code_path *path, uint32_t word, unsigned int number, struct path_value address,
		     int64_t size)
{
	bool is_vector = bits_of(word, 26, 1), is_load = bits_of(word, 22, 1);

	if (!is_load)
		code_path_store(path, address, size, is_vector || size != WORD ? unknown : get(path, number));
	else if (!is_vector)
		set(path, number, size == WORD ? code_path_load(path, address) : unknown);
}

static void run_pair(struct code_path *path, uint32_t word, struct path_value address)
{
	int64_t size = bits_of(word, 26, 1) ? INT64_C(4) << bits_of(word, 30, 2)
					    : INT64_C(4) << bits_of(word, 31, 1);

	transfer(path, word, rd_of(word), address, size);
	transfer(path, word, rt2_of(word), code_path_plus(address, size), size);
}

/* ldr, str and the like: opc 0 stores, and any other loads or is of a vector of 16 bytes. */
static void run_single(struct code_path *path, uint32_t word, struct path_value address)
{
	int64_t size = INT64_C(1) << bits_of(word, 30, 2);

	if (bits_of(word, 26, 1) && bits_of(word, 23, 1))
		size = 2 * WORD;
	if (bits_of(word, 22, 2) == 0 || bits_of(word, 26, 1))
		transfer(path, word, rd_of(word), address, size);
	else
		set(path, rd_of(word),
		    bits_of(word, 30, 2) == SIZE_64 ? code_path_load(path, address) : unknown);
}

static void run_memory(struct code_path *path, uint32_t word)
{
	struct path_value base = path->registers[rn_of(word)], address = base;
	bool is_before = false, writes_back;
	int64_t offset = 0;

	writes_back = instruction_writes_back(word, &offset, &is_before);
	if (is_load_scaled(word))
		offset = (int64_t)bits_of(word, 10, 12) << bits_of(word, 30, 2);
	if (is_load_indexed(word))
		address = unknown;
	else if (!writes_back || is_before)
		address = code_path_plus(base, offset);
	if (is_pair(word))
		run_pair(path, word, address);
	else
		run_single(path, word, address);
	if (writes_back)
		path->registers[rn_of(word)] = code_path_plus(base, offset);
}

/* Of all but loads, stores, and add or sub with an immediate: does it set the stack pointer, and not xzr? */
static bool sets_sp(uint32_t word)
{
	enum { FLAGS = 3 };

	/*
	 * and, orr and eor with an immediate, as and sp, xn, #mask, which aligns a stack; ands, tst have xzr.
	 */
	return (has_bits(word, 0x1f80001f, 0x1200001f) && bits_of(word, 29, 2) != FLAGS) ||
	       /* add and sub with an extended register, as sub sp, sp, xm of alloca(); adds, cmp have xzr. */
	       has_bits(word, 0x3fe0001f, 0x0b20001f) ||
	       /* addvl, addpl, addsvl, addspl; addg, subg; irg; addpt, subpt */
	       has_bits(word, 0xffa0f01f, 0x0420501f) || has_bits(word, 0xbfc0001f, 0x9180001f) ||
	       has_bits(word, 0xffe0fc1f, 0x9ac0101f) || has_bits(word, 0xbfe0e01f, 0x9a00201f);
}

/* False for instructions that are not known to be harmless. */
static bool run(struct code_path *path, uint32_t word)
{
	bool is_64 = bits_of(word, 31, 1);

	if (is_hint(word))
		return true;
	if (is_pair(word) || is_load_scaled(word) || is_load_unscaled(word) || is_load_indexed(word)) {
		run_memory(path, word);
		return true;
	}
	if (is_add_immediate(word)) {
		struct path_value sum = code_path_plus(path->registers[rn_of(word)],
						       instruction_addend(word));

		/* Those that set flags have the zero register where the others have the stack pointer. */
		if (!bits_of(word, 29, 1))
			path->registers[rd_of(word)] = is_64 ? sum : unknown;
		else
			set(path, rd_of(word), is_64 ? sum : unknown);
		return true;
	}
	if (has_bits(word, KINDS_OF_ORR, MOVE_REGISTER)) {
		set(path, rd_of(word), get(path, rm_of(word)));
		return true;
	}
	if (sets_sp(word))
		path->registers[REGISTER_NUMBER_SP] = unknown;
	/* Exclusive and atomic accesses write two registers, others at most one. */
	if (has_bits(word, 0x3f000000, 0x08000000)) {
		set(path, rt2_of(word), unknown);
		set(path, rm_of(word), unknown);
	}
	set(path, rd_of(word), unknown);
	return true;
}

enum path_step code_path_step(struct code_path *path, const struct vm_instruction *instruction,
			      uint64_t *ret_target, struct path_value *ret_return)
{
	uint32_t word = instruction->word;

	path->pc += INSTRUCTION_BYTES;
	if (is_return(word)) {
		unsigned int number = bits_of(word, 11, 1) ? (unsigned int)REGISTER_LR : rn_of(word);

		*ret_return = get(path, number);
		return PATH_RETURNS;
	}
	if (is_branch(word)) {
		path->pc = instruction_target(instruction);
		return PATH_ON;
	}
	if (is_call(word) || is_call_register(word)) {
		for (int number = 0; number < REGISTER_NUMBERS; number++)
			if (registers_set_of(number) == REGISTER_OTHERS)
				path->registers[number] = unknown;
		return PATH_ON;
	}
	if (is_conditional(word) || is_compare_branch(word) || is_test_branch(word)) {
		*ret_target = instruction_target(instruction);
		return PATH_BRANCHES;
	}
	/* br, brk, eret, and what is no instruction. */
	if (has_bits(word, 0xfe000000, 0xd6000000) || has_bits(word, 0xff000000, 0xd4000000) ||
	    has_bits(word, 0xffff0000, 0))
		return word == 0xd4000001 && run(path, 0xd2800000) ? PATH_ON : PATH_ENDS; /* svc gives x0 */
	return run(path, word) ? PATH_ON : PATH_ENDS;
}

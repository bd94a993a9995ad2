/* SPDX-License-Identifier: MIT */
#include "unwind/members/member_loads_parts.h"

#include <string.h>

#include "unwind/native/vm_decoder_arm64.h"

enum {
	WORD = 8,
	ZERO_OR_SP = 31,
	FIRST_ARGUMENT = 0,
	FIRST_KEPT = 19, /* x19 to x28, and x29, keep their values over a call */
	LAST_KEPT = 29,
	LSL_3 = 0x7000, /* of a register as offset: lsl #3 */
	INDEX_KIND = 0xf000,
	MOVE_REGISTER = 0xaa0003e0, /* orr xd, xzr, xm */
	MOVE_REGISTER_BITS = 0xffe0ffe0,
};

static const struct member_value unknown;

static void set(struct member_state *state, unsigned int number, struct member_value value)
{
	if (number != ZERO_OR_SP)
		state->values[number] = value;
}

static struct member_value get(const struct member_state *state, unsigned int number)
{
	return number == ZERO_OR_SP ? unknown : state->values[number];
}

/* A load of these bytes from there into the register; of a vector, no general register changes. */
static void load(const struct member_code *code, struct member_state *state, unsigned int number,
		 bool is_vector, const struct member_value *base, int64_t offset, bool is_indexed,
		 unsigned int bytes)
{
	struct member_value path = unknown;

	if (member_path(base, offset, is_indexed, &path))
		member_note(code->loads, &path, bytes);
	if (!is_vector)
		set(state, number, bytes == WORD ? path : unknown);
}

static void follow_pair(const struct member_code *code, struct member_state *state, uint32_t word,
			const struct member_value *base, int64_t offset)
{
	bool is_vector = bits_of(word, 26, 1);
	unsigned int bytes = is_vector ? 4U << bits_of(word, 30, 2) : 4U << bits_of(word, 31, 1);

	if (!bits_of(word, 22, 1))
		return;
	load(code, state, rd_of(word), is_vector, base, offset, false, bytes);
	load(code, state, rt2_of(word), is_vector, base, offset + bytes, false, bytes);
}

static void follow_single(const struct member_code *code, struct member_state *state, uint32_t word,
			  const struct member_value *base, int64_t offset, bool is_indexed)
{
	bool is_vector = bits_of(word, 26, 1);
	unsigned int bytes = 1U << bits_of(word, 30, 2), kind = bits_of(word, 22, 2);

	/* The upper bit of the kind says: a vector of 16 bytes, or a number whose sign is extended. */
	if (is_vector && (kind & 2))
		bytes = 2 * WORD;
	if (is_vector ? kind & 1 : kind != 0)
		load(code, state, rd_of(word), is_vector, base, offset, is_indexed, bytes);
}

static unsigned int scale_of(uint32_t word)
{
	return bits_of(word, 26, 1) && bits_of(word, 23, 1) ? 4 : bits_of(word, 30, 2);
}

static void follow_memory(const struct member_code *code, struct member_state *state, uint32_t word)
{
	const struct member_value base = get(state, rn_of(word));
	bool is_before = false, is_indexed = is_load_indexed(word);
	int64_t by = 0;
	bool writes_back = instruction_writes_back(word, &by, &is_before);
	int64_t offset = writes_back && !is_before ? 0 : by;

	if (is_load_scaled(word))
		offset = (int64_t)bits_of(word, 10, 12) << scale_of(word);
	if (is_pair(word))
		follow_pair(code, state, word, &base, offset);
	else if (!is_indexed || (word & INDEX_KIND) == LSL_3)
		follow_single(code, state, word, &base, offset, is_indexed);
	else
		follow_single(code, state, word, &unknown, 0, false);
	if (writes_back) {
		struct member_value moved = base;

		moved.plus += by;
		set(state, rn_of(word), moved);
	}
}

/* Does an instruction that is no jump, load or store leave all general registers as they are? */
static bool is_without_result(uint32_t word)
{
	bool is_vector = has_bits(word, 0x0e000000, 0x0e000000);
	bool is_moved_out = has_bits(word, 0x5f20fc00, 0x1e200000) || /* fmov, fcvt to a general register */
			    has_bits(word, 0x9fe0dc00, 0x0e000c00);   /* umov, smov */

	return is_hint(word) || (is_vector && !is_moved_out) ||
	       has_bits(word, 0x3fe00010, 0x3a400000); /* ccmp, ccmn */
}

static void follow(const struct member_code *code, struct member_state *state, uint32_t word)
{
	if (is_pair(word) || is_load_scaled(word) || is_load_unscaled(word) || is_load_indexed(word)) {
		follow_memory(code, state, word);
	} else if (is_add_immediate(word) && bits_of(word, 31, 1)) {
		struct member_value sum = get(state, rn_of(word));

		sum.plus += instruction_addend(word);
		set(state, rd_of(word), sum);
	} else if (has_bits(word, MOVE_REGISTER_BITS, MOVE_REGISTER)) {
		set(state, rd_of(word), get(state, rm_of(word)));
	} else if (!is_without_result(word)) {
		/* Exclusive and atomic accesses write two registers, others one. */
		set(state, rd_of(word), unknown);
		if (has_bits(word, 0x3f000000, 0x08000000)) {
			set(state, rt2_of(word), unknown);
			set(state, rm_of(word), unknown);
		}
	}
}

bool member_code_open(struct member_code *code, struct member_state *state)
{
	(void)code;
	state->values[FIRST_ARGUMENT].is_known = true;
	return true;
}

void member_code_close(struct member_code *code)
{
	(void)code;
}

enum member_step member_code_step(const struct member_code *code, size_t *offset, struct member_state *state,
				  uint64_t *ret_target)
{
	struct vm_instruction instruction = { .address = code->address + *offset };
	uint32_t word;

	if (code->length - *offset < INSTRUCTION_BYTES)
		return MEMBER_ENDS;
	memcpy(&instruction.word, code->bytes + *offset, INSTRUCTION_BYTES);
	word = instruction.word;
	*offset += INSTRUCTION_BYTES;
	if (is_call(word) || is_call_register(word)) {
		for (unsigned int number = 0; number < MEMBER_REGISTERS; number++)
			if (number < FIRST_KEPT || number > LAST_KEPT)
				state->values[number] = unknown;
		return MEMBER_ON;
	}
	*ret_target = instruction_target(&instruction);
	if (is_branch(word))
		return MEMBER_JUMPS;
	if (is_conditional(word) || is_compare_branch(word) || is_test_branch(word))
		return MEMBER_BRANCHES;
	/* ret, br, brk, eret, and what is no instruction. */
	if (has_bits(word, 0xfe000000, 0xd6000000) || has_bits(word, 0xff000000, 0xd4000000) ||
	    has_bits(word, 0xffff0000, 0))
		return MEMBER_ENDS;
	follow(code, state, word);
	return MEMBER_ON;
}

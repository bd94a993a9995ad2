/* SPDX-License-Identifier: MIT */
/* Read where requests keep their phase from the arm64 code of lua-nginx-module. */
#include "unwind/lua/request.h"

#include <string.h>

#include "unwind/native/vm_decoder_arm64.h"

enum {
	INSTRUCTIONS_MAX = 40,
	REGISTERS = 32,
	ZERO_OR_SP = 31,
	SIZE_64 = 3,    /* of a load, as a shift */
	LSL_3 = 0x7000, /* of a register as offset: lsl #3 */
	INDEX_KIND = 0xf000,
	MOVE_REGISTER = 0xaa0003e0, /* orr xd, xzr, xm */
	MOVE_REGISTER_BITS = 0xffe0ffe0,
};

/* The value in a register, as far as it matters here. */
enum meaning {
	ANYTHING,
	REQUEST,  /* the first argument */
	ADDRESS,  /* a fixed address */
	LOADED,   /* loaded from a fixed address: ctx_index, or a pointer to the module */
	INDEX,    /* ctx_index, loaded through such a pointer */
	CONTEXTS, /* a member of the request: r->ctx, if it is indexed */
	CONTEXT,  /* r->ctx[ctx_index] */
};

struct value {
	enum meaning meaning;
	uint64_t address; /* ADDRESS; LOADED: from where */
	int32_t offset;   /* CONTEXTS: in the request */
};

struct state {
	struct value values[REGISTERS];
	uint64_t at; /* the address that the index or the pointer to the module came from */
	int32_t r_ctx;
	bool through_pointer;
};

static void set(struct state *state, unsigned int number, struct value value)
{
	if (number != ZERO_OR_SP)
		state->values[number] = value;
}

static struct value get(const struct state *state, unsigned int number)
{
	return number == ZERO_OR_SP ? (struct value){ .meaning = ANYTHING } : state->values[number];
}

static bool is_member_offset(int64_t offset)
{
	return offset > 0 && offset < INT16_MAX;
}

/* ldr, ldrh and the like from a fixed offset: how many bytes, and from where. */
static bool is_load(uint32_t word, unsigned int *ret_bytes, int64_t *ret_offset)
{
	if (!is_load_scaled(word) || bits_of(word, 26, 1) || bits_of(word, 22, 2) == 0)
		return false;
	*ret_bytes = 1U << bits_of(word, 30, 2);
	*ret_offset = (int64_t)bits_of(word, 10, 12) << bits_of(word, 30, 2);
	return true;
}

/* adrp and adr */
static uint64_t page_of(const struct vm_instruction *instruction)
{
	uint32_t word = instruction->word;
	int64_t distance = signed_bits_of(word, 5, 19) * 4 + bits_of(word, 29, 2);

	return bits_of(word, 31, 1) ? (instruction->address & ~UINT64_C(0xfff)) + (uint64_t)distance * 4096
				    : instruction->address + (uint64_t)distance;
}

/* The meaning of a value of 8 bytes loaded from memory. */
static struct value loaded(const struct value *base, int64_t offset)
{
	struct value value = { .meaning = ANYTHING };

	if (base->meaning == ADDRESS) {
		value.meaning = LOADED;
		value.address = base->address + (uint64_t)offset;
	} else if (base->meaning == LOADED && offset == 0) {
		value.meaning = INDEX;
		value.address = base->address;
	} else if (base->meaning == REQUEST && is_member_offset(offset)) {
		value.meaning = CONTEXTS;
		value.offset = (int32_t)offset;
	}
	return value;
}

/* ldr xt, [contexts, index, lsl #3] */
static struct value loaded_by_index(struct state *state, uint32_t word)
{
	struct value base = get(state, rn_of(word)), index = get(state, rm_of(word));
	struct value value = { .meaning = ANYTHING };

	if (base.meaning == CONTEXTS && bits_of(word, 30, 2) == SIZE_64 && (word & INDEX_KIND) == LSL_3 &&
	    (index.meaning == LOADED || index.meaning == INDEX)) {
		state->through_pointer = index.meaning == INDEX;
		state->at = index.address;
		state->r_ctx = base.offset;
		value.meaning = CONTEXT;
	}
	return value;
}

static void follow(struct state *state, const struct vm_instruction *instruction)
{
	uint32_t word = instruction->word;
	struct value base = get(state, rn_of(word)), value = { .meaning = ANYTHING };
	unsigned int bytes;
	int64_t offset;

	/* Comparisons write to the zero register. */
	if (is_hint(word))
		return;
	if (is_load(word, &bytes, &offset)) {
		if (bytes == sizeof(uint64_t))
			value = loaded(&base, offset);
	} else if (is_load_indexed(word)) {
		value = loaded_by_index(state, word);
	} else if (has_bits(word, 0x1f000000, 0x10000000)) {
		value = (struct value){ .meaning = ADDRESS, .address = page_of(instruction) };
	} else if (is_add_immediate(word) && base.meaning == ADDRESS && bits_of(word, 31, 1)) {
		value = base;
		value.address += (uint64_t)instruction_addend(word);
	} else if (has_bits(word, MOVE_REGISTER_BITS, MOVE_REGISTER)) {
		value = get(state, rm_of(word));
	}
	set(state, rd_of(word), value);
}

/* Is this a load from the context? It loads the phase, and completes the result. */
static bool is_result(const struct state *state, uint32_t word, struct request_code *ret_code)
{
	unsigned int bytes;
	int64_t offset;

	if (!is_load(word, &bytes, &offset) || get(state, rn_of(word)).meaning != CONTEXT ||
	    !is_member_offset(offset) || (bytes != 2 && bytes != 4))
		return false;
	*ret_code = (struct request_code){
		.module = state->at,
		.module_is_pointer = state->through_pointer,
		.r_ctx = state->r_ctx,
		.ctx_context = (int32_t)offset,
		.context_size = bytes,
	};
	return true;
}

static bool decode(const uint8_t *code, size_t length, uint64_t address, size_t at,
		   struct vm_instruction *ret_at)
{
	if (at > length || length - at < INSTRUCTION_BYTES)
		return false;
	ret_at->address = address + at;
	memcpy(&ret_at->word, code + at, INSTRUCTION_BYTES);
	return true;
}

static bool branches(uint32_t word)
{
	return is_conditional(word) || is_compare_branch(word) || is_test_branch(word);
}

/*
 * Follow the code. If it returns without a result, follow the target of the last
 * conditional jump instead, once.
 */
bool request_code_read(const uint8_t *code, size_t length, uint64_t address, struct request_code *ret_code)
{
	struct state state = { .values = { { .meaning = REQUEST } } }, at_jump = state;
	struct vm_instruction instruction;
	uint64_t target = 0;
	size_t at = 0;

	for (unsigned int i = 0; i < INSTRUCTIONS_MAX && decode(code, length, address, at, &instruction);
	     i++) {
		at += INSTRUCTION_BYTES;
		if (is_result(&state, instruction.word, ret_code))
			return true;
		if (branches(instruction.word)) {
			at_jump = state;
			target = instruction_target(&instruction);
		} else if (is_return(instruction.word) || is_branch(instruction.word)) {
			if (target < address || target >= address + length)
				return false;
			state = at_jump;
			at = (size_t)(target - address);
			target = 0;
		} else {
			follow(&state, &instruction);
		}
	}
	return false;
}

/* cmp xn, xm of the request and one of its members: the member's offset, or 0 */
static int32_t compared(const struct state *state, uint32_t word)
{
	struct value first = get(state, rn_of(word)), second = get(state, rm_of(word));

	if (!has_bits(word, 0xffe0fc1f, 0xeb00001f))
		return 0;
	if (first.meaning == CONTEXTS && second.meaning == REQUEST)
		return first.offset;
	return first.meaning == REQUEST && second.meaning == CONTEXTS ? second.offset : 0;
}

/*
 * The first member that the code loads is the connection. The code compares main with the
 * request, on any branch before that.
 */
bool request_code_read_main(const uint8_t *code, size_t length, uint64_t address, int32_t *ret_connection,
			    int32_t *ret_main)
{
	struct state state = { .values = { { .meaning = REQUEST } } };
	struct vm_instruction instruction;
	int32_t connection = 0, main;

	for (size_t at = 0; decode(code, length, address, at, &instruction); at += INSTRUCTION_BYTES) {
		main = connection ? compared(&state, instruction.word) : 0;
		if (main) {
			*ret_connection = connection;
			*ret_main = main;
			return true;
		}
		if (branches(instruction.word))
			continue;
		follow(&state, &instruction);
		if (!connection && get(&state, rd_of(instruction.word)).meaning == CONTEXTS)
			connection = get(&state, rd_of(instruction.word)).offset;
	}
	return false;
}

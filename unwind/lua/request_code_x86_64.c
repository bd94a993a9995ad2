/* SPDX-License-Identifier: MIT */
/* Read where requests keep their phase from the code of lua-nginx-module. */
#include "unwind/lua/request.h"

#include "unwind/elf/register_part_x86_64.h"
#include "unwind/machine/machine_decoder.h"

enum { INSTRUCTIONS_MAX = 40 };

/* The value in a register, as far as it matters here. */
enum meaning {
	ANYTHING,
	REQUEST,  /* the first argument */
	LOADED,   /* loaded from a fixed address: ctx_index, or a pointer to the module */
	INDEX,    /* ctx_index, loaded through such a pointer */
	CONTEXTS, /* r->ctx */
	CONTEXT,  /* r->ctx[ctx_index] */
};

struct state {
	enum meaning meaning[REGISTER_COUNT];
	uint64_t at; /* the address that LOADED came from */
	int32_t r_ctx;
	bool through_pointer;
};

/* The number of a 32-bit or 64-bit register; -1 for others. */
static int number_of(unsigned int reg)
{
	struct register_part part = register_part(reg);

	return part.size >= 4 ? part.index : -1;
}

static enum meaning meaning_of(const struct state *state, unsigned int reg)
{
	int number = number_of(reg);

	return number < 0 ? ANYTHING : state->meaning[number];
}

/* The meaning of a value of 8 bytes loaded from memory. */
static enum meaning load(struct state *state, const cs_insn *insn, const x86_op_mem *from)
{
	enum meaning base = meaning_of(state, from->base);
	enum meaning index = meaning_of(state, from->index);

	if (from->base == X86_REG_RIP && from->index == X86_REG_INVALID) {
		state->at = insn->address + insn->size + (uint64_t)from->disp;
		return LOADED;
	}
	if (from->index == X86_REG_INVALID && base == LOADED && from->disp == 0)
		return INDEX;
	if (from->index == X86_REG_INVALID && base == REQUEST && from->disp > 0 && from->disp < INT16_MAX) {
		state->r_ctx = (int32_t)from->disp;
		return CONTEXTS;
	}
	if (base == CONTEXTS && from->scale == sizeof(uint64_t) && from->disp == 0 &&
	    (index == LOADED || index == INDEX)) {
		state->through_pointer = index == INDEX;
		return CONTEXT;
	}
	return ANYTHING;
}

/* Is this a load from the context? It loads the phase, and completes the result. */
static bool is_result(const struct state *state, const cs_x86 *x86, struct request_code *ret_code)
{
	const cs_x86_op *from = &x86->operands[1];

	if (x86->op_count != 2 || from->type != X86_OP_MEM || from->mem.index != X86_REG_INVALID ||
	    meaning_of(state, from->mem.base) != CONTEXT || from->mem.disp <= 0 ||
	    from->mem.disp > INT16_MAX || (from->size != 2 && from->size != 4))
		return false;
	*ret_code = (struct request_code){
		.module = state->at,
		.module_is_pointer = state->through_pointer,
		.r_ctx = state->r_ctx,
		.ctx_context = (int32_t)from->mem.disp,
		.context_size = from->size,
	};
	return true;
}

static void follow(struct state *state, const cs_insn *insn)
{
	const cs_x86 *x86 = &insn->detail->x86;
	const cs_x86_op *to = &x86->operands[0], *from = &x86->operands[1];
	enum meaning meaning = ANYTHING;
	int number;

	/* Comparisons change no register. */
	if (x86->op_count == 0 || to->type != X86_OP_REG || insn->id == X86_INS_TEST ||
	    insn->id == X86_INS_CMP)
		return;
	number = number_of(to->reg);
	if (insn->id == X86_INS_MOV && x86->op_count == 2 && to->size == sizeof(uint64_t)) {
		if (from->type == X86_OP_MEM)
			meaning = load(state, insn, &from->mem);
		else if (from->type == X86_OP_REG)
			meaning = meaning_of(state, from->reg);
	}
	if (number >= 0)
		state->meaning[number] = meaning;
}

/*
 * Follow the code. If it returns without a result, follow the target of the last
 * conditional jump instead, once.
 */
static bool run(struct machine_decoder *decoder, const uint8_t *code, size_t length, uint64_t address,
		struct request_code *ret_code)
{
	cs_insn *insn = decoder->insn;
	struct state state = { .meaning = { [7] = REQUEST } }, at_jump = state;
	const uint8_t *next = code;
	uint64_t pc = address, target = 0;
	size_t left = length;

	for (unsigned int i = 0; i < INSTRUCTIONS_MAX; i++) {
		const cs_x86 *x86 = &insn->detail->x86;

		if (!machine_decoder_next(decoder, &next, &left, &pc))
			return false;
		if (is_result(&state, x86, ret_code))
			return true;
		if (insn->id == X86_INS_JE || insn->id == X86_INS_JNE) {
			at_jump = state;
			target = (uint64_t)x86->operands[0].imm;
		} else if (insn->id == X86_INS_RET || insn->id == X86_INS_JMP) {
			if (target < address || target >= address + length)
				return false;
			state = at_jump;
			next = code + (target - address);
			left = length - (size_t)(target - address);
			pc = target;
			target = 0;
		} else {
			follow(&state, insn);
		}
	}
	return false;
}

bool request_code_read(const uint8_t *code, size_t length, uint64_t address, struct request_code *ret_code)
{
	struct machine_decoder decoder;
	bool found;

	if (!machine_decoder_open(&decoder))
		return false;
	found = run(&decoder, code, length, address, ret_code);
	machine_decoder_close(&decoder);
	return found;
}

/* Is the operand a member of the request: 8 bytes at a fixed offset from the first argument? */
static bool is_member(const struct state *state, const cs_x86_op *operand)
{
	return operand->type == X86_OP_MEM && operand->size == sizeof(uint64_t) &&
	       operand->mem.index == X86_REG_INVALID && meaning_of(state, operand->mem.base) == REQUEST &&
	       operand->mem.disp > 0 && operand->mem.disp < INT16_MAX;
}

/*
 * The first member that the code loads is the connection. The code compares main
 * with the request, in memory or loaded, on any branch before that.
 */
static bool find_main(struct machine_decoder *decoder, const uint8_t *code, size_t length, uint64_t address,
		      int32_t *ret_connection, int32_t *ret_main)
{
	cs_insn *insn = decoder->insn;
	struct state state = { .meaning = { [7] = REQUEST } };
	int32_t connection = 0, loaded = 0;

	while (machine_decoder_next(decoder, &code, &length, &address)) {
		const cs_x86 *x86 = &insn->detail->x86;
		const cs_x86_op *first = &x86->operands[0], *second = &x86->operands[1];
		bool is_compared = insn->id == X86_INS_CMP && connection;

		if (is_compared && (is_member(&state, first) || is_member(&state, second)))
			loaded = (int32_t)(is_member(&state, first) ? first : second)->mem.disp;
		else if (is_compared)
			is_compared = loaded && first->type == X86_OP_REG && second->type == X86_OP_REG &&
				      (meaning_of(&state, first->reg) == REQUEST ||
				       meaning_of(&state, second->reg) == REQUEST);
		if (is_compared) {
			*ret_connection = connection;
			*ret_main = loaded;
			return true;
		}
		if (insn->id == X86_INS_MOV && x86->op_count == 2 && is_member(&state, second)) {
			if (connection)
				loaded = (int32_t)second->mem.disp;
			else
				connection = (int32_t)second->mem.disp;
		}
		follow(&state, insn);
	}
	return false;
}

bool request_code_read_main(const uint8_t *code, size_t length, uint64_t address, int32_t *ret_connection,
			    int32_t *ret_main)
{
	struct machine_decoder decoder;
	bool found;

	if (!machine_decoder_open(&decoder))
		return false;
	found = find_main(&decoder, code, length, address, ret_connection, ret_main);
	machine_decoder_close(&decoder);
	return found;
}

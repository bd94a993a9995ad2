/* SPDX-License-Identifier: MIT */
#include "unwind/members/member_loads.h"

#include <string.h>

#include <capstone/capstone.h>

#include "unwind/elf/register_part_x86_64.h"

enum {
	OFFSET_MAX = 4096,
	BRANCHES_MAX = 32,
	INSTRUCTIONS_MAX = 512,
};

/* The pointer that loads along these offsets lead to, plus a number of bytes. */
struct value {
	bool is_known;
	size_t depth;
	int32_t offsets[MEMBER_DEPTH_MAX];
	int64_t plus;
};

struct state {
	struct value values[REGISTER_COUNT];
};

struct branch {
	size_t target; /* offset in the code */
	struct state state;
};

struct reading {
	csh capstone;
	cs_insn *insn;
	const uint8_t *code;
	size_t length;
	uint64_t address;
	bool visited[MEMBER_CODE_MAX];
	struct branch branches[BRANCHES_MAX];
	size_t branch_count, branches_done, instructions;
	struct member_loads *loads;
};

static const struct value unknown;

static struct value *value_of(struct state *state, x86_reg reg)
{
	struct register_part part = register_part(reg);

	return part.index < 0 || part.size != sizeof(uint64_t) ? NULL : &state->values[part.index];
}

static void forget(struct state *state, x86_reg reg)
{
	struct register_part part = register_part(reg);

	if (part.index >= 0)
		state->values[part.index] = unknown;
}

/* The path of a memory operand: that of its base, and one step more. False if that is unknown. */
static bool path_of(struct state *state, const x86_op_mem *mem, struct value *ret_path)
{
	const struct value *base = mem->segment == X86_REG_INVALID ? value_of(state, mem->base) : NULL;
	int64_t offset;

	if (!base || !base->is_known || base->depth == MEMBER_DEPTH_MAX)
		return false;
	offset = base->plus + mem->disp;
	if (offset < 0 || offset >= OFFSET_MAX)
		return false;
	if (mem->index != X86_REG_INVALID) {
		if (mem->scale != sizeof(uint64_t) || offset != 0)
			return false;
		offset = MEMBER_INDEXED;
	}
	*ret_path = *base;
	ret_path->plus = 0;
	ret_path->offsets[ret_path->depth++] = (int32_t)offset;
	return true;
}

static void note(struct member_loads *loads, const struct value *path, unsigned int bytes)
{
	struct member_load *load = &loads->loads[loads->count];

	if (loads->count == MEMBER_LOADS_MAX || member_loads_have(loads, path->depth, path->offsets))
		return;
	load->depth = path->depth;
	memcpy(load->offsets, path->offsets, sizeof(load->offsets));
	load->bytes = bytes;
	loads->count++;
}

static void note_loads(struct reading *reading, struct state *state)
{
	const cs_x86 *x86 = &reading->insn->detail->x86;

	if (reading->insn->id == X86_INS_LEA || reading->insn->id == X86_INS_NOP)
		return;
	for (size_t i = 0; i < x86->op_count; i++) {
		const cs_x86_op *operand = &x86->operands[i];
		struct value path;

		if (operand->type == X86_OP_MEM && (operand->access & CS_AC_READ) &&
		    path_of(state, &operand->mem, &path))
			note(reading->loads, &path, operand->size);
	}
}

/* What an instruction leaves in the register that it writes. */
static struct value result_of(struct reading *reading, struct state *state)
{
	const cs_x86 *x86 = &reading->insn->detail->x86;
	const cs_x86_op *to = &x86->operands[0], *from = &x86->operands[1];
	const struct value *source = from->type == X86_OP_REG ? value_of(state, from->reg) : NULL;
	const struct value *own = value_of(state, to->reg);
	struct value path;

	if (x86->op_count != 2 || !own)
		return unknown;
	switch ((int)reading->insn->id) {
	case X86_INS_MOV:
		if (from->type == X86_OP_MEM && path_of(state, &from->mem, &path))
			return path;
		return source ? *source : unknown;
	case X86_INS_LEA:
		source = value_of(state, from->mem.base);
		if (!source || !source->is_known || from->mem.index != X86_REG_INVALID)
			return unknown;
		path = *source;
		path.plus += from->mem.disp;
		return path;
	case X86_INS_ADD:
		if (from->type != X86_OP_IMM || !own->is_known)
			return unknown;
		path = *own;
		path.plus += from->imm;
		return path;
	default: return unknown;
	}
}

static void follow(struct reading *reading, struct state *state)
{
	static const x86_reg clobbered[] = { X86_REG_RAX, X86_REG_RCX, X86_REG_RDX, X86_REG_RSI, X86_REG_RDI,
					     X86_REG_R8,  X86_REG_R9,  X86_REG_R10, X86_REG_R11 };
	const cs_insn *insn = reading->insn;
	const cs_x86_op *to = &insn->detail->x86.operands[0];
	struct value result = unknown, *written = NULL;

	if (insn->id == X86_INS_CALL) {
		for (size_t i = 0; i < sizeof(clobbered) / sizeof(clobbered[0]); i++)
			forget(state, clobbered[i]);
		return;
	}
	if (insn->id == X86_INS_CMP || insn->id == X86_INS_TEST)
		return;
	if (insn->detail->x86.op_count > 0 && to->type == X86_OP_REG) {
		written = value_of(state, to->reg);
		result = result_of(reading, state);
	}
	for (size_t i = 0; i < insn->detail->regs_write_count; i++)
		forget(state, insn->detail->regs_write[i]);
	for (size_t i = 0; i < insn->detail->x86.op_count; i++)
		if (insn->detail->x86.operands[i].type == X86_OP_REG &&
		    (insn->detail->x86.operands[i].access & CS_AC_WRITE))
			forget(state, insn->detail->x86.operands[i].reg);
	if (result.is_known && written)
		*written = result;
}

static void add_branch(struct reading *reading, int64_t target, const struct state *state)
{
	uint64_t offset = (uint64_t)target - reading->address;

	if (offset >= reading->length || reading->branch_count == BRANCHES_MAX)
		return;
	reading->branches[reading->branch_count].target = (size_t)offset;
	reading->branches[reading->branch_count++].state = *state;
}

/* Follow the code from a branch on, to where it ends or has been followed. */
static void read_branch(struct reading *reading, size_t offset, struct state state)
{
	while (offset < reading->length && !reading->visited[offset] &&
	       reading->instructions++ < INSTRUCTIONS_MAX) {
		const uint8_t *next = reading->code + offset;
		size_t left = reading->length - offset;
		uint64_t pc = reading->address + offset;
		const cs_x86_op *target = &reading->insn->detail->x86.operands[0];

		reading->visited[offset] = true;
		if (!cs_disasm_iter(reading->capstone, &next, &left, &pc, reading->insn) ||
		    reading->insn->id == X86_INS_RET)
			return;
		note_loads(reading, &state);
		if (cs_insn_group(reading->capstone, reading->insn, CS_GRP_JUMP)) {
			if (target->type == X86_OP_IMM)
				add_branch(reading, target->imm, &state);
			if (reading->insn->id == X86_INS_JMP)
				return;
		} else {
			follow(reading, &state);
		}
		offset = reading->length - left;
	}
}

void member_loads_read(const uint8_t *code, size_t length, uint64_t address, struct member_loads *ret_loads)
{
	struct reading reading = {
		.code = code,
		.length = length < MEMBER_CODE_MAX ? length : MEMBER_CODE_MAX,
		.address = address,
		.loads = ret_loads,
	};
	struct state state = { 0 };

	ret_loads->count = 0;
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &reading.capstone) != CS_ERR_OK)
		return;
	cs_option(reading.capstone, CS_OPT_DETAIL, CS_OPT_ON);
	reading.insn = cs_malloc(reading.capstone);
	state.values[RDI].is_known = true;
	if (reading.insn)
		read_branch(&reading, 0, state);
	while (reading.insn && reading.branches_done < reading.branch_count) {
		const struct branch *branch = &reading.branches[reading.branches_done++];

		read_branch(&reading, branch->target, branch->state);
	}
	cs_free(reading.insn, 1);
	cs_close(&reading.capstone);
}

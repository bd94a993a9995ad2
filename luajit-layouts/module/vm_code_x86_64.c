/* SPDX-License-Identifier: MIT */
#include "luajit-layouts/module/vm_code_x86_64.h"

#include <capstone/capstone.h>
#include <stdlib.h>
#include <string.h>

/* LuaJIT's names for its registers (vm_x64.dasc, vm_x86.dasc with X64). */
enum {
	BASE = X86_REG_RDX,
	PC = X86_REG_RBX,
	DISPATCH = X86_REG_R14,
	KBASE = X86_REG_R15,
	RA = X86_REG_RCX,
	RB = X86_REG_RBP,
	RD = X86_REG_RAX,
	CARG1 = X86_REG_RDI,
	CARG2 = X86_REG_RSI,
	STACK = X86_REG_RSP,
};

enum { CFRAME_RESUME = 1, FUNCTION_WINDOW = 40 };

struct operand {
	enum { NOTHING, REGISTER, IMMEDIATE, MEMORY } kind;
	unsigned reg;         /* REGISTER: its 64-bit name */
	unsigned base, index; /* MEMORY: 64-bit names, 0 if none */
	int scale;
	int64_t value; /* IMMEDIATE: the number; MEMORY: the displacement */
	unsigned size; /* bytes accessed */
};

struct instruction {
	unsigned id;
	struct operand to, from; /* first and second operand */
};

struct code {
	struct instruction *at;
	size_t count;
	struct vm_code_evidence *evidence;
};

/* ---- decoding ---------------------------------------------------------- */

static unsigned wide_register(unsigned reg)
{
	static const struct {
		unsigned wide, narrow[3];
	} registers[] = {
		{ X86_REG_RAX, { X86_REG_EAX, X86_REG_AX, X86_REG_AL } },
		{ X86_REG_RCX, { X86_REG_ECX, X86_REG_CX, X86_REG_CL } },
		{ X86_REG_RDX, { X86_REG_EDX, X86_REG_DX, X86_REG_DL } },
		{ X86_REG_RBX, { X86_REG_EBX, X86_REG_BX, X86_REG_BL } },
		{ X86_REG_RSP, { X86_REG_ESP, X86_REG_SP, X86_REG_SPL } },
		{ X86_REG_RBP, { X86_REG_EBP, X86_REG_BP, X86_REG_BPL } },
		{ X86_REG_RSI, { X86_REG_ESI, X86_REG_SI, X86_REG_SIL } },
		{ X86_REG_RDI, { X86_REG_EDI, X86_REG_DI, X86_REG_DIL } },
		{ X86_REG_R12, { X86_REG_R12D, X86_REG_R12W, X86_REG_R12B } },
		{ X86_REG_R13, { X86_REG_R13D, X86_REG_R13W, X86_REG_R13B } },
		{ X86_REG_R14, { X86_REG_R14D, X86_REG_R14W, X86_REG_R14B } },
		{ X86_REG_R15, { X86_REG_R15D, X86_REG_R15W, X86_REG_R15B } },
	};

	for (size_t i = 0; i < sizeof(registers) / sizeof(registers[0]); i++) {
		for (size_t width = 0; width < 3; width++) {
			if (registers[i].narrow[width] == reg)
				return registers[i].wide;
		}
	}
	return reg;
}

static struct operand decode_operand(const cs_x86_op *op)
{
	struct operand operand = { .kind = NOTHING, .size = op->size };

	switch (op->type) {
	case X86_OP_REG:
		operand.kind = REGISTER;
		operand.reg = wide_register(op->reg);
		break;
	case X86_OP_IMM:
		operand.kind = IMMEDIATE;
		operand.value = op->imm;
		break;
	case X86_OP_MEM:
		operand.kind = MEMORY;
		operand.base = wide_register(op->mem.base);
		operand.index = wide_register(op->mem.index);
		operand.scale = op->mem.scale;
		operand.value = op->mem.disp;
		break;
	case X86_OP_INVALID:
	default: break;
	}
	return operand;
}

static struct instruction decode_instruction(const cs_insn *insn)
{
	struct instruction instruction = { .id = insn->id };

	/* Bytes that are no instruction (constants, padding) carry no detail. */
	if (insn->id == 0 || insn->detail == NULL)
		return instruction;
	if (insn->detail->x86.op_count > 0)
		instruction.to = decode_operand(&insn->detail->x86.operands[0]);
	if (insn->detail->x86.op_count > 1)
		instruction.from = decode_operand(&insn->detail->x86.operands[1]);
	return instruction;
}

/* NULL when memory is short; *ret_count instructions otherwise. */
static struct instruction *decode(const uint8_t *bytes, size_t length, uint64_t address, size_t *ret_count)
{
	struct instruction *instructions;
	size_t count = 0;
	cs_insn *insn;
	csh capstone;

	if (cs_open(CS_ARCH_X86, CS_MODE_64, &capstone) != CS_ERR_OK)
		return NULL;
	cs_option(capstone, CS_OPT_DETAIL, CS_OPT_ON);
	cs_option(capstone, CS_OPT_SKIPDATA, CS_OPT_ON);
	insn = cs_malloc(capstone);
	instructions = calloc(length, sizeof(*instructions)); /* at most one a byte */
	while (insn != NULL && instructions != NULL &&
	       cs_disasm_iter(capstone, &bytes, &length, &address, insn))
		instructions[count++] = decode_instruction(insn);
	if (insn != NULL)
		cs_free(insn, 1);
	cs_close(&capstone);
	*ret_count = count;
	return instructions;
}

/* ---- shapes ------------------------------------------------------------ */

static bool is_register(const struct operand *operand, unsigned reg)
{
	return operand->kind == REGISTER && operand->reg == reg;
}

/* [base + displacement] */
static bool is_field(const struct operand *operand, unsigned base)
{
	return operand->kind == MEMORY && operand->base == base && operand->index == 0;
}

static bool is_load(const struct instruction *in, unsigned reg, unsigned base)
{
	return in->id == X86_INS_MOV && is_register(&in->to, reg) && is_field(&in->from, base);
}

static bool is_store(const struct instruction *in, unsigned base, unsigned reg)
{
	return in->id == X86_INS_MOV && is_field(&in->to, base) && is_register(&in->from, reg);
}

static bool is_store_immediate(const struct instruction *in, unsigned base, unsigned size)
{
	return in->id == X86_INS_MOV && is_field(&in->to, base) && in->to.size == size &&
	       in->from.kind == IMMEDIATE;
}

static void note(struct vm_code_evidence *evidence, int32_t *field, const char *name, int64_t value)
{
	if (*field == LAYOUT_UNKNOWN)
		*field = (int32_t)value;
	else if (*field != value && evidence->contradiction == NULL)
		evidence->contradiction = name;
}

#define NOTE(code, field, value) note((code)->evidence, &(code)->evidence->offsets.field, #field, value)

/* The offset in g of a field addressed through DISPATCH. */
static int64_t from_g(const struct code *code, const struct operand *operand)
{
	return code->evidence->offsets.GG_dispatch + operand->value;
}

static int64_t from_J(const struct code *code, const struct operand *operand)
{
	return from_g(code, operand) - code->evidence->offsets.GG_J;
}

/* ---- probes: each reads the code from one instruction on ----------------- */

typedef void probe(const struct code *code, size_t i);

/* Entry from C: mov DISPATCH, L->glref ... add DISPATCH, GG_G2DISP. */
static void probe_dispatch(const struct code *code, size_t i)
{
	const struct instruction *at = &code->at[i];

	if (at->id != X86_INS_ADD || !is_register(&at->to, DISPATCH) || at->from.kind != IMMEDIATE)
		return;
	for (size_t back = 1; back <= 6 && back <= i; back++) {
		if (is_load(&at[-(ptrdiff_t)back], DISPATCH, RB)) {
			NOTE(code, GG_dispatch, at->from.value);
			NOTE(code, L_glref, at[-(ptrdiff_t)back].from.value);
			return;
		}
	}
}

/* set_vmstate, and the store to g->cur_L that comes right before INTERP. */
static void probe_vmstate(const struct code *code, size_t i)
{
	const struct instruction *at = &code->at[i];

	if (!is_store_immediate(at, DISPATCH, 4) || (int32_t)at->from.value >= 0 ||
	    (int32_t)at->from.value < -16)
		return;
	NOTE(code, g_vmstate, from_g(code, &at->to));
	code->evidence->vmstates |= 1u << ~(int32_t)at->from.value;
	if ((int32_t)at->from.value == -1 && i > 0 && is_store(&at[-1], DISPATCH, RB))
		NOTE(code, g_cur_L, from_g(code, &at[-1].to));
}

/* vm_hotloop, vm_hotcall: lea CARG1, J; mov J->L, L. */
static void probe_J(const struct code *code, size_t i)
{
	const struct instruction *at = &code->at[i];

	if (i + 1 >= code->count || at->id != X86_INS_LEA || !is_register(&at->to, CARG1) ||
	    !is_field(&at->from, DISPATCH) || !is_store(&at[1], DISPATCH, RB))
		return;
	NOTE(code, GG_J, from_g(code, &at->from));
	NOTE(code, J_L, from_J(code, &at[1].to));
}

/* BC_JLOOP: J->trace[RD]->mcode, then jit_base and tmpbuf.L (2.0: jit_L). */
static void probe_jloop(const struct code *code, size_t i)
{
	const struct instruction *at = &code->at[i];
	const struct layout *offsets = &code->evidence->offsets;

	if (i + 6 > code->count || !is_load(&at[0], RA, DISPATCH) || at[1].id != X86_INS_MOV ||
	    at[1].from.base != RA || at[1].from.index != RD || !is_load(&at[2], RD, RD) ||
	    !is_load(&at[3], RB, STACK) || !is_store(&at[4], DISPATCH, BASE) ||
	    !is_store(&at[5], DISPATCH, RB))
		return;
	NOTE(code, J_trace, from_J(code, &at[0].from));
	NOTE(code, GCtrace_mcode, at[2].from.value);
	NOTE(code, CFRAME_L, at[3].from.value);
	NOTE(code, g_jit_base, from_g(code, &at[4].to));
	if (offsets->g_cur_L == LAYOUT_UNKNOWN)
		NOTE(code, g_jit_L, from_g(code, &at[5].to));
	else
		NOTE(code, g_tmpbuf_L, from_g(code, &at[5].to));
}

/* vm_exit_handler: the trace number from vmstate, then J->exitno and J->parent. */
static void probe_exit(const struct code *code, size_t i)
{
	const struct instruction *at = &code->at[i];

	if (i + 4 > code->count || !is_load(&at[0], RA, DISPATCH) ||
	    from_g(code, &at[0].from) != code->evidence->offsets.g_vmstate ||
	    !is_store_immediate(&at[1], DISPATCH, 4) || !is_store(&at[2], DISPATCH, RD) ||
	    !is_store(&at[3], DISPATCH, RA))
		return;
	NOTE(code, J_exitno, from_J(code, &at[2].to));
	NOTE(code, J_parent, from_J(code, &at[3].to));
}

/* vm_exit_interp, error exit: lj_err_trace(L, -RD); earlier lj_err_run(L). */
static void probe_exit_error(const struct code *code, size_t i)
{
	const struct instruction *at = &code->at[i];

	if (i + 3 <= code->count && at[0].id == X86_INS_MOV && is_register(&at[0].to, CARG2) &&
	    is_register(&at[0].from, RD) && at[1].id == X86_INS_MOV && is_register(&at[1].to, CARG1) &&
	    is_register(&at[1].from, RB) && at[2].id == X86_INS_NEG && is_register(&at[2].to, CARG2))
		code->evidence->exit_error_code = true;
}

/* vm_resume: its stores and loads of L's fields around the resume mark. */
static void probe_resume(const struct code *code, size_t i)
{
	const struct instruction *at = &code->at[i];
	bool resumed = false, based = false;

	if (at->id != X86_INS_LEA || !is_register(&at->to, KBASE) || !is_field(&at->from, STACK) ||
	    at->from.value != CFRAME_RESUME)
		return;
	for (size_t ahead = 1; ahead < FUNCTION_WINDOW && i + ahead < code->count; ahead++) {
		const struct instruction *in = &at[ahead];

		if (is_store(in, RB, KBASE)) {
			NOTE(code, L_cframe, in->to.value);
		} else if (in->id == X86_INS_CMP && is_field(&in->to, RB) && in->to.size == 1) {
			NOTE(code, L_status, in->to.value);
			resumed = true;
		} else if (resumed && is_load(in, BASE, RB)) {
			NOTE(code, L_base, in->from.value);
			based = true;
		} else if (based && is_load(in, RD, RB)) {
			NOTE(code, L_top, in->from.value);
		} else if (based && is_store(in, STACK, RD)) {
			NOTE(code, CFRAME_MULTRES, in->to.value);
			return;
		}
	}
}

/* vm_cpcall: NRES = L->stack - L->top, then the link to the previous C frame. */
static void probe_cpcall(const struct code *code, size_t i)
{
	const struct instruction *at = &code->at[i];

	if (i < 2 || i + FUNCTION_WINDOW > code->count || !is_load(&at[0], KBASE, RB) ||
	    at[1].id != X86_INS_SUB || !is_register(&at[1].to, KBASE) || !is_field(&at[1].from, RB))
		return;
	NOTE(code, L_stack, at[0].from.value);
	NOTE(code, L_top, at[1].from.value);
	if (is_store(&at[-2], STACK, CARG1) && is_store(&at[-1], STACK, RB)) {
		NOTE(code, CFRAME_L, at[-2].to.value);
		NOTE(code, CFRAME_PC, at[-1].to.value);
	}
	for (const struct instruction *in = &at[2]; in->id != X86_INS_CALL; in++) {
		if (in == &at[FUNCTION_WINDOW - 1])
			return;
		if (is_store_immediate(in, STACK, 4))
			NOTE(code, CFRAME_ERRF, in->to.value);
		else if (is_store(in, STACK, KBASE) && in->to.size == 4)
			NOTE(code, CFRAME_NRES, in->to.value);
		else if (is_store(in, STACK, KBASE))
			NOTE(code, CFRAME_PREV, in->to.value);
		else if (is_store(in, RB, STACK))
			NOTE(code, L_cframe, in->to.value);
	}
}

/* saveregs: the size of the C frame, counting rbp and the return address. */
static void probe_saveregs(const struct code *code, size_t i)
{
	static const unsigned saved[] = { PC, KBASE, DISPATCH, X86_REG_R13, X86_REG_R12 };
	const struct instruction *at = &code->at[i];
	size_t count = 0;

	while (count < sizeof(saved) / sizeof(saved[0]) && i + count + 1 < code->count &&
	       at[count].id == X86_INS_PUSH && is_register(&at[count].to, saved[count]))
		count++;
	if (count >= 3 && at[count].id == X86_INS_SUB && is_register(&at[count].to, STACK) &&
	    at[count].from.kind == IMMEDIATE)
		NOTE(code, CFRAME_size, at[count].from.value + (int64_t)(count + 2) * 8);
}

/* string.byte: cmp str->len, 1; jb; movzx RB, first byte of the string. */
static void probe_string(const struct code *code, size_t i)
{
	const struct instruction *at = &code->at[i];

	if (i + 3 > code->count || at[0].id != X86_INS_CMP || !is_field(&at[0].to, RB) ||
	    at[0].to.size != 4 || at[0].from.kind != IMMEDIATE || at[0].from.value != 1 ||
	    at[1].id != X86_INS_JB || at[2].id != X86_INS_MOVZX || !is_register(&at[2].to, RB) ||
	    !is_field(&at[2].from, RB))
		return;
	NOTE(code, GCstr_len, at[0].to.value);
	NOTE(code, GCstr_size, at[2].from.value);
}

/* The GC check: gc.total against gc.threshold, the word after it. */
static void probe_gc(const struct code *code, size_t i)
{
	const struct instruction *at = &code->at[i];

	if (i + 2 <= code->count && at[0].id == X86_INS_MOV && at[0].to.kind == REGISTER &&
	    is_field(&at[0].from, DISPATCH) && at[1].id == X86_INS_CMP &&
	    is_register(&at[1].to, at[0].to.reg) && is_field(&at[1].from, DISPATCH) &&
	    at[1].from.value == at[0].from.value + at[0].from.size)
		NOTE(code, g_gc_total, from_g(code, &at[0].from));
}

/* The hook tests are the only byte loads from g. */
static void probe_hookmask(const struct code *code, size_t i)
{
	const struct instruction *at = &code->at[i];

	if (at->id == X86_INS_MOVZX && is_field(&at->from, DISPATCH) && at->from.size == 1)
		NOTE(code, g_hookmask, from_g(code, &at->from));
}

/*
 * getmetatable: the load of the name "__metatable" from gcroot[GCROOT_MMNAME...],
 * some way before the indexed load of a base type's metatable.
 */
static void probe_gcroot(const struct code *code, size_t i)
{
	const struct instruction *at = &code->at[i];

	if (at->id != X86_INS_MOV || !is_register(&at->to, RB) || at->from.kind != MEMORY ||
	    at->from.base != DISPATCH || at->from.index == 0)
		return;
	for (size_t back = 1; back <= FUNCTION_WINDOW && back <= i; back++) {
		const struct instruction *in = &at[-(ptrdiff_t)back];

		if (is_load(in, RD, DISPATCH)) {
			NOTE(code, g_gcroot,
			     from_g(code, &in->from) - (int64_t)VM_CODE_MM_METATABLE * in->from.size);
			return;
		}
	}
}

/* vm_ffi_callback: lea DISPATCH, [g + GG_G2DISP]; mov CTSTATE, g->ctype_state. */
static void probe_ffi_callback(const struct code *code, size_t i)
{
	const struct instruction *at = &code->at[i];

	if (i + 2 <= code->count && at[0].id == X86_INS_LEA && is_register(&at[0].to, DISPATCH) &&
	    is_field(&at[0].from, RB) && is_load(&at[1], PC, RB)) {
		NOTE(code, GG_dispatch, at[0].from.value);
		NOTE(code, g_ctype_state, at[1].from.value);
	}
}

static void note_opcode(struct vm_code_evidence *evidence, int *op, const char *name, int64_t value)
{
	if (*op == LAYOUT_UNKNOWN)
		*op = (int)(uint8_t)value;
	else if (*op != (int)(uint8_t)value && evidence->contradiction == NULL)
		evidence->contradiction = name;
}

/* BC_ISNEXT puts BC_JMP in its own place, and BC_ITERC at its target. */
static void probe_op_jmp(const struct code *code, size_t i)
{
	const struct instruction *at = &code->at[i];

	if (!is_store_immediate(at, PC, 1) || at->to.value != -4)
		return;
	for (size_t ahead = 1; ahead <= 6 && i + ahead < code->count; ahead++) {
		if (is_store_immediate(&at[ahead], PC, 1) && at[ahead].to.value == 0) {
			note_opcode(code->evidence, &code->evidence->op_jmp, "BC_JMP", at->from.value);
			return;
		}
	}
}

/* vm_exit_interp: dispatches by hand and tests whether OP is a function header. */
static void probe_op_funcf(const struct code *code, size_t i)
{
	const struct instruction *at = &code->at[i];

	if (at->id != X86_INS_SHR || !is_register(&at->to, RD) || at->from.value != 16)
		return;
	for (size_t ahead = 1; ahead <= 4 && i + ahead + 1 < code->count; ahead++) {
		const struct instruction *in = &at[ahead];

		if (in->id == X86_INS_JMP) /* the dispatch of an ordinary handler */
			return;
		if (in[0].id == X86_INS_CMP && is_register(&in[0].to, RB) && in[0].from.kind == IMMEDIATE &&
		    in[1].id == X86_INS_JB) {
			note_opcode(code->evidence, &code->evidence->op_funcf, "BC_FUNCF", in[0].from.value);
			return;
		}
	}
}

/* In this order: a probe may use what earlier ones found. */
static probe *const probes[] = {
	probe_dispatch,   probe_ffi_callback, probe_vmstate, probe_J,        probe_jloop,  probe_exit,
	probe_exit_error, probe_resume,       probe_cpcall,  probe_saveregs, probe_string, probe_gc,
	probe_hookmask,   probe_gcroot,       probe_op_jmp,  probe_op_funcf,
};

/* ---- mode -------------------------------------------------------------- */

/* Tail of most handlers: add PC, 4; shr RD, 16; jmp [DISPATCH+OP*8]. */
static const uint8_t dispatch_sequence[] = {
	0x83, 0xc3, 0x04, 0xc1, 0xe8, 0x10, 0x41, 0xff, 0x24, 0xee,
};

enum { REX_W = 0x48 };

const uint8_t *vm_code_x86_64_dispatch(const uint8_t *at, const uint8_t *end)
{
	return memmem(at, end - at, dispatch_sequence, sizeof(dispatch_sequence));
}

static void count_dispatches(const uint8_t *code, size_t length, unsigned *ret_gc64, unsigned *ret_gc32)
{
	const uint8_t *at = code, *end = code + length;

	*ret_gc64 = *ret_gc32 = 0;
	while ((at = vm_code_x86_64_dispatch(at, end)) != NULL) {
		if (at > code && at[-1] == REX_W)
			++*ret_gc64;
		else
			++*ret_gc32;
		at += sizeof(dispatch_sequence);
	}
}

enum vm_code_status vm_code_x86_64_read(const uint8_t *bytes, size_t length, uint64_t address,
					struct vm_code_evidence *ret_evidence)
{
	struct code code = { .evidence = ret_evidence };
	unsigned gc64, gc32;

	vm_code_clear(ret_evidence);
	count_dispatches(bytes, length, &gc64, &gc32);
	if (gc64 + gc32 < VM_CODE_DISPATCHES_MIN || (gc64 != 0 && gc32 != 0))
		return VM_CODE_NOT_A_VM;
	ret_evidence->offsets.gc64 = gc64 != 0;
	ret_evidence->dispatches = gc64 + gc32;
	code.at = decode(bytes, length, address, &code.count);
	if (code.at == NULL)
		return VM_CODE_NO_MEMORY;
	for (size_t p = 0; p < sizeof(probes) / sizeof(probes[0]); p++)
		for (size_t i = 0; i < code.count; i++)
			probes[p](&code, i);
	free(code.at);
	/* All others are relative to it. */
	if (ret_evidence->offsets.GG_dispatch == LAYOUT_UNKNOWN)
		return VM_CODE_NOT_A_VM;
	ret_evidence->offsets.has_jit = ret_evidence->offsets.J_trace != LAYOUT_UNKNOWN;
	return ret_evidence->contradiction == NULL ? VM_CODE_OK : VM_CODE_CONTRADICTION;
}

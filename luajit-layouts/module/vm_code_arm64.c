/* SPDX-License-Identifier: MIT */
#include "luajit-layouts/module/vm_code_arm64.h"

#include <capstone/capstone.h>
#include <stdlib.h>
#include <string.h>

/* LuaJIT's names for its registers (vm_arm64.dasc). */
enum {
	BASE = ARM64_REG_X19,
	PC = ARM64_REG_X21,
	GL = ARM64_REG_X22,
	L = ARM64_REG_X23,
	ST_INTERP = ARM64_REG_W26,
	RA = ARM64_REG_X27,
	RC = ARM64_REG_X28,
	RB = ARM64_REG_X17,
	INSw = ARM64_REG_W16,
	TMP0 = ARM64_REG_X8,
	TMP1 = ARM64_REG_X9,
	CARG1 = ARM64_REG_X0,
	CARG1w = ARM64_REG_W0,
	CARG2w = ARM64_REG_W1,
	CALLBACK_GL = ARM64_REG_X10,
	STACK = ARM64_REG_SP,
};

enum { INSTRUCTION_BYTES = 4, FUNCTION_WINDOW = 12 };

/* An instruction's registers, and its memory operand or immediate, if it has them. */
struct instruction {
	unsigned id;
	unsigned reg, reg2, reg3; /* operands that are registers, in order; 0 if fewer */
	unsigned base;            /* of the memory operand; 0 if there is none */
	unsigned index;
	int64_t value; /* displacement, or the immediate */
};

struct code {
	struct instruction *at;
	size_t count;
	struct vm_code_evidence *evidence;
};

static const uint8_t dispatch_head[] = {
	0xb0, 0x46, 0x40, 0xb8, /* ldr INSw, [PC], #4 */
	0xc9, 0x0e, 0x30, 0x8b, /* add TMP1, GL, INS, uxtb #3 */
};

const uint8_t *vm_code_arm64_dispatch(const uint8_t *at, const uint8_t *end)
{
	return memmem(at, (size_t)(end - at), dispatch_head, sizeof(dispatch_head));
}

/* ---- decoding ---------------------------------------------------------- */

static struct instruction decode_instruction(const cs_insn *insn)
{
	struct instruction instruction = { .id = insn->id };
	unsigned *const registers[] = { &instruction.reg, &instruction.reg2, &instruction.reg3 };
	size_t count = 0;

	/* Bytes that are no instruction (constants, padding) carry no detail. */
	if (insn->id == 0 || insn->detail == NULL)
		return instruction;
	for (size_t i = 0; i < insn->detail->arm64.op_count; i++) {
		const cs_arm64_op *op = &insn->detail->arm64.operands[i];

		if (op->type == ARM64_OP_REG && count < sizeof(registers) / sizeof(registers[0])) {
			*registers[count++] = op->reg;
		} else if (op->type == ARM64_OP_MEM) {
			instruction.base = op->mem.base;
			instruction.index = op->mem.index;
			instruction.value = op->mem.disp;
		} else if (op->type == ARM64_OP_IMM && instruction.base == 0) {
			/* A multiple of 4096 is one of 12 bits, shifted; movz has 16 bits, by up to 48. */
			instruction.value = op->imm;
			if (op->shift.type == ARM64_SFT_LSL && op->shift.value < 64)
				instruction.value = (int64_t)((uint64_t)op->imm << op->shift.value);
		}
	}
	return instruction;
}

static struct instruction *decode(const uint8_t *bytes, size_t length, uint64_t address, size_t *ret_count)
{
	const size_t room = length / INSTRUCTION_BYTES;
	struct instruction *list = calloc(room + 1, sizeof(*list));
	csh capstone;
	cs_insn *insn;
	size_t count = 0;

	if (list == NULL)
		return NULL;
	if (cs_open(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, &capstone) != CS_ERR_OK) {
		free(list);
		return NULL;
	}
	cs_option(capstone, CS_OPT_DETAIL, CS_OPT_ON);
	cs_option(capstone, CS_OPT_SKIPDATA, CS_OPT_ON);
	insn = cs_malloc(capstone);
	while (insn != NULL && count < room && cs_disasm_iter(capstone, &bytes, &length, &address, insn))
		list[count++] = decode_instruction(insn);
	if (insn != NULL)
		cs_free(insn, 1);
	cs_close(&capstone);
	*ret_count = count;
	return list;
}

/* ---- shapes -------------------------------------------------------------- */

static bool is_load(const struct instruction *at, unsigned to, unsigned base)
{
	return at->id == ARM64_INS_LDR && at->reg == to && at->base == base && at->index == 0;
}

static bool is_store(const struct instruction *at, unsigned from, unsigned base)
{
	return at->id == ARM64_INS_STR && at->reg == from && at->base == base && at->index == 0;
}

/* Note a field's offset; places that disagree are a contradiction. */
static void note(struct vm_code_evidence *evidence, int32_t *field, const char *name, int64_t value)
{
	if (*field == LAYOUT_UNKNOWN)
		*field = (int32_t)value;
	else if (*field != (int32_t)value && evidence->contradiction == NULL)
		evidence->contradiction = name;
}

#define NOTE(code, field, value) note((code)->evidence, &(code)->evidence->offsets.field, #field, value)

/* A probe looks for its shape at instruction i, which has FUNCTION_WINDOW more on either side. */
typedef void probe(const struct code *code, size_t i);

/*
 * Tail of most handlers: ldr INSw, [PC], #4; add TMP1, GL, INS, uxtb #3; ...; ldr TMP0, [TMP1, #GG_G2DISP].
 */
static void probe_dispatch(const struct code *code, size_t i)
{
	const struct instruction *at = &code->at[i];

	if (!is_load(&at[0], INSw, PC) || at[1].id != ARM64_INS_ADD || at[1].reg != TMP1 ||
	    at[1].reg2 != GL || !is_load(&at[3], TMP0, TMP1))
		return;
	code->evidence->dispatches++;
	NOTE(code, GG_dispatch, at[3].value);
}

/* st_vmstate ST_INTERP. */
static void probe_vmstate(const struct code *code, size_t i)
{
	if (is_store(&code->at[i], ST_INTERP, GL))
		NOTE(code, g_vmstate, code->at[i].value);
}

/* The hook tests are the only byte loads from g. */
static void probe_hookmask(const struct code *code, size_t i)
{
	if (code->at[i].id == ARM64_INS_LDRB && code->at[i].base == GL && code->at[i].index == 0)
		NOTE(code, g_hookmask, code->at[i].value);
}

/* The GC check loads gc.total and gc.threshold at once. */
static void probe_gc(const struct code *code, size_t i)
{
	if (code->at[i].id == ARM64_INS_LDP && code->at[i].base == GL)
		NOTE(code, g_gc_total, code->at[i].value);
}

/* vm_cpcall: NRES = L->stack - L->top, the link to the previous C frame, g->cur_L, the call. */
static void probe_cpcall(const struct code *code, size_t i)
{
	const struct instruction *at = &code->at[i];

	if (at->id != ARM64_INS_SUB || at->reg != RA || at->reg2 != RA || at->reg3 != RB)
		return;
	for (const struct instruction *in = &at[-FUNCTION_WINDOW]; in < at; in++) {
		if (is_load(in, RA, CARG1))
			NOTE(code, L_stack, in->value);
		else if (is_load(in, RB, L))
			NOTE(code, L_top, in->value);
		else if (is_load(in, GL, L))
			NOTE(code, L_glref, in->value);
		else if (is_load(in, RC, L))
			NOTE(code, L_cframe, in->value);
	}
	for (const struct instruction *in = at; in < &at[FUNCTION_WINDOW]; in++) {
		if (in->id == ARM64_INS_STR && in->reg == ARM64_REG_W27 && in->base == STACK)
			NOTE(code, CFRAME_NRES, in->value);
		else if (is_store(in, ARM64_REG_WZR, STACK))
			NOTE(code, CFRAME_ERRF, in->value);
		else if (is_store(in, RC, STACK))
			NOTE(code, CFRAME_PREV, in->value);
		else if (is_store(in, L, GL)) {
			NOTE(code, g_cur_L, in->value);
			return;
		}
	}
}

/* ldr RA, L:CARG1->stack; str CARG1, SAVE_L; ...; str CARG1, SAVE_PC. */
static void probe_saved_L(const struct code *code, size_t i)
{
	const struct instruction *at = &code->at[i];

	if (!is_load(at, RA, CARG1) || !is_store(&at[1], CARG1, STACK))
		return;
	NOTE(code, CFRAME_L, at[1].value);
	for (const struct instruction *in = &at[2]; in < &at[FUNCTION_WINDOW]; in++) {
		if (is_store(in, CARG1, STACK)) {
			NOTE(code, CFRAME_PC, in->value);
			return;
		}
	}
}

/* vm_exit_handler: J->exitno, J->parent and J->L, then J as an argument. */
static void probe_exit(const struct code *code, size_t i)
{
	const struct instruction *at = &code->at[i];
	int64_t J = 0;

	if (!is_store(&at[0], CARG1w, GL) || !is_store(&at[1], CARG2w, GL) || !is_store(&at[2], L, GL))
		return;
	for (const struct instruction *in = &at[3]; in < &at[FUNCTION_WINDOW]; in++) {
		/* A distance of more than 12 bits takes two instructions. */
		if (in->id == ARM64_INS_ADD && in->reg == CARG1 && (in->reg2 == GL || in->reg2 == CARG1))
			J += in->value;
	}
	if (J == 0)
		return;
	NOTE(code, GG_J, J);
	NOTE(code, J_exitno, at[0].value - J);
	NOTE(code, J_parent, at[1].value - J);
	NOTE(code, J_L, at[2].value - J);
}

/* BC_JLOOP: J->trace[RC]->mcode, then jit_base and tmpbuf.L. */
static void probe_jloop(const struct code *code, size_t i)
{
	const struct instruction *at = &code->at[i];
	int32_t J = code->evidence->offsets.GG_J;

	if (J == LAYOUT_UNKNOWN || !is_load(&at[0], RA, RC) || !is_store(&at[1], BASE, GL) ||
	    !is_store(&at[2], L, GL))
		return;
	NOTE(code, GCtrace_mcode, at[0].value);
	NOTE(code, g_jit_base, at[1].value);
	NOTE(code, g_tmpbuf_L, at[2].value);
	for (const struct instruction *in = &at[-1]; in > &at[-FUNCTION_WINDOW]; in--) {
		if (is_load(in, CARG1, GL)) {
			NOTE(code, J_trace, in->value - J);
			return;
		}
	}
}

/* vm_exit_interp, error exit: lj_err_trace(L, -CARG1); earlier lj_err_run(L). */
static void probe_exit_error(const struct code *code, size_t i)
{
	const struct instruction *at = &code->at[i];

	if (at[0].id == ARM64_INS_NEG && at[0].reg == CARG2w && at[0].reg2 == CARG1w &&
	    at[1].id == ARM64_INS_MOV && at[1].reg == CARG1 && at[1].reg2 == L && at[2].id == ARM64_INS_BL)
		code->evidence->exit_error_code = true;
}

/*
 * getmetatable: ldr RB, TAB:CARG1->metatable; ...; the load of "__metatable" from gcroot[GCROOT_MMNAME...];
 * cbz RB.
 */
static void probe_gcroot(const struct code *code, size_t i)
{
	const struct instruction *at = &code->at[i];

	if (is_load(&at[0], RC, GL) && at[1].id == ARM64_INS_CBZ && at[1].reg == RB)
		NOTE(code, g_gcroot, at[0].value - VM_CODE_MM_METATABLE * (int64_t)sizeof(uint64_t));
}

/* vm_ffi_callback: ldr CTSTATE, GL:x10->ctype_state; mov GL, x10. */
static void probe_ffi_callback(const struct code *code, size_t i)
{
	const struct instruction *at = &code->at[i];

	if (is_load(&at[0], PC, CALLBACK_GL) && at[1].id == ARM64_INS_MOV && at[1].reg == GL)
		NOTE(code, g_ctype_state, at[0].value);
}

/* In this order: a probe may use what earlier ones found. */
static probe *const probes[] = {
	probe_dispatch, probe_vmstate, probe_hookmask,   probe_gc,     probe_cpcall,       probe_saved_L,
	probe_exit,     probe_jloop,   probe_exit_error, probe_gcroot, probe_ffi_callback,
};

enum vm_code_status vm_code_arm64_read(const uint8_t *bytes, size_t length, uint64_t address,
				       struct vm_code_evidence *ret_evidence)
{
	struct code code = { .evidence = ret_evidence };

	vm_code_clear(ret_evidence);
	ret_evidence->offsets.gc64 = true; /* arm64 has no other mode */
	code.at = decode(bytes, length, address, &code.count);
	if (code.at == NULL)
		return VM_CODE_NO_MEMORY;
	for (size_t p = 0; p < sizeof(probes) / sizeof(probes[0]); p++)
		for (size_t i = FUNCTION_WINDOW; i + FUNCTION_WINDOW < code.count; i++)
			probes[p](&code, i);
	free(code.at);
	if (ret_evidence->dispatches < VM_CODE_DISPATCHES_MIN)
		return VM_CODE_NOT_A_VM;
	ret_evidence->offsets.has_jit = ret_evidence->offsets.J_trace != LAYOUT_UNKNOWN;
	return ret_evidence->contradiction == NULL ? VM_CODE_OK : VM_CODE_CONTRADICTION;
}

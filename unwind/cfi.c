#include "unwind/cfi.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include <elfutils/libdw.h>
#include <gelf.h>

#include "unwind/elf_file.h"
#include "unwind/image.h"

enum {
	DEBUG_MAX = 256 << 20,	/* bytes of .debug_* in a file: libdw may read all */
	OPS_MAX = 64,		/* of one expression */
	OPERANDS_MAX = 16,	/* on an expression's stack */
};

struct cfi {
	struct elf_file file;
	Dwarf *dwarf;
	Dwarf_CFI *eh_frame;	/* NULL if there is none */
	Dwarf_CFI *debug_frame;	/* owned by dwarf; NULL if there is none */
};

/* What an expression may refer to. */
struct state {
	const struct registers *frame;
	struct memory *stack;
	uint64_t cfa;
};

/*---- Sections ----*/

/* Whether there is a .debug_frame, in a file whose debug sections are not too large. */
static bool has_debug_frame(Elf *elf)
{
	size_t names;
	uint64_t size = 0;
	bool found = false;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return false;
	for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
		GElf_Shdr header;
		GElf_Chdr compressed;
		const char *name;

		if (!gelf_getshdr(section, &header))
			return false;
		name = elf_strptr(elf, names, header.sh_name);
		if (!name || strncmp(name, ".debug_", strlen(".debug_")) != 0)
			continue;
		found |= strcmp(name, ".debug_frame") == 0;
		if ((header.sh_flags & SHF_COMPRESSED) && gelf_getchdr(section, &compressed))
			header.sh_size = compressed.ch_size;
		if (header.sh_size > DEBUG_MAX - size)
			return false;
		size += header.sh_size;
	}
	return found;
}

struct cfi *cfi_open(const struct module *module, struct memory *live)
{
	struct cfi *cfi = calloc(1, sizeof(*cfi));

	if (!cfi)
		return NULL;
	if (!elf_file_open(module, live, &cfi->file)) {
		free(cfi);
		return NULL;
	}
	cfi->eh_frame = dwarf_getcfi_elf(cfi->file.elf);
	if (has_debug_frame(cfi->file.elf))
		cfi->dwarf = dwarf_begin_elf(cfi->file.elf, DWARF_C_READ, NULL);
	if (cfi->dwarf)
		cfi->debug_frame = dwarf_getcfi(cfi->dwarf);
	if (cfi->eh_frame || cfi->debug_frame)
		return cfi;
	cfi_close(cfi);
	return NULL;
}

void cfi_close(struct cfi *cfi)
{
	if (!cfi)
		return;
	if (cfi->eh_frame)
		dwarf_cfi_end(cfi->eh_frame);
	dwarf_end(cfi->dwarf);
	elf_file_close(&cfi->file);
	free(cfi);
}

/*---- Expressions ----*/

static bool read_register(const struct registers *registers, uint64_t number, uint64_t *ret_value)
{
	struct registers copy = *registers;
	const uint64_t *held = number < REGISTER_NUMBERS ? registers_locate(&copy, (int)number)
							  : NULL;

	if (!held || (registers->unknown & registers_set_of((int)number)))
		return false;
	*ret_value = *held;
	return true;
}

/* What an operation pushes that needs no operand; false if it is none of these, or not known. */
static bool push(const struct state *state, const Dwarf_Op *op, uint64_t *ret_value)
{
	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) {
		*ret_value = op->atom - DW_OP_lit0;
		return true;
	}
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
		if (!read_register(state->frame, op->atom - DW_OP_breg0, ret_value))
			return false;
		*ret_value += op->number;
		return true;
	}
	switch (op->atom) {
	case DW_OP_bregx:
		if (!read_register(state->frame, op->number, ret_value))
			return false;
		*ret_value += op->number2;
		return true;
	case DW_OP_call_frame_cfa:
		*ret_value = state->cfa;
		return true;
	case DW_OP_const1u: case DW_OP_const1s: case DW_OP_const2u: case DW_OP_const2s:
	case DW_OP_const4u: case DW_OP_const4s: case DW_OP_constu: case DW_OP_consts:
		*ret_value = op->number;
		return true;
	default:
		return false;
	}
}

/* Operations on the topmost operand. */
static bool change(const struct state *state, const Dwarf_Op *op, uint64_t *top)
{
	if (op->atom == DW_OP_plus_uconst) {
		*top += op->number;
		return true;
	}
	return op->atom == DW_OP_deref &&
	       memory_read(state->stack, *top, top, sizeof(*top)) == MEMORY_OK;
}

/* Operations on the two topmost operands, as entries for a PLT use them. */
static bool combine(uint8_t atom, uint64_t left, uint64_t right, uint64_t *ret_value)
{
	switch (atom) {
	case DW_OP_plus: *ret_value = left + right; return true;
	case DW_OP_minus: *ret_value = left - right; return true;
	case DW_OP_and: *ret_value = left & right; return true;
	case DW_OP_shl: *ret_value = right < 64 ? left << right : 0; return true;
	case DW_OP_ge: *ret_value = (int64_t)left >= (int64_t)right; return true;
	default: return false;
	}
}

static bool evaluate(const struct state *state, const Dwarf_Op *ops, size_t count,
		     uint64_t *ret_value)
{
	uint64_t operands[OPERANDS_MAX], value;
	size_t depth = 0;

	if (count > OPS_MAX)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (push(state, &ops[i], &value)) {
			if (depth == OPERANDS_MAX)
				return false;
			operands[depth++] = value;
		} else if (depth >= 2 && combine(ops[i].atom, operands[depth - 2],
						 operands[depth - 1], &value)) {
			operands[--depth - 1] = value;
		} else if (depth == 0 || !change(state, &ops[i], &operands[depth - 1])) {
			return false;
		}
	}
	if (depth == 0)
		return false;
	*ret_value = operands[depth - 1];
	return true;
}

/*---- Rules ----*/

/* The caller's value of a register, by the rule for it. */
static bool recover(const struct state *state, Dwarf_Frame *rules, int number, uint64_t *ret_value)
{
	Dwarf_Op held[3], *ops;
	uint64_t address;
	size_t count;

	if (dwarf_frame_register(rules, number, held, &ops, &count) != 0)
		return false;
	if (count == 0)		/* undefined, or the same */
		return !ops && read_register(state->frame, (uint64_t)number, ret_value);
	if (ops[count - 1].atom == DW_OP_stack_value)
		return evaluate(state, ops, count - 1, ret_value);
	if (ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31)
		return read_register(state->frame, ops[0].atom - DW_OP_reg0, ret_value);
	if (ops[0].atom == DW_OP_regx)
		return read_register(state->frame, ops[0].number, ret_value);
	return evaluate(state, ops, count, &address) &&
	       memory_read(state->stack, address, ret_value, sizeof(*ret_value)) == MEMORY_OK;
}

/* Whether the rules say that there is no caller. */
static bool is_outermost(Dwarf_Frame *rules)
{
	Dwarf_Op held[3], *ops;
	size_t count;

	return dwarf_frame_register(rules, REGISTER_NUMBER_PC, held, &ops, &count) == 0 &&
	       count == 0 && ops == held;
}

static bool apply(Dwarf_Frame *rules, const struct registers *frame, struct memory *stack,
		  struct registers *ret_caller)
{
	struct registers caller = { .orig_rax = UINT64_MAX };
	struct state state = { .frame = frame, .stack = stack };
	Dwarf_Op *ops;
	size_t count;

	if (is_outermost(rules)) {
		*ret_caller = caller;
		return true;
	}
	if (dwarf_frame_cfa(rules, &ops, &count) != 0 || !evaluate(&state, ops, count, &state.cfa) ||
	    !recover(&state, rules, REGISTER_NUMBER_PC, &caller.rip) ||
	    !recover(&state, rules, REGISTER_NUMBER_RSP, &caller.rsp))
		return false;
	for (int number = 0; number < REGISTER_NUMBER_PC; number++)
		if (!recover(&state, rules, number, registers_locate(&caller, number)))
			caller.unknown |= registers_set_of(number);
	*ret_caller = caller;
	return true;
}

static bool find_rules(const struct cfi *cfi, uint64_t pc, Dwarf_Frame **ret_rules)
{
	uint64_t address = pc - cfi->file.bias;

	return (cfi->eh_frame && dwarf_cfi_addrframe(cfi->eh_frame, address, ret_rules) == 0) ||
	       (cfi->debug_frame && dwarf_cfi_addrframe(cfi->debug_frame, address, ret_rules) == 0);
}

bool cfi_step(struct cfi *cfi, uint64_t pc, const struct registers *frame, struct memory *stack,
	      struct registers *ret_caller)
{
	Dwarf_Frame *rules;
	bool found;

	if (!find_rules(cfi, pc, &rules))
		return false;
	found = dwarf_frame_info(rules, NULL, NULL, NULL) == REGISTER_NUMBER_PC &&
		apply(rules, frame, stack, ret_caller);
	free(rules);
	return found;
}

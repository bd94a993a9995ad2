/* SPDX-License-Identifier: MIT */
/*
 * Instructions of arm64, as the VM uses them. The names of fields and the conditions are
 * those of the Arm Architecture Reference Manual, C4.1 and C6.2.
 */
#include "unwind/native/vm_decoder_arm64.h"
#include "unwind/vm/vm_machine_parts.h"

enum {
	WORD = 8,
	ZERO = 31,     /* as a register: the zero register, or the stack pointer */
	X_HANDLER = 8, /* TMP0: ins_NEXT jumps by it, and nothing else in the VM does */
	X_ENTRY = 9,   /* TMP1: it loads the handler by this one */
	X_RB = 17,
	STORE_LR = (int)0xf90003fe, /* str lr, [sp]: the stubs of a trace's exits begin with it */
	FLAG_OVERFLOW = 1 << 28,
	FLAG_CARRY = 1 << 29,
	FLAG_ZERO = 1 << 30,
};
#define FLAG_SIGN (UINT64_C(1) << 31)

static const struct vm_value unknown;

/*---- Registers ----*/

static unsigned int size_of(uint32_t word)
{
	return bits_of(word, 31, 1) ? 8 : 4;
}

static struct vm_value cut(struct vm_value value, unsigned int size)
{
	value.bits &= vm_machine_mask(size);
	return value;
}

static struct vm_value get(const struct vm_machine *machine, unsigned int number)
{
	return number == ZERO ? (struct vm_value){ 0, true } : machine->registers[number];
}

static void set(struct vm_machine *machine, unsigned int number, struct vm_value value)
{
	if (number != ZERO)
		machine->registers[number] = value;
}

/*---- Arithmetic ----*/

/* a + b + carry, as AddWithCarry() has it. */
static struct vm_value add(struct vm_machine *machine, struct vm_value a, struct vm_value b, bool carry,
			   unsigned int size, bool sets_flags)
{
	struct vm_value result = { 0, a.known && b.known };

	a = cut(a, size);
	b = cut(b, size);
	result.bits = (a.bits + b.bits + carry) & vm_machine_mask(size);
	if (sets_flags)
		machine->flags = (struct vm_flags){
			.zero = result.bits == 0,
			.sign = vm_value_top_bit(result.bits, size),
			.carry = result.bits < a.bits || (carry && result.bits == a.bits),
			.overflow = vm_value_top_bit(~(a.bits ^ b.bits) & (a.bits ^ result.bits), size),
			.known = result.known,
		};
	return result;
}

static struct vm_value add_or_subtract(struct vm_machine *machine, uint32_t word, struct vm_value a,
				       struct vm_value b)
{
	bool subtracts = bits_of(word, 30, 1);

	if (subtracts)
		b.bits = ~b.bits;
	return add(machine, a, b, subtracts, size_of(word), bits_of(word, 29, 1));
}

static bool is_met(const struct vm_flags *f, unsigned int condition)
{
	bool met = true;

	switch (condition >> 1) {
	case 0: met = f->zero; break;
	case 1: met = f->carry; break;
	case 2: met = f->sign; break;
	case 3: met = f->overflow; break;
	case 4: met = f->carry && !f->zero; break;
	case 5: met = f->sign == f->overflow; break;
	case 6: met = f->sign == f->overflow && !f->zero; break;
	default: return true;
	}
	return met != (condition & 1);
}

static struct vm_value logical(struct vm_machine *machine, uint32_t word, struct vm_value a,
			       struct vm_value b)
{
	enum { AND, ORR, EOR, ANDS };
	unsigned int size = size_of(word), op = bits_of(word, 29, 2);
	struct vm_value result = { 0, a.known && b.known };

	switch (op) {
	case ORR: result.bits = a.bits | b.bits; break;
	case EOR: result.bits = a.bits ^ b.bits; break;
	default: result.bits = a.bits & b.bits; break;
	}
	result = cut(result, size);
	if (op == ANDS)
		machine->flags = (struct vm_flags){
			.zero = result.bits == 0,
			.sign = vm_value_top_bit(result.bits, size),
			.known = result.known,
		};
	return result;
}

static uint64_t ones(unsigned int count)
{
	return count >= 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
}

static uint64_t rotate_right(uint64_t bits, unsigned int by, unsigned int width)
{
	bits &= ones(width);
	return by % width == 0 ? bits : ((bits >> by % width) | (bits << (width - by % width))) & ones(width);
}

/* DecodeBitMasks(): the immediate of a logical instruction. */
static uint64_t mask_immediate(uint32_t word)
{
	unsigned int imms = bits_of(word, 10, 6), immr = bits_of(word, 16, 6), width = 64;
	uint64_t element, result = 0;

	if (!bits_of(word, 22, 1))
		for (width = 32; width > 2 && (imms & width); width >>= 1)
			;
	element = rotate_right(ones((imms & (width - 1)) + 1), immr & (width - 1), width);
	for (unsigned int at = 0; at < 64; at += width)
		result |= element << at;
	return result;
}

static struct vm_value shift(struct vm_value value, unsigned int kind, unsigned int by, unsigned int size)
{
	enum { LSL, LSR, ASR };

	value = cut(value, size);
	switch (kind) {
	case LSL: value.bits <<= by; break;
	case LSR: value.bits >>= by; break;
	case ASR: value.bits = (uint64_t)((int64_t)vm_value_sign_extended(value.bits, size) >> by); break;
	default: value.bits = rotate_right(value.bits, by, size * 8); break;
	}
	return cut(value, size);
}

/* A register extended from some of its low bits, and shifted. */
static struct vm_value extended(struct vm_value value, unsigned int option, unsigned int by)
{
	unsigned int size = 1U << (option & 3);

	if (option & 4)
		value.bits = vm_value_sign_extended(value.bits, size);
	else
		value = cut(value, size);
	value.bits <<= by;
	return value;
}

/*---- Data processing ----*/

static void run_move_wide(struct vm_machine *machine, uint32_t word)
{
	enum { MOVN = 0, MOVK = 3 };
	unsigned int by = 16 * bits_of(word, 21, 2), op = bits_of(word, 29, 2);
	struct vm_value value = { (uint64_t)bits_of(word, 5, 16) << by, true };

	if (op == MOVN) {
		value.bits = ~value.bits;
	} else if (op == MOVK) {
		struct vm_value old = get(machine, rd_of(word));

		value.bits |= old.bits & ~(UINT64_C(0xffff) << by);
		value.known = old.known;
	}
	set(machine, rd_of(word), cut(value, size_of(word)));
}

/* sbfm, bfm, ubfm: all shifts by an immediate, and fields of bits. */
static void run_bit_field(struct vm_machine *machine, uint32_t word)
{
	enum { SBFM, BFM };
	unsigned int immr = bits_of(word, 16, 6), imms = bits_of(word, 10, 6), op = bits_of(word, 29, 2);
	unsigned int size = size_of(word), count = imms + 1, to = 0;
	struct vm_value value = get(machine, rn_of(word)), old = get(machine, rd_of(word));
	uint64_t field;

	if (immr >= size * 8 || imms >= size * 8) { /* no such instruction */
		set(machine, rd_of(word), (struct vm_value){ .known = false });
		return;
	}
	if (imms >= immr) {
		count -= immr;
		field = value.bits >> immr & ones(count);
	} else {
		to = size * 8 - immr;
		field = value.bits & ones(count);
	}
	if (op == SBFM && count < 64 && (field >> (count - 1) & 1))
		field |= ~ones(count);
	value.bits = field << to;
	if (op == BFM) {
		value.bits = (old.bits & ~(ones(count) << to)) | (field & ones(count)) << to;
		value.known = value.known && old.known;
	}
	set(machine, rd_of(word), cut(value, size));
}

static void run_add_immediate(struct vm_machine *machine, uint32_t word)
{
	struct vm_value addend = { (uint64_t)bits_of(word, 10, 12) << (bits_of(word, 22, 1) ? 12 : 0), true };
	struct vm_value result = add_or_subtract(machine, word, machine->registers[rn_of(word)], addend);

	/* Those that set flags have the zero register where the others have the stack pointer. */
	if (!bits_of(word, 29, 1))
		machine->registers[rd_of(word)] = result;
	else
		set(machine, rd_of(word), result);
}

static void run_logical_immediate(struct vm_machine *machine, uint32_t word)
{
	enum { ANDS = 3 };
	struct vm_value result = logical(machine, word, get(machine, rn_of(word)),
					 (struct vm_value){ mask_immediate(word), true });

	if (bits_of(word, 29, 2) != ANDS)
		machine->registers[rd_of(word)] = result;
	else
		set(machine, rd_of(word), result);
}

static void run_logical_shifted(struct vm_machine *machine, uint32_t word)
{
	struct vm_value b = shift(get(machine, rm_of(word)), bits_of(word, 22, 2), bits_of(word, 10, 6),
				  size_of(word));

	if (bits_of(word, 21, 1))
		b.bits = ~b.bits;
	set(machine, rd_of(word), logical(machine, word, get(machine, rn_of(word)), b));
}

static void run_add_register(struct vm_machine *machine, uint32_t word)
{
	struct vm_value b = get(machine, rm_of(word)), result;
	bool sets_flags = bits_of(word, 29, 1);

	if (!bits_of(word, 21, 1)) {
		b = shift(b, bits_of(word, 22, 2), bits_of(word, 10, 6), size_of(word));
		set(machine, rd_of(word), add_or_subtract(machine, word, get(machine, rn_of(word)), b));
		return;
	}
	b = extended(b, bits_of(word, 13, 3), bits_of(word, 10, 3));
	result = add_or_subtract(machine, word, machine->registers[rn_of(word)], b);
	if (!sets_flags)
		machine->registers[rd_of(word)] = result;
	else
		set(machine, rd_of(word), result);
}

static void run_conditional_compare(struct vm_machine *machine, uint32_t word)
{
	struct vm_value b = { rm_of(word), true };

	if (!bits_of(word, 11, 1))
		b = get(machine, rm_of(word));
	if (!machine->flags.known)
		return;
	if (is_met(&machine->flags, bits_of(word, 12, 4))) {
		add_or_subtract(machine, word, get(machine, rn_of(word)), b);
		return;
	}
	machine->flags = (struct vm_flags){
		.sign = bits_of(word, 3, 1),
		.zero = bits_of(word, 2, 1),
		.carry = bits_of(word, 1, 1),
		.overflow = bits_of(word, 0, 1),
		.known = true,
	};
}

static void run_conditional_select(struct vm_machine *machine, uint32_t word)
{
	struct vm_value value = get(machine, rn_of(word));

	if (!is_met(&machine->flags, bits_of(word, 12, 4))) {
		value = get(machine, rm_of(word));
		if (bits_of(word, 30, 1))
			value.bits = ~value.bits;
		if (bits_of(word, 10, 1))
			value.bits++;
	}
	value.known = value.known && machine->flags.known;
	set(machine, rd_of(word), cut(value, size_of(word)));
}

/* lslv, lsrv, asrv, rorv; the result of a division is unknown. */
static void run_two_sources(struct vm_machine *machine, uint32_t word)
{
	struct vm_value value = get(machine, rn_of(word)), by = get(machine, rm_of(word));
	unsigned int size = size_of(word);
	bool is_shift = bits_of(word, 12, 4) == 2, known = is_shift && value.known && by.known;

	value = shift(value, bits_of(word, 10, 2), (unsigned int)(by.bits % (size * 8)), size);
	value.known = known;
	set(machine, rd_of(word), value);
}

/* madd, msub, and those of 32 bits with a sum of 64 */
static void run_three_sources(struct vm_machine *machine, uint32_t word)
{
	struct vm_value a = get(machine, rn_of(word)), b = get(machine, rm_of(word)),
			c = get(machine, rt2_of(word)), result = { 0, a.known && b.known && c.known };
	unsigned int kind = bits_of(word, 21, 3);

	if (kind == 1 || kind == 5) {
		a.bits = kind == 1 ? vm_value_sign_extended(a.bits, 4) : cut(a, 4).bits;
		b.bits = kind == 1 ? vm_value_sign_extended(b.bits, 4) : cut(b, 4).bits;
	} else if (kind != 0) {
		result.known = false;
	}
	result.bits = bits_of(word, 15, 1) ? c.bits - a.bits * b.bits : c.bits + a.bits * b.bits;
	set(machine, rd_of(word), cut(result, size_of(word)));
}

static void run_address(struct vm_machine *machine, uint32_t word)
{
	uint64_t distance = (uint64_t)(signed_bits_of(word, 5, 19) * 4 + bits_of(word, 29, 2));
	uint64_t pc = machine->instruction->address;

	if (bits_of(word, 31, 1)) {
		distance <<= 12;
		pc &= ~UINT64_C(0xfff);
	}
	set(machine, rd_of(word), (struct vm_value){ pc + distance, true });
}

/* False for other instructions. */
static bool run_immediate(struct vm_machine *machine, uint32_t word)
{
	switch (bits_of(word, 23, 6)) {
	case 0x20:
	case 0x21: run_address(machine, word); return true;
	case 0x22: run_add_immediate(machine, word); return true;
	case 0x24: run_logical_immediate(machine, word); return true;
	case 0x25: run_move_wide(machine, word); return true;
	case 0x26: run_bit_field(machine, word); return true;
	case 0x27: set(machine, rd_of(word), unknown); return true; /* extr */
	default: return false;
	}
}

static bool run_registers(struct vm_machine *machine, uint32_t word)
{
	if (has_bits(word, 0x1f000000, 0x0a000000))
		run_logical_shifted(machine, word);
	else if (has_bits(word, 0x1f000000, 0x0b000000))
		run_add_register(machine, word);
	else if (has_bits(word, 0x1fe00000, 0x1a400000))
		run_conditional_compare(machine, word);
	else if (has_bits(word, 0x1fe00000, 0x1a800000))
		run_conditional_select(machine, word);
	else if (has_bits(word, 0x1f000000, 0x1b000000))
		run_three_sources(machine, word);
	else if (has_bits(word, 0x5fe00000, 0x1ac00000))
		run_two_sources(machine, word);
	else if (has_bits(word, 0x5fe00000, 0x5ac00000)) /* rev, clz */
		set(machine, rd_of(word), unknown);
	else
		return false;
	return true;
}

/* Vectors and floating point: only what they give to a general register or to the flags matters. */
static bool run_vector(struct vm_machine *machine, uint32_t word)
{
	if (has_bits(word, 0xff200c00, 0x1e200000) && bits_of(word, 10, 6) == 8) { /* fcmp */
		machine->flags.known = false;
	} else if (has_bits(word, 0xff200c00, 0x1e200400)) { /* fccmp */
		machine->flags.known = false;
	} else if (has_bits(word, 0x7f20fc00, 0x1e200000)) { /* to or from a general register */
		unsigned int op = bits_of(word, 16, 3);

		if (op != 2 && op != 3 && op != 7)
			set(machine, rd_of(word), unknown);
	} else if (has_bits(word, 0xbfe0f400, 0x0e003400) || has_bits(word, 0xbfe0f400, 0x0e002400)) {
		set(machine, rd_of(word), unknown); /* umov, smov */
	}
	return true;
}

/*---- Memory ----*/

/* Load or store one register. */
static bool transfer(struct vm_machine *machine, uint32_t word, unsigned int number, struct vm_value address,
		     unsigned int size)
{
	bool is_vector = bits_of(word, 26, 1), is_load = bits_of(word, 22, 1);

	if (!is_load)
		return vm_machine_store(machine, address, size,
					is_vector ? unknown : cut(get(machine, number), size));
	if (!is_vector)
		set(machine, number, vm_machine_load(machine, address, size));
	return true;
}

static struct vm_value plus(struct vm_value value, int64_t offset)
{
	value.bits += (uint64_t)offset;
	return value;
}

static bool run_pair(struct vm_machine *machine, uint32_t word, struct vm_value address)
{
	bool is_vector = bits_of(word, 26, 1);
	unsigned int size = is_vector ? 4U << bits_of(word, 30, 2) : 4U << bits_of(word, 31, 1);
	struct vm_value first = unknown;

	if (is_vector || !bits_of(word, 22, 1))
		return transfer(machine, word, rd_of(word), address, size) &&
		       transfer(machine, word, rt2_of(word), plus(address, size), size);
	/* The first register may be the address's. */
	first = vm_machine_load(machine, address, size);
	set(machine, rt2_of(word), vm_machine_load(machine, plus(address, size), size));
	set(machine, rd_of(word), first);
	return true;
}

static bool run_single(struct vm_machine *machine, uint32_t word, struct vm_value address)
{
	enum { LOADS_SIGNED_64 = 2, LOADS_SIGNED_32 = 3 };
	unsigned int size = 1U << bits_of(word, 30, 2), opc = bits_of(word, 22, 2);
	struct vm_value value;

	if (bits_of(word, 26, 1))
		return transfer(machine, word, rd_of(word), address, opc & 2 ? 2 * WORD : size);
	if (opc < LOADS_SIGNED_64)
		return transfer(machine, word, rd_of(word), address, size);
	if (size == WORD) /* prfm */
		return true;
	value = vm_machine_load(machine, address, size);
	value.bits = vm_value_sign_extended(value.bits, size);
	set(machine, rd_of(word), opc == LOADS_SIGNED_32 ? cut(value, 4) : value);
	return true;
}

/*
 * Is it the load by which ins_NEXT and the like get the handler of the next instruction? vm_exit_interp
 * gets it by TMP0 into RB, beyond the start of the dispatch table.
 */
static bool loads_handler(const struct vm_machine *machine, uint32_t word)
{
	if (!has_bits(word, 0xffc00000, 0xf9400000))
		return false;
	return rn_of(word) == X_ENTRY ||
	       (rn_of(word) == X_HANDLER && rd_of(word) == X_RB &&
		(int32_t)bits_of(word, 10, 12) * WORD >= machine->vm->layout.GG_dispatch);
}

static bool run_memory(struct vm_machine *machine, uint32_t word)
{
	struct vm_value base = machine->registers[rn_of(word)], address = base;
	bool is_before = false, writes_back, followed;
	int64_t offset = 0;

	writes_back = instruction_writes_back(word, &offset, &is_before);
	if (is_load_scaled(word)) {
		unsigned int scale = bits_of(word, 30, 2);

		if (bits_of(word, 26, 1) && bits_of(word, 23, 1))
			scale = 4;
		offset = (int64_t)bits_of(word, 10, 12) << scale;
	}
	if (is_load_indexed(word)) {
		struct vm_value index = extended(get(machine, rm_of(word)), bits_of(word, 13, 3),
						 bits_of(word, 12, 1) ? bits_of(word, 30, 2) : 0);

		address = plus(base, (int64_t)index.bits);
		address.known = base.known && index.known;
	} else if (!writes_back || is_before) {
		address = plus(base, offset);
	}
	followed = is_pair(word) ? run_pair(machine, word, address) : run_single(machine, word, address);
	if (writes_back)
		machine->registers[rn_of(word)] = plus(base, offset);
	if (loads_handler(machine, word))
		machine->holds_handler = true;
	return followed;
}

/*---- Branches ----*/

static enum vm_progress go_to(struct vm_machine *machine, uint64_t target)
{
	if (!vm_machine_in_vm(machine, target))
		return VM_PROGRESS_STUCK;
	machine->pc = target;
	return VM_PROGRESS_ON;
}

/* Does the machine run a trace, or a stub, instead of the VM? */
static bool is_outside(const struct vm_machine *machine)
{
	return !vm_machine_in_vm(machine, machine->instruction->address);
}

static bool is_in_trace(const struct vm_machine *machine)
{
	return machine->trace &&
	       machine->instruction->address - machine->trace->mcode < machine->trace->szmcode;
}

/* A trace ends with a jump to another one, or to vm_exit_interp. */
static enum vm_progress leave_trace(struct vm_machine *machine, struct vm_value target)
{
	const struct trace *next;

	if (!target.known)
		return VM_PROGRESS_STUCK;
	if (vm_machine_in_vm(machine, target.bits)) {
		machine->pc = target.bits;
		return VM_PROGRESS_ON;
	}
	next = machine->trace ? traces_find(machine->traces, target.bits) : NULL;
	if (!next || next->mcode != target.bits)
		return VM_PROGRESS_STUCK;
	machine->pc = target.bits;
	return VM_PROGRESS_LINKED;
}

/* A stub calls the begin of its trace's stubs, which calls vm_exit_handler. */
static enum vm_progress run_stub_call(struct vm_machine *machine, struct vm_value target)
{
	uint32_t word;

	if (is_in_trace(machine) || !target.known ||
	    (!vm_machine_in_vm(machine, target.bits) &&
	     (!memory_u32(machine->memory, target.bits, &word) || word != (uint32_t)STORE_LR)))
		return VM_PROGRESS_STUCK;
	machine->registers[REGISTER_LR] = (struct vm_value){ machine->pc, true };
	machine->pc = target.bits;
	return VM_PROGRESS_ON;
}

static enum vm_progress run_condition(struct vm_machine *machine, uint32_t word)
{
	struct vm_value value = get(machine, rd_of(word));
	bool known = value.known, taken;

	if (is_conditional(word)) {
		known = machine->flags.known;
		taken = is_met(&machine->flags, bits_of(word, 0, 4));
	} else if (is_test_branch(word)) {
		unsigned int bit = bits_of(word, 31, 1) << 5 | bits_of(word, 19, 5);

		taken = (value.bits >> bit & 1) == bits_of(word, 24, 1);
	} else {
		taken = (cut(value, size_of(word)).bits != 0) == bits_of(word, 24, 1);
	}
	machine->guessed |= !known;
	if (known && taken)
		machine->pc = instruction_target(machine->instruction);
	return vm_machine_in_vm(machine, machine->pc) ? VM_PROGRESS_ON : VM_PROGRESS_STUCK;
}

static enum vm_progress run_call(struct vm_machine *machine, struct vm_value target)
{
	if (!target.known || !vm_machine_in_vm(machine, target.bits))
		return VM_PROGRESS_CALL_OUT;
	machine->registers[REGISTER_LR] = (struct vm_value){ machine->pc, true };
	machine->pc = target.bits;
	return VM_PROGRESS_ON;
}

static enum vm_progress run_return(struct vm_machine *machine, uint32_t word)
{
	struct vm_value target = get(machine, bits_of(word, 11, 1) ? (unsigned int)REGISTER_LR : rn_of(word));
	const struct registers any = { .pc = 0 };

	if (!target.known)
		return VM_PROGRESS_STUCK;
	machine->pc = registers_code_address(&any, target.bits);
	return vm_machine_in_vm(machine, machine->pc) ? VM_PROGRESS_ON : VM_PROGRESS_RETURNED;
}

static enum vm_progress run_jump(struct vm_machine *machine, uint32_t word)
{
	struct vm_value target = get(machine, rn_of(word));

	if (rn_of(word) == X_HANDLER || machine->holds_handler) {
		machine->pc = machine->instruction->address;
		return VM_PROGRESS_DISPATCH;
	}
	if (!target.known || !vm_machine_in_vm(machine, target.bits)) {
		machine->pc = machine->instruction->address;
		return VM_PROGRESS_JUMP_OUT;
	}
	machine->pc = target.bits;
	return VM_PROGRESS_ON;
}

/*---- Instructions ----*/

static bool run_other(struct vm_machine *machine, uint32_t word)
{
	if (is_pair(word) || is_load_scaled(word) || is_load_unscaled(word) || is_load_indexed(word))
		return run_memory(machine, word);
	if (is_hint(word) || run_immediate(machine, word) || run_registers(machine, word))
		return true;
	if (has_bits(word, 0x3b000000, 0x18000000)) { /* a literal */
		if (!bits_of(word, 26, 1))
			set(machine, rd_of(word), unknown);
		return true;
	}
	return has_bits(word, 0x0e000000, 0x0e000000) && run_vector(machine, word);
}

/* Does it go on elsewhere: a jump, a call or a return? */
static bool is_ending(uint32_t word)
{
	return is_conditional(word) || is_compare_branch(word) || is_test_branch(word) || is_branch(word) ||
	       is_call(word) || is_call_register(word) || is_return(word) || is_jump_register(word);
}

static enum vm_progress run_outside(struct vm_machine *machine, uint32_t word)
{
	const struct vm_value direct = {
		is_branch(word) || is_call(word) ? instruction_target(machine->instruction) : 0, true
	};

	if (is_branch(word))
		return leave_trace(machine, direct);
	if (is_jump_register(word))
		return leave_trace(machine, get(machine, rn_of(word)));
	if (is_call(word))
		return run_stub_call(machine, direct);
	if (is_call_register(word))
		return run_stub_call(machine, get(machine, rn_of(word)));
	return VM_PROGRESS_STUCK;
}

static enum vm_progress run(struct vm_machine *machine, uint32_t word)
{
	/*
	 * Of a trace, the machine runs only the last stretch, which leads to one place; and stubs of exits.
	 */
	if (is_outside(machine) && is_ending(word))
		return run_outside(machine, word);
	if (is_conditional(word) || is_compare_branch(word) || is_test_branch(word))
		return run_condition(machine, word);
	if (is_branch(word))
		return go_to(machine, instruction_target(machine->instruction));
	if (is_call(word))
		return run_call(machine, (struct vm_value){ instruction_target(machine->instruction), true });
	if (is_call_register(word))
		return run_call(machine, get(machine, rn_of(word)));
	if (is_return(word))
		return run_return(machine, word);
	if (is_jump_register(word))
		return run_jump(machine, word);
	return run_other(machine, word) && machine->registers[VM_SP].known ? VM_PROGRESS_ON
									   : VM_PROGRESS_STUCK;
}

/* Does it give PC a new value, instead of adding to it? */
static bool sets_pc(uint32_t word)
{
	int64_t offset;
	bool is_before;

	if (has_bits(word, 0xffe0ffff, 0xaa0003e0 | VM_PC)) /* mov */
		return true;
	if (is_pair(word))
		return bits_of(word, 22, 1) && (rd_of(word) == VM_PC || rt2_of(word) == VM_PC);
	return (is_load_scaled(word) || is_load_unscaled(word)) && rd_of(word) == VM_PC &&
	       !(instruction_writes_back(word, &offset, &is_before) && rn_of(word) == VM_PC);
}

enum vm_progress vm_machine_run_instruction(struct vm_machine *machine)
{
	uint64_t pc = machine->registers[VM_PC].bits;
	uint32_t word = machine->instruction->word;
	enum vm_progress progress = run(machine, word);

	if (machine->registers[VM_PC].bits != pc && sets_pc(word))
		machine->pc_set_at = machine->steps;
	return progress;
}

/*---- Before and after ----*/

void vm_machine_load_registers(struct vm_machine *machine, const struct registers *registers)
{
	machine->pc = registers->pc;
	for (int i = 0; i < VM_REGISTERS; i++)
		machine->registers[i] = (struct vm_value){ i == VM_SP ? registers->sp : registers->x[i],
							   true };
	machine->flags = (struct vm_flags){
		.zero = registers->flags & FLAG_ZERO,
		.sign = registers->flags & FLAG_SIGN,
		.carry = registers->flags & FLAG_CARRY,
		.overflow = registers->flags & FLAG_OVERFLOW,
		.known = true,
	};
}

void vm_machine_take_result(struct vm_machine *machine, uint64_t result)
{
	/* Procedure Call Standard for the Arm 64-bit Architecture, 6.1.1 */
	for (int i = 0; i < REGISTER_X19; i++)
		machine->registers[i] = (struct vm_value){ 0 };
	machine->registers[REGISTER_LR] = (struct vm_value){ 0 };
	machine->registers[REGISTER_X0] = (struct vm_value){ result, true };
	machine->flags.known = false;
}

struct vm_value vm_machine_result(const struct vm_machine *machine)
{
	return machine->registers[REGISTER_X0];
}

void vm_machine_save_registers(const struct vm_machine *machine, struct registers *ret_registers)
{
	struct registers r = { .call_number = UINT64_MAX, .pc = machine->pc };

	for (int i = 0; i < VM_REGISTERS; i++) {
		*registers_locate(&r, i) = machine->registers[i].bits;
		if (!machine->registers[i].known)
			r.unknown |= registers_set_of(i);
	}
	*ret_registers = r;
}

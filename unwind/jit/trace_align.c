/* SPDX-License-Identifier: MIT */
#include "unwind/jit/trace_align.h"

#include <stdlib.h>
#include <string.h>

#include "luajit-layouts/bytecode.h"
#include "unwind/jit/trace_key.h"
#include "unwind/trace/trace_block.h"
#include "unwind/lua/luajit.h"

/*
 * How well an IR instruction fits a bytecode. Only the order of magnitude
 * matters: an operand that agrees outweighs any instruction kind.
 */
enum {
	FIT_NEVER = -8,
	FIT_UNLIKELY = -3,
	FIT_POSSIBLE = 0,
	FIT_PLAUSIBLE = 2,
	FIT_GOOD = 4,
	FIT_TYPICAL = 6,
	FIT_OPERAND = 8, /* added if a constant or slot agrees */
	FIT_CALLEE = 16, /* the called function agrees */
	FIT_OTHER_CALLEE = -32,
	FIT_AFTER_RESULT = -8, /* added for instructions after the bytecode's result */
};

enum { CELLS_MAX = 1 << 22 };

/* Kinds of bytecodes that differ in the IR. */
enum bytecode_kind {
	KIND_OTHER,
	KIND_COMPARE,
	KIND_EQUAL,
	KIND_TEST,
	KIND_ARITHMETIC,
	KIND_LEN,
	KIND_CAT,
	KIND_UGET,
	KIND_USET,
	KIND_TGET,
	KIND_TSET,
	KIND_CALL,
	KIND_RETURN,
	KIND_FOR,
	KIND_NEW,
};

static enum bytecode_kind kind_of(enum bytecode_op op)
{
	if (op <= BC_ISGT)
		return KIND_COMPARE;
	if (op <= BC_ISNEP)
		return KIND_EQUAL;
	if (op <= BC_ISF)
		return KIND_TEST;
	if (op == BC_UNM || (op >= BC_ADDVN && op <= BC_POW) || (op >= BC_BNOT && op <= BC_BSAR))
		return KIND_ARITHMETIC;
	if (op == BC_LEN)
		return KIND_LEN;
	if (op == BC_CAT)
		return KIND_CAT;
	if (op == BC_UGET)
		return KIND_UGET;
	if (op >= BC_USETV && op <= BC_USETP)
		return KIND_USET;
	if (op >= BC_FNEW && op <= BC_TDUP)
		return KIND_NEW;
	if (op == BC_GGET || (op >= BC_TGETV && op <= BC_TGETR))
		return KIND_TGET;
	if (op == BC_GSET || (op >= BC_TSETV && op <= BC_TSETR))
		return KIND_TSET;
	if (op >= BC_CALLM && op <= BC_ITERN)
		return KIND_CALL;
	if (op >= BC_RETM && op <= BC_RET1)
		return KIND_RETURN;
	if (op >= BC_FORI && op <= BC_JFORL)
		return KIND_FOR;
	return KIND_OTHER;
}

/* A decoded bytecode of the path. */
struct place {
	enum bytecode_op op;
	enum bytecode_kind kind;
	uint32_t instruction;
	const struct proto *proto;
	int base; /* slot of its frame's base; -1 if unknown */
	int32_t frame;
	const struct place *first;  /* the path's first place */
	const struct proto *callee; /* the function that a call enters; NULL if none */
};

enum { CONSUMER_DISTANCE = 12 }; /* IR instructions searched for the use of a result */

struct aligner {
	const struct path_alignment *alignment;
	uint32_t slot_refs[TRACE_SLOTS]; /* the next snapshot's references */
};

/*---- Operands ----*/

static bool is_number(uint64_t bits, double number)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value == number;
}

/* Is one of the instruction's operands this number constant of the bytecode? */
static bool has_number(const struct aligner *aligner, const struct trace_instruction *ins, uint64_t bits)
{
	const struct path_alignment *alignment = aligner->alignment;
	const uint16_t refs[] = { ins->op1, ins->op2 };

	for (unsigned i = 0; i < 2; i++) {
		struct trace_instruction constant;
		uint64_t value;

		if (refs[i] >= TRACE_REF_BIAS ||
		    !trace_instruction(alignment->trace, alignment->layout, refs[i], &constant) ||
		    !trace_constant(alignment->trace, alignment->layout, refs[i], &value))
			continue;
		if (constant.op == IR_KNUM && value == bits)
			return true;
		if (constant.op == IR_KINT && is_number(bits, (double)(int32_t)value))
			return true;
	}
	return false;
}

/*
 * Is its second operand a function or prototype? Then it checks the called function
 * (rec_call_specialize()): *ret_proto is its prototype, NULL for a builtin.
 */
static bool checks_function(const struct aligner *aligner, const struct trace_instruction *ins,
			    const struct proto **ret_proto)
{
	const struct path_alignment *alignment = aligner->alignment;
	const struct function_object *function;
	struct trace_instruction constant;
	uint64_t object;

	if (ins->op2 >= TRACE_REF_BIAS ||
	    !trace_instruction(alignment->trace, alignment->layout, ins->op2, &constant) ||
	    constant.op != IR_KGC || (constant.type != IRT_FUNC && constant.type != IRT_PROTO) ||
	    !trace_constant(alignment->trace, alignment->layout, ins->op2, &object))
		return false;
	function = constant.type == IRT_FUNC ? lua_objects_function(alignment->objects, object) : NULL;
	*ret_proto = constant.type == IRT_PROTO ? lua_objects_proto(alignment->objects, object)
		     : function                 ? function->proto
						: NULL;
	return true;
}

/* Does the bytecode read this slot? */
static bool reads_slot(const struct layout *layout, const struct place *place, int slot)
{
	uint8_t number = (uint8_t)place->instruction;
	int operand = slot - place->base;
	int a = bytecode_a(place->instruction);

	if (place->base < 0 || operand < 0)
		return false;
	switch ((int)place->kind) {
	case KIND_FOR: return operand >= a && operand < a + 3;
	case KIND_CALL: return operand >= a - 3;
	case KIND_CAT:
		return operand >= bytecode_b(place->instruction) && operand <= bytecode_c(place->instruction);
	case KIND_RETURN: return operand >= a;
	default: break;
	}
	if (bytecode_mode_a(layout, number) == BCMvar && operand == a)
		return true;
	if (bytecode_mode_b(layout, number) == BCMvar)
		return operand == bytecode_b(place->instruction) ||
		       (bytecode_mode_c(layout, number) == BCMvar &&
			operand == bytecode_c(place->instruction));
	return bytecode_mode_c(layout, number) == BCMvar && operand == bytecode_d(place->instruction);
}

/*
 * The reference of the table that an instruction accesses; 0 if there is none. This
 * follows references from a load or store to the address to the table's field.
 */
static uint32_t table_of(const struct path_alignment *alignment, uint32_t ref)
{
	for (unsigned i = 0; i < 4; i++) {
		struct trace_instruction ins;

		if (ref < TRACE_REF_BIAS ||
		    !trace_instruction(alignment->trace, alignment->layout, ref, &ins))
			return 0;
		switch ((int)ins.op) {
		case IR_FLOAD:
		case IR_HREF:
		case IR_NEWREF: return ins.op1;
		case IR_ABC:
		case IR_AREF:
		case IR_HREFK:
		case IR_ASTORE:
		case IR_HSTORE:
		case IR_ALOAD:
		case IR_HLOAD: ref = ins.op1; break;
		default: return 0;
		}
	}
	return 0;
}

/* Does it look up a key in a metatable, such as "__index", before the bytecode's own key? */
static bool looks_up_metamethod(const struct path_alignment *alignment, const struct trace_instruction *ins)
{
	struct trace_instruction table;
	uint32_t ref = ins->op1;

	if (ins->op == IR_HREFK)
		ref = table_of(alignment, ref);
	return ref >= TRACE_REF_BIAS && trace_instruction(alignment->trace, alignment->layout, ref, &table) &&
	       table.op == IR_FLOAD && table.type == IRT_TAB;
}

/*---- Fit ----*/

static int fit_arithmetic(const struct aligner *aligner, const struct trace_instruction *ins,
			  const struct place *place)
{
	static const enum ir_op plain[] = { IR_ADD, IR_SUB, IR_MUL, IR_DIV };
	static const enum ir_op checked[] = { IR_ADDOV, IR_SUBOV, IR_MULOV, IR__MAX };
	bool is_sum = ins->op == IR_ADD || ins->op == IR_ADDOV;
	unsigned operation;
	uint64_t bits;
	int fit;

	if (place->kind == KIND_FOR)
		return is_sum ? FIT_TYPICAL : FIT_UNLIKELY;
	if (place->kind == KIND_CALL)
		return FIT_PLAUSIBLE;
	if (place->kind != KIND_ARITHMETIC)
		return place->kind == KIND_TGET || place->kind == KIND_TSET || place->kind == KIND_LEN
			       ? FIT_POSSIBLE
			       : FIT_NEVER;
	if (place->op == BC_POW || place->op >= BC_BNOT)
		return FIT_GOOD;
	if (place->op == BC_UNM)
		return ins->op == IR_NEG || ins->op == IR_SUB || ins->op == IR_SUBOV ? FIT_TYPICAL
										     : FIT_UNLIKELY;
	operation = (unsigned)(place->op - BC_ADDVN) % 5;
	if (operation == 4) /* % is a - floor(a / b) * b */
		fit = ins->op == IR_DIV || ins->op == IR_MUL || ins->op == IR_SUB || ins->op == IR_MOD ||
				      ins->op == IR_BAND
			      ? FIT_GOOD
			      : FIT_UNLIKELY;
	else if (ins->op == plain[operation] || ins->op == checked[operation])
		fit = FIT_TYPICAL;
	else /* x / 2 becomes x * 0.5, x - 1 becomes x + -1, x * 2 becomes x + x */
		fit = (operation == 3 && ins->op == IR_MUL) || (operation == 1 && is_sum) ||
				      (operation == 2 && is_sum)
			      ? FIT_PLAUSIBLE
			      : FIT_NEVER;
	if (fit > 0 && place->op < BC_ADDVV &&
	    proto_knum(aligner->alignment->layout, place->proto, bytecode_c(place->instruction), &bits) &&
	    has_number(aligner, ins, bits))
		fit += FIT_OPERAND;
	return fit;
}

static bool is_table_kind(enum bytecode_kind kind)
{
	return kind == KIND_TGET || kind == KIND_TSET;
}

static int fit_table(const struct aligner *aligner, const struct trace_instruction *ins,
		     const struct place *place)
{
	const struct path_alignment *alignment = aligner->alignment;
	bool is_store = ins->op == IR_ASTORE || ins->op == IR_HSTORE || ins->op == IR_NEWREF ||
			ins->op == IR_TBAR;
	uint64_t key, wanted;
	int fit;

	if (place->kind == KIND_CALL)
		return place->op == BC_ITERC || place->op == BC_ITERN ? FIT_GOOD : FIT_PLAUSIBLE;
	if (place->kind == KIND_NEW)
		return is_store ? FIT_POSSIBLE : FIT_UNLIKELY;
	if (!is_table_kind(place->kind))
		return place->kind == KIND_ARITHMETIC || place->kind == KIND_EQUAL || place->kind == KIND_LEN
			       ? FIT_UNLIKELY
			       : FIT_NEVER;
	fit = is_store && place->kind == KIND_TGET ? FIT_NEVER : FIT_GOOD;
	if (is_store && place->kind == KIND_TSET)
		fit = FIT_TYPICAL;
	if ((ins->op == IR_ALOAD || ins->op == IR_HLOAD) && place->kind == KIND_TGET)
		fit = FIT_TYPICAL;
	if ((ins->op == IR_AREF || ins->op == IR_ABC) &&
	    (place->op == BC_TGETS || place->op == BC_TSETS || place->op == BC_GGET))
		fit = FIT_NEVER;
	if ((ins->op == IR_HREFK || ins->op == IR_HREF || ins->op == IR_NEWREF) &&
	    trace_key_of_bytecode(alignment->layout, place->proto, place->op, place->instruction, &wanted) &&
	    trace_key_of_lookup(alignment->trace, alignment->layout, ins, &key)) {
		if (key == wanted)
			fit += FIT_OPERAND;
		else if (!looks_up_metamethod(alignment, ins))
			fit += FIT_NEVER;
	}
	return fit;
}

static int fit_upvalue(const struct trace_instruction *ins, const struct place *place)
{
	unsigned index;

	if (place->kind != KIND_UGET && place->kind != KIND_USET)
		return FIT_NEVER;
	if (ins->op == IR_USTORE || ins->op == IR_OBAR)
		return place->kind == KIND_USET ? FIT_TYPICAL : FIT_NEVER;
	if (ins->op == IR_ULOAD)
		return place->kind == KIND_UGET ? FIT_TYPICAL : FIT_NEVER;
	index = place->kind == KIND_UGET ? bytecode_d(place->instruction) : bytecode_a(place->instruction);
	return trace_upvalue_index(ins) == index ? FIT_OPERAND : FIT_UNLIKELY;
}

static int fit_comparison(const struct aligner *aligner, const struct trace_instruction *ins,
			  const struct place *place)
{
	if (ins->op == IR_EQ || ins->op == IR_NE) {
		const struct proto *callee;

		if (checks_function(aligner, ins, &callee)) {
			if (place->kind != KIND_CALL)
				return FIT_UNLIKELY;
			return callee == place->callee ? FIT_CALLEE : FIT_OTHER_CALLEE;
		}
		if (place->kind == KIND_EQUAL)
			return FIT_TYPICAL;
		return place->kind == KIND_CALL     ? FIT_PLAUSIBLE
		       : is_table_kind(place->kind) ? FIT_POSSIBLE
						    : FIT_UNLIKELY;
	}
	if (place->kind == KIND_COMPARE || place->kind == KIND_FOR)
		return FIT_TYPICAL;
	return place->kind == KIND_CALL     ? FIT_PLAUSIBLE
	       : is_table_kind(place->kind) ? FIT_POSSIBLE
					    : FIT_NEVER;
}

/* Is this string constant an operand of the concatenation? */
static bool concatenates(const struct layout *layout, const struct place *place, uint64_t string)
{
	for (const struct place *at = place; at-- > place->first;) {
		uint64_t constant;

		if (at->frame != place->frame || at->op != BC_KSTR ||
		    bytecode_a(at->instruction) < bytecode_b(place->instruction) ||
		    bytecode_a(at->instruction) > bytecode_c(place->instruction))
			continue;
		if (proto_kgc(layout, at->proto, bytecode_d(at->instruction), &constant) &&
		    constant == string)
			return true;
	}
	return false;
}

/* Is there an earlier concatenation? The last of several joins the constants that they put side by side. */
static bool follows_concatenation(const struct place *place)
{
	for (const struct place *at = place; at-- > place->first;)
		if (at->kind == KIND_CAT)
			return true;
	return false;
}

static int fit_string(const struct aligner *aligner, const struct trace_instruction *ins,
		      const struct place *place)
{
	uint64_t string;

	if (place->kind == KIND_CALL)
		return FIT_GOOD;
	if (place->kind == KIND_CAT && ins->op == IR_BUFPUT && ins->op2 < TRACE_REF_BIAS &&
	    trace_constant(aligner->alignment->trace, aligner->alignment->layout, ins->op2, &string)) {
		if (concatenates(aligner->alignment->layout, place, string))
			return FIT_OPERAND + FIT_OPERAND;
		return follows_concatenation(place) ? FIT_PLAUSIBLE : FIT_UNLIKELY;
	}
	if (place->kind == KIND_CAT)
		return ins->op == IR_XLOAD || ins->op == IR_STRREF ? FIT_UNLIKELY : FIT_TYPICAL;
	return FIT_UNLIKELY;
}

static int fit_call(const struct place *place)
{
	switch ((int)place->kind) {
	case KIND_CALL:
	case KIND_CAT: return FIT_GOOD;
	case KIND_COMPARE:
	case KIND_ARITHMETIC:
	case KIND_TSET:
	case KIND_TGET:
	case KIND_LEN:
	case KIND_NEW: return FIT_PLAUSIBLE;
	default: return FIT_UNLIKELY;
	}
}

static int fit_load_of_slot(const struct aligner *aligner, const struct trace_instruction *ins,
			    const struct place *place)
{
	if (place->base < 0)
		return FIT_POSSIBLE;
	return reads_slot(aligner->alignment->layout, place, ins->op1) ? FIT_OPERAND : FIT_UNLIKELY;
}

static int fit_operation(const struct aligner *aligner, const struct trace_instruction *ins,
			 const struct place *place)
{
	switch ((int)ins->op) {
	case IR_LT:
	case IR_GE:
	case IR_LE:
	case IR_GT:
	case IR_ULT:
	case IR_UGE:
	case IR_ULE:
	case IR_UGT:
	case IR_EQ:
	case IR_NE: return fit_comparison(aligner, ins, place);
	case IR_RETF:
		/* A builtin called by a tail call returns immediately. */
		return place->kind == KIND_RETURN || place->op == BC_CALLT || place->op == BC_CALLMT
			       ? FIT_OPERAND
			       : FIT_NEVER;
	case IR_ADD:
	case IR_SUB:
	case IR_MUL:
	case IR_DIV:
	case IR_MOD:
	case IR_POW:
	case IR_NEG:
	case IR_ADDOV:
	case IR_SUBOV:
	case IR_MULOV:
	case IR_BNOT:
	case IR_BAND:
	case IR_BOR:
	case IR_BXOR:
	case IR_BSHL:
	case IR_BSHR:
	case IR_BSAR: return fit_arithmetic(aligner, ins, place);
	case IR_FPMATH:
		return place->op == BC_MODVN || place->op == BC_MODNV || place->op == BC_MODVV ||
				       place->kind == KIND_CALL
			       ? FIT_GOOD
			       : FIT_UNLIKELY;
	case IR_ABS:
	case IR_ATAN2:
	case IR_LDEXP:
	case IR_MIN:
	case IR_MAX:
	case IR_BSWAP:
	case IR_BROL:
	case IR_BROR:
	case IR_TOBIT: return place->kind == KIND_CALL ? FIT_TYPICAL : FIT_UNLIKELY;
	case IR_ABC:
	case IR_AREF:
	case IR_HREFK:
	case IR_HREF:
	case IR_NEWREF:
	case IR_ALOAD:
	case IR_HLOAD:
	case IR_ASTORE:
	case IR_HSTORE:
	case IR_TBAR: return fit_table(aligner, ins, place);
	case IR_UREFO:
	case IR_UREFC:
	case IR_ULOAD:
	case IR_USTORE:
	case IR_OBAR: return fit_upvalue(ins, place);
	case IR_FLOAD:
	case IR_FREF:
		return is_table_kind(place->kind) || place->kind == KIND_LEN || place->kind == KIND_CALL
			       ? FIT_PLAUSIBLE
			       : FIT_UNLIKELY;
	case IR_ALEN: return place->kind == KIND_LEN ? FIT_TYPICAL : FIT_POSSIBLE;
	case IR_SLOAD: return fit_load_of_slot(aligner, ins, place);
	case IR_XLOAD:
	case IR_STRREF:
	case IR_SNEW:
	case IR_XSNEW:
	case IR_TOSTR:
	case IR_STRTO:
	case IR_BUFHDR:
	case IR_BUFPUT:
	case IR_BUFSTR: return fit_string(aligner, ins, place);
	case IR_TNEW: return place->op == BC_TNEW ? FIT_OPERAND : FIT_UNLIKELY;
	case IR_TDUP: return place->op == BC_TDUP ? FIT_OPERAND : FIT_UNLIKELY;
	case IR_CALLN:
	case IR_CALLA:
	case IR_CALLL:
	case IR_CALLS:
	case IR_CARG: return fit_call(place);
	case IR_CALLXS: return place->kind == KIND_CALL ? FIT_TYPICAL : FIT_NEVER;
	case IR_CNEW:
	case IR_CNEWI:
	case IR_XSTORE:
	case IR_XBAR:
		return place->kind == KIND_CALL || place->kind == KIND_ARITHMETIC ||
				       is_table_kind(place->kind)
			       ? FIT_PLAUSIBLE
			       : FIT_POSSIBLE;
	default: return FIT_POSSIBLE;
	}
}

/* Can it prepare the entry of a Lua function? That takes only a check; other work belongs to builtins. */
static bool prepares_call(const struct path_alignment *alignment, const struct trace_instruction *ins)
{
	struct trace_instruction operand;

	if (ins->op == IR_SLOAD || ins->op == IR_EQ)
		return true;
	return ins->op == IR_FLOAD && ins->op1 >= TRACE_REF_BIAS &&
	       trace_instruction(alignment->trace, alignment->layout, ins->op1, &operand) &&
	       operand.type == IRT_FUNC;
}

/* Is this the bytecode's result? A bytecode computes it once, as its last work. */
static bool is_result(const struct trace_instruction *ins, const struct place *place)
{
	bool is_modulo = place->op == BC_MODVN || place->op == BC_MODNV || place->op == BC_MODVV;

	switch ((int)ins->op) {
	case IR_ULOAD: return place->kind == KIND_UGET;
	case IR_TNEW: return place->op == BC_TNEW;
	case IR_TDUP: return place->op == BC_TDUP;
	case IR_CALLXS: return place->kind == KIND_CALL;
	case IR_SUB:
	case IR_SUBOV:
	case IR_MOD:
	case IR_BAND: return place->kind == KIND_ARITHMETIC;
	case IR_ADD:
	case IR_ADDOV:
	case IR_MUL:
	case IR_MULOV:
	case IR_DIV:
	case IR_NEG:
	case IR_POW:
	case IR_BNOT:
	case IR_BOR:
	case IR_BXOR:
	case IR_BSHL:
	case IR_BSHR:
	case IR_BSAR: return place->kind == KIND_ARITHMETIC && !is_modulo;
	default: return false;
	}
}

/* The penalty for an instruction after the result. A C function's result may still be converted. */
static int fit_after_result(const struct trace_instruction *ins, const struct place *place)
{
	if (place->kind != KIND_CALL)
		return FIT_AFTER_RESULT;
	return is_result(ins, place) ? FIT_OTHER_CALLEE : 0;
}

static int fit(const struct aligner *aligner, uint32_t ref, const struct trace_instruction *ins,
	       const struct place *place)
{
	int value;

	if (!place->proto || place->op == BC__MAX)
		return FIT_POSSIBLE;
	value = fit_operation(aligner, ins, place);
	if (place->callee && value > FIT_UNLIKELY && !prepares_call(aligner->alignment, ins))
		value = FIT_UNLIKELY;
	/* The bytecode computed the value that the next snapshot holds in the slot it sets. */
	if (place->base >= 0 && value > 0 &&
	    bytecode_mode_a(aligner->alignment->layout, (uint8_t)place->instruction) == BCMdst &&
	    place->base + bytecode_a(place->instruction) < TRACE_SLOTS &&
	    aligner->slot_refs[place->base + bytecode_a(place->instruction)] == ref)
		value += FIT_GOOD;
	return value;
}

/* Does it convert a number to an integer index, or add to such an index (lj_opt_narrow.c)? */
static bool is_index(const struct path_alignment *alignment, const struct trace_instruction *ins)
{
	struct trace_instruction operand;

	if (ins->type != IRT_INT || ins->guard)
		return ins->op == IR_CONV;
	if (ins->op != IR_ADD && ins->op != IR_SUB)
		return ins->op == IR_CONV;
	return ins->op1 >= TRACE_REF_BIAS &&
	       trace_instruction(alignment->trace, alignment->layout, ins->op1, &operand) &&
	       operand.op == IR_CONV;
}

/* The nearby instruction that uses a result. For a step of an index computation, the use of that index. */
static bool find_use(const struct path_alignment *alignment, uint32_t ref, struct trace_instruction *ret_use)
{
	bool is_found = false;

	for (uint32_t at = ref + 1; at < alignment->end_ref && at <= ref + CONSUMER_DISTANCE; at++) {
		struct trace_instruction use;

		if (!trace_instruction(alignment->trace, alignment->layout, at, &use) ||
		    (use.op1 != ref && use.op2 != ref))
			continue;
		*ret_use = use;
		is_found = true;
		if (!is_index(alignment, &use))
			break;
		ref = at;
	}
	return is_found;
}

/*
 * Loads and checks of a table's fields serve the access that follows. Conversions of
 * numbers serve their use. That access or use fits a bytecode better. False if there is
 * none nearby.
 */
static bool find_access(const struct path_alignment *alignment, uint32_t ref,
			const struct trace_instruction *ins, struct trace_instruction *ret_access)
{
	struct trace_instruction field = *ins;
	uint32_t table;

	if (is_index(alignment, ins)) {
		bool is_found = find_use(alignment, ref, &field);

		*ret_access = field;
		return is_found;
	}
	if (ins->guard && (ins->op1 < TRACE_REF_BIAS ||
			   !trace_instruction(alignment->trace, alignment->layout, ins->op1, &field)))
		return false;
	if (field.op != IR_FLOAD)
		return false;
	table = field.op1;
	for (uint32_t at = ref + 1; at < alignment->end_ref && at <= ref + CONSUMER_DISTANCE; at++) {
		struct trace_instruction access;

		if (!trace_instruction(alignment->trace, alignment->layout, at, &access))
			return false;
		if (access.op == IR_FLOAD || table_of(alignment, at) != table)
			continue;
		*ret_access = access;
		return true;
	}
	return false;
}

/*---- The best alignment ----*/

static void load_places(const struct path_alignment *alignment, const struct path_point *points, size_t count,
			struct place *places)
{
	for (size_t i = 0; i < count; i++) {
		const struct path_frame *frame = &alignment->frames->frame[points[i].frame];

		places[i] = (struct place){ .op = BC__MAX,
					    .base = -1,
					    .proto = frame->proto,
					    .frame = points[i].frame,
					    .first = places };
		if (!frame->proto || !proto_instruction(frame->proto, points[i].pc, &places[i].instruction))
			continue;
		places[i].op = bytecode_op(alignment->layout, (uint8_t)places[i].instruction);
		places[i].kind = kind_of(places[i].op);
		places[i].base = frame->base_slot ? frame->base_slot : -1;
		if (i + 1 < count && places[i].kind == KIND_CALL && points[i + 1].frame != points[i].frame) {
			const struct path_frame *next = &alignment->frames->frame[points[i + 1].frame];

			if (next->proto && points[i + 1].pc == next->proto->bc)
				places[i].callee = next->proto;
		}
	}
}

/*
 * The states that an instruction may be assigned to: a place, and whether its
 * bytecode already has its result.
 */
enum { STATE_OPEN, STATE_DONE, STATES };
enum { SCORE_NEVER = INT32_MIN / 2 };

static uint32_t better(const int32_t *scores, uint32_t state, uint32_t other)
{
	return scores[other] > scores[state] ? other : state;
}

/*
 * Extend the assignments by one instruction. scores[]: for each state, the score of
 * the best assignment of all instructions so far that gives the last one this state.
 * from[]: the state of the instruction before it in that assignment.
 */
static void align_instruction(const struct aligner *aligner, uint32_t ref, const struct place *places,
			      uint32_t count, int32_t *scores, uint32_t *from)
{
	struct trace_instruction ins, access;
	bool known = trace_instruction(aligner->alignment->trace, aligner->alignment->layout, ref, &ins);
	bool is_for_access = known && find_access(aligner->alignment, ref, &ins, &access);
	uint32_t before = 0;

	for (uint32_t j = 0; j < count; j++) {
		from[j * STATES + STATE_OPEN] = better(scores, before, j * STATES + STATE_OPEN);
		before = better(scores, from[j * STATES + STATE_OPEN], j * STATES + STATE_DONE);
	}
	for (uint32_t j = count; j-- > 0;) {
		uint32_t open = j * STATES + STATE_OPEN, done = j * STATES + STATE_DONE;
		int value = known ? fit(aligner, ref, is_for_access ? &access : &ins, &places[j]) : 0;
		int32_t score = scores[from[open]] + value;

		from[done] = done;
		scores[done] += value + (known ? fit_after_result(&ins, &places[j]) : FIT_AFTER_RESULT);
		scores[open] = score;
		if (!known || is_for_access || !is_result(&ins, &places[j]))
			continue;
		if (score > scores[done]) {
			scores[done] = score;
			from[done] = from[open];
		}
		scores[open] = SCORE_NEVER;
	}
}

static int32_t find_best(const struct aligner *aligner, const struct place *places, size_t count,
			 int32_t *scores, uint32_t *from, uint32_t *ret_points)
{
	const struct path_alignment *alignment = aligner->alignment;
	size_t length = alignment->end_ref - alignment->ref, width = count * STATES;
	uint32_t best = 0;

	for (size_t j = 0; j < count; j++) {
		scores[j * STATES + STATE_OPEN] = 0;
		scores[j * STATES + STATE_DONE] = SCORE_NEVER;
	}
	for (size_t i = 0; i < length; i++)
		align_instruction(aligner, alignment->ref + (uint32_t)i, places, (uint32_t)count, scores,
				  from + i * width);
	for (uint32_t state = 1; state < width; state++)
		best = better(scores, best, state);
	for (size_t i = length, state = best; i-- > 0;) {
		ret_points[i] = (uint32_t)(state / STATES);
		state = from[i * width + state];
	}
	return scores[best];
}

int32_t trace_align(const struct path_alignment *alignment, const struct path_point *points, size_t count,
		    uint32_t *ret_points)
{
	size_t length = alignment->end_ref - alignment->ref;
	struct aligner aligner = { .alignment = alignment };
	struct place *places = calloc(count, sizeof(*places));
	int32_t *scores = calloc(count, STATES * sizeof(*scores));
	uint32_t *from = NULL;
	int32_t result = INT32_MIN;

	if (count && length <= CELLS_MAX / STATES / count)
		from = malloc((length * count * STATES + 1) * sizeof(*from));
	if (places && scores && from) {
		trace_snapshot_refs(alignment->trace, alignment->layout, alignment->next_snapshot,
				    aligner.slot_refs);
		load_places(alignment, points, count, places);
		result = find_best(&aligner, places, count, scores, from, ret_points);
	}
	free(places);
	free(scores);
	free(from);
	return result;
}

/* SPDX-License-Identifier: MIT */
#include "unwind/listing/ir_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/trace/trace_block.h"
#include "unwind/lua/luajit.h"

/* Snapshot map entries (lj_jit.h, SNAP()). */
enum {
	SNAP_FRAME = 0x010000,
	SNAP_CONT = 0x020000,
	SNAP_SOFTFPNUM = 0x080000,
	SNAP_REF = 0xffff,
	SNAP_SLOT_SHIFT = 24,
	SNAP_FRAME_SLOT = 0x1057fff, /* SNAP(1, SNAP_FRAME | SNAP_NORESTORE, REF_NIL) */
};

enum {
	REF_NIL = TRACE_REF_BIAS - 1,
	IRT_THREAD = 6,
	IRT_TRACE = 9, /* of an object */
	IRT_UDATA = 12,
	IRT_I64 = 21,
	RID_SINK = 253,
	RID_SUNK = 254,
	RID_NONE_FIRST = 128,
	SPILL_BYTES = 4,
	STRING_CUT = 20,
	CONSTANT_WIDTH = 4,
	CARGS_MAX = 32, /* CCI_NARGS_MAX */
};

/*---- Constants ----*/

static void write_address(const char *before, uint64_t address, const char *after, FILE *out)
{
	fputs(before, out);
	listing_write_pointer(address, out);
	fputs(after, out);
}

static void write_object(const struct ir_text *text, unsigned type, uint64_t object, FILE *out)
{
	switch ((int)type) {
	case IRT_STR:
		if (!listing_write_string(text->source, object, STRING_CUT, out))
			write_address("string: ", object, "", out);
		break;
	case IRT_FUNC: listing_write_function(text->source, object, out); break;
	case IRT_TAB: write_address("{", object, "}", out); break;
	case IRT_THREAD: write_address("thread: ", object, "", out); break;
	case IRT_PROTO: write_address("proto: ", object, "", out); break;
	case IRT_TRACE: write_address("trace: ", object, "", out); break;
	case IRT_CDATA: listing_write_cdata(text->source, object, out); break;
	case IRT_UDATA:
		write_address("userdata:", object + (uint64_t)text->source->layout->GCudata_size, "", out);
		break;
	default: write_address("?", object, "", out); break;
	}
}

static void write_double(uint64_t bits, uint32_t entry, FILE *out)
{
	const uint64_t bias = UINT64_C(0x4338000000000000); /* of 2^52 + 2^51 */
	double number;

	memcpy(&number, &bits, sizeof(number));
	if (entry & (SNAP_FRAME | SNAP_CONT))
		fputs(entry & SNAP_CONT ? "contpc" : "ftsz", out);
	else if (bits == bias)
		fputs("bias", out);
	else
		listing_write_number(number, true, out);
}

/* A constant's text, but for its width. entry: of the snapshot that it is in, or 0. */
static void write_value(const struct ir_text *text, uint32_t ref, const struct trace_instruction *constant,
			uint32_t entry, FILE *out)
{
	uint64_t value;

	if (constant->op == IR_KPRI) {
		fputs(constant->type == IRT_NIL ? "nil" : constant->type == 1 ? "false" : "true", out);
		return;
	}
	if (constant->op == IR_KNULL) {
		fputs("NULL", out);
		return;
	}
	if (!trace_constant(text->trace, text->source->layout, ref, &value)) {
		fputs("?", out);
		return;
	}
	switch ((int)constant->op) {
	case IR_KGC: write_object(text, constant->type, value, out); break;
	case IR_KPTR:
	case IR_KKPTR:
		if (value)
			fprintf(out, "[0x%08" PRIx64 "]", value);
		else
			fputs("NULL", out);
		break;
	case IR_KINT:
		if (entry & (SNAP_FRAME | SNAP_CONT))
			fputs(entry & SNAP_CONT ? "contpc" : "ftsz", out);
		else
			fprintf(out, "%+" PRId64, (int64_t)value);
		break;
	case IR_KNUM: write_double(value, entry, out); break;
	case IR_KINT64:
		fprintf(out, constant->type == IRT_I64 ? "%+" PRId64 : "%" PRId64 "LL", (int64_t)value);
		break;
	default: fputs("?", out); break;
	}
}

/* A constant as in an operand, four characters wide at least. */
static void write_constant(const struct ir_text *text, uint32_t ref, uint32_t entry, FILE *out)
{
	struct trace_instruction constant;
	struct listing_text value;
	int32_t slot = -1;
	char *written;

	if (entry == SNAP_FRAME_SLOT) {
		fputs("----", out);
		return;
	}
	if (!trace_instruction(text->trace, text->source->layout, ref, &constant)) {
		fputs("?   ", out);
		return;
	}
	if (constant.op == IR_KSLOT) {
		slot = constant.op2;
		ref = constant.op1;
		if (ref >= TRACE_REF_BIAS ||
		    !trace_instruction(text->trace, text->source->layout, ref, &constant)) {
			fputs("?   ", out);
			return;
		}
	}
	if (!listing_text_begin(&value))
		return;
	write_value(text, ref, &constant, entry, value.out);
	written = listing_text_end(&value);
	fprintf(out, "%-*s", CONSTANT_WIDTH, written ? written : "?");
	free(written);
	if (slot >= 0)
		fprintf(out, " @%d", slot);
}

static unsigned short_ref(uint32_t ref)
{
	return ref - TRACE_REF_BIAS;
}

static void write_ref(const struct ir_text *text, uint32_t ref, FILE *out)
{
	if (ref < TRACE_REF_BIAS)
		write_constant(text, ref, 0, out);
	else
		fprintf(out, "%04u", short_ref(ref));
}

/*---- Literals ----*/

static void write_sload(unsigned mode, FILE *out)
{
	static const char letters[] = "PFTCRIK";

	for (unsigned bit = 0; letters[bit]; bit++)
		if (mode & 1u << bit)
			putc(letters[bit], out);
}

/* "none" came with 2.1 of 2021; the others kept their numbers in the two highest bits. */
static void write_conv(const struct layout *layout, unsigned mode, FILE *out)
{
	static const char *const checks[] = { "", " none", " index", " check" };
	bool has_none = layout->bytecode != BYTECODE_V20 && layout->SnapShot_mcofs != LAYOUT_ABSENT;
	unsigned check = has_none ? mode >> 12 : mode >> 14;

	fprintf(out, "%s.%s", ir_type_name(mode >> 5 & 31), ir_type_name(mode & 31));
	if (mode & 0x800)
		fputs(" sext", out);
	if (check < 4 && (has_none || check >= 2))
		fputs(checks[check], out);
}

/* The name of a literal; NULL if it has none. */
static const char *literal_name(const struct ir_text *text, enum ir_op op, unsigned literal)
{
	static const char *const xload[] = { "", "R", "V", "RV", "U", "RU", "VU", "RVU" };
	static const char *const tmpref[] = { "", "IN", "OUT", "INOUT", "", "", "OUT2", "INOUT2" };
	static const char *const bufhdr[] = { "RESET", "APPEND", "WRITE" };
	static const char *const tostr[] = { "INT", "NUM", "CHAR" };
	bool has_write = text->source->layout->SnapShot_mcofs != LAYOUT_ABSENT;

	switch ((int)op) {
	case IR_XLOAD: return literal < 8 ? xload[literal] : NULL;
	case IR_TMPREF: return literal < 8 ? tmpref[literal] : NULL;
	case IR_BUFHDR: return literal < (has_write ? 3 : 2) ? bufhdr[literal] : NULL;
	case IR_TOSTR: return literal < 3 ? tostr[literal] : NULL;
	case IR_FLOAD:
	case IR_FREF: return ir_field_name(text->source->numbering, literal);
	case IR_FPMATH: return ir_fpmath_name(text->source->numbering, literal);
	default: return NULL;
	}
}

static void write_literal(const struct ir_text *text, enum ir_op op, unsigned literal, FILE *out)
{
	const char *name = literal_name(text, op, literal);

	if (name)
		fputs(name, out);
	else if (op == IR_SLOAD)
		write_sload(literal, out);
	else if (op == IR_CONV)
		write_conv(text->source->layout, literal, out);
	else
		fprintf(out, "#%-3u", op == IR_UREFO || op == IR_UREFC ? literal >> 8 : literal);
}

/*---- Calls ----*/

/* The function of a CALLXS. Returns the reference of its C type, or 0. */
static uint32_t write_called(const struct ir_text *text, uint32_t ref, FILE *out)
{
	struct trace_instruction ins;
	uint32_t type = 0;
	uint64_t address;

	if (ref >= TRACE_REF_BIAS && trace_instruction(text->trace, text->source->layout, ref, &ins) &&
	    ins.op == IR_CARG && ins.type == IRT_NIL) {
		ref = ins.op1;
		type = ins.op2;
	}
	if (ref >= TRACE_REF_BIAS)
		fprintf(out, "%04u (", short_ref(ref));
	else if (trace_constant(text->trace, text->source->layout, ref, &address))
		fprintf(out, "[0x%" PRIx64 "](", address);
	else
		fputs("?(", out);
	return type;
}

/* The arguments are a list of CARGs, the last first. */
static void write_arguments(const struct ir_text *text, uint32_t ref, FILE *out)
{
	uint32_t later[CARGS_MAX];
	unsigned count = 0;
	struct trace_instruction ins;

	while (ref >= TRACE_REF_BIAS && count < CARGS_MAX &&
	       trace_instruction(text->trace, text->source->layout, ref, &ins) && ins.op == IR_CARG) {
		later[count++] = ins.op2;
		ref = ins.op1;
	}
	if (count == CARGS_MAX)
		fputs("...", out);
	else
		write_ref(text, ref, out);
	while (count-- > 0) {
		putc(' ', out);
		write_ref(text, later[count], out);
	}
}

static void write_call(const struct ir_text *text, const struct trace_instruction *ins, FILE *out)
{
	uint32_t type = 0;

	if (ins->op == IR_CALLXS) {
		type = write_called(text, ins->op2, out);
	} else {
		const char *name = ir_call_name(text->source->numbering, ins->op2);

		if (name)
			fprintf(out, "%-10s  (", name);
		else
			fprintf(out, "#%-9u  (", ins->op2);
	}
	if (ins->op1 != REF_NIL)
		write_arguments(text, ins->op1, out);
	putc(')', out);
	if (type) {
		fputs(" ctype ", out);
		write_ref(text, type, out);
	}
}

/*---- Instructions ----*/

static void write_location(const struct ir_text *text, const struct trace_instruction *ins, uint32_t ref,
			   FILE *out)
{
	char location[16] = "";
	const char *name = ins->reg < RID_NONE_FIRST ? text->register_name(ins->reg) : NULL;

	if (ins->reg == RID_SINK || ins->reg == RID_SUNK) {
		if (ins->spill == 0 || ins->spill == UINT8_MAX)
			snprintf(location, sizeof(location), " {sink");
		else
			snprintf(location, sizeof(location), " {%04d", (int)short_ref(ref) - ins->spill);
	} else if (ins->spill) {
		snprintf(location, sizeof(location), "[%x]", ins->spill * SPILL_BYTES);
	} else if (name) {
		snprintf(location, sizeof(location), "%s", name);
	}
	fprintf(out, "%04u %-6s", short_ref(ref), location);
}

static void write_operands(const struct ir_text *text, const struct trace_instruction *ins, FILE *out)
{
	const struct ir_operands operands = ir_operands(text->source->layout, ins->op);

	if (ins->op == IR_CNEW && ins->op2 == REF_NIL) {
		write_ref(text, ins->op1, out);
		return;
	}
	if (operands.op1 == OPERAND_NONE)
		return;
	if (operands.op1 == OPERAND_REF)
		write_ref(text, ins->op1, out);
	else
		fprintf(out, "#%-3u", ins->op1);
	if (operands.op2 == OPERAND_NONE)
		return;
	fputs("  ", out);
	if (operands.op2 == OPERAND_REF)
		write_ref(text, ins->op2, out);
	else
		write_literal(text, ins->op, ins->op2, out);
}

bool ir_text_instruction(const struct ir_text *text, uint32_t ref, FILE *out)
{
	struct trace_instruction ins;
	bool is_sunk;

	if (!trace_instruction(text->trace, text->source->layout, ref, &ins) || ins.op == IR_NOP ||
	    ins.op == IR_CARG)
		return false;
	if (ins.op == IR_LOOP) {
		fprintf(out, "%04u ------------ LOOP ------------", short_ref(ref));
		return true;
	}
	is_sunk = ins.reg == RID_SINK || ins.reg == RID_SUNK;
	write_location(text, &ins, ref, out);
	fprintf(out, "%c%c %s ",
		is_sunk     ? '}'
		: ins.guard ? '>'
			    : ' ',
		ins.is_phi ? '+' : ' ', ir_type_name(ins.type));
	if (!ir_op_name(ins.op)) {
		fprintf(out, "#%-5u op1 %u op2 %u", ins.number, ins.op1, ins.op2);
		return true;
	}
	fprintf(out, "%-6s ", ir_op_name(ins.op));
	switch ((int)ins.op) {
	case IR_CALLN:
	case IR_CALLA:
	case IR_CALLL:
	case IR_CALLS:
	case IR_CALLXS: write_call(text, &ins, out); break;
	default: write_operands(text, &ins, out); break;
	}
	return true;
}

/*---- Snapshots ----*/

static void write_entry(const struct ir_text *text, uint32_t entry, FILE *out)
{
	uint32_t ref = entry & SNAP_REF;

	if (ref < TRACE_REF_BIAS)
		write_constant(text, ref, entry, out);
	else if (entry & SNAP_SOFTFPNUM)
		fprintf(out, "%04u/%04u", short_ref(ref), short_ref(ref) + 1);
	else
		fprintf(out, "%04u", short_ref(ref));
	putc(entry & SNAP_FRAME ? '|' : ' ', out);
}

bool ir_text_snapshot(const struct ir_text *text, uint32_t number, FILE *out)
{
	uint32_t entries[TRACE_ENTRIES_MAX], slots = 0;
	struct trace_snapshot snapshot;
	size_t count, next = 0;

	if (!trace_snapshot(text->trace, text->source->layout, number, &snapshot))
		return false;
	count = trace_snapshot_entries(text->trace, text->source->layout, number, entries, &slots);
	fprintf(out, "....              SNAP   #%-3u [ ", number);
	for (uint32_t slot = 0; slot < slots; slot++) {
		if (next < count && entries[next] >> SNAP_SLOT_SHIFT == slot)
			write_entry(text, entries[next++], out);
		else
			fputs("---- ", out);
	}
	fputs("]", out);
	return true;
}

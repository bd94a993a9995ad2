/* SPDX-License-Identifier: MIT */
#include "unwind/listing/bytecode_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "luajit-layouts/bytecode.h"
#include "unwind/lua/lua_names.h"
#include "unwind/lua/luajit.h"

enum {
	TAG_INT = ~13, /* a number kept as an integer (LJ_DUALNUM) */
};

static const double tsetm_bias = 0x1p52; /* of the number in a TSETM */

/*---- Constants ----*/

static bool load_number(const struct layout *layout, const struct proto *proto, uint32_t number,
			double *ret_number)
{
	uint64_t value;

	if (!proto_knum(layout, proto, number, &value))
		return false;
	if (tvalue_tag(layout->gc64, value) == TAG_INT)
		*ret_number = (int32_t)(uint32_t)value;
	else
		memcpy(ret_number, &value, sizeof(value));
	return true;
}

/* The object that an instruction names as its last operand, if that is of this mode. */
static bool named_object(const struct layout *layout, const struct proto *proto, uint32_t instruction,
			 enum bytecode_mode mode, uint64_t *ret_object)
{
	uint8_t op = (uint8_t)instruction;
	uint32_t operand = bytecode_mode_b(layout, op) == BCMnone ? bytecode_d(instruction)
								  : bytecode_c(instruction);

	return bytecode_mode_c(layout, op) == mode && proto_kgc(layout, proto, operand, ret_object) &&
	       *ret_object;
}

bool bytecode_text_string(const struct layout *layout, const struct proto *proto, uint32_t instruction,
			  uint64_t *ret_string)
{
	return named_object(layout, proto, instruction, BCMstr, ret_string);
}

bool bytecode_text_proto(const struct layout *layout, const struct proto *proto, uint32_t instruction,
			 uint64_t *ret_proto)
{
	return named_object(layout, proto, instruction, BCMfunc, ret_proto);
}

size_t bytecode_text_constants(const struct layout *layout, const struct proto *proto,
			       enum bytecode_constant kind, uint64_t *ret_objects, size_t max)
{
	enum bytecode_mode mode = kind == BYTECODE_STRINGS ? BCMstr : BCMfunc;
	size_t count = 0;

	for (uint32_t i = 0; i < proto->sizebc && count < max; i++) {
		uint32_t instruction;

		if (!proto_instruction(proto, proto->bc + (uint64_t)i * BYTECODE_SIZE, &instruction))
			break;
		count += named_object(layout, proto, instruction, mode, &ret_objects[count]);
	}
	return count;
}

/*---- Operands ----*/

static void write_function(const struct listing_source *source, uint64_t address, FILE *out)
{
	const struct proto *proto = lua_objects_proto(source->objects, address);
	char place[LISTING_PLACE_SIZE];

	if (!proto) {
		fputs("(?)", out);
		return;
	}
	listing_place(proto, proto->firstline, place);
	fputs(place, out);
}

static void write_upvalue(const struct listing_source *source, const struct proto *proto, uint32_t number,
			  FILE *out)
{
	const char *name;

	fputs(lua_upvalue_name(source->layout, proto, number, &name) ? name : "?", out);
}

/* What the last operand stands for; nothing if it says enough by itself. */
static bool write_constant(const struct listing_source *source, const struct proto *proto,
			   uint32_t instruction, uint32_t operand, FILE *out)
{
	uint8_t op = (uint8_t)instruction;
	uint64_t object;
	double number;

	switch (bytecode_mode_c(source->layout, op)) {
	case BCMstr:
		if (!proto_kgc(source->layout, proto, operand, &object) ||
		    !listing_write_string(source, object, LISTING_STRING_MAX, out))
			fputs("?", out);
		return true;
	case BCMnum:
		if (!load_number(source->layout, proto, operand, &number))
			fputs("?", out);
		else
			listing_write_number(bytecode_op(source->layout, op) == BC_TSETM ? number - tsetm_bias
											 : number,
					     false, out);
		return true;
	case BCMfunc:
		if (proto_kgc(source->layout, proto, operand, &object))
			write_function(source, object, out);
		else
			fputs("?", out);
		return true;
	case BCMuv: write_upvalue(source, proto, operand, out); return true;
	case BCMnone:
	case BCMdst:
	case BCMbase:
	case BCMvar:
	case BCMrbase:
	case BCMlit:
	case BCMlits:
	case BCMpri:
	case BCMtab:
	case BCMjump:
	case BCMcdata: break;
	}
	return false;
}

/* "  ; name" behind the operands */
static void write_meaning(const struct listing_source *source, const struct proto *proto,
			  uint32_t instruction, uint32_t operand, FILE *out)
{
	bool stores_upvalue = bytecode_mode_a(source->layout, (uint8_t)instruction) == BCMuv;
	struct listing_text meaning;
	char *text;
	bool has_constant;

	if (!listing_text_begin(&meaning))
		return;
	if (stores_upvalue) {
		write_upvalue(source, proto, bytecode_a(instruction), meaning.out);
		fputs(" ; ", meaning.out);
	}
	has_constant = write_constant(source, proto, instruction, operand, meaning.out);
	text = listing_text_end(&meaning);
	if (text && stores_upvalue && !has_constant)
		text[strlen(text) - strlen(" ; ")] = '\0';
	if (text && (stores_upvalue || has_constant))
		fprintf(out, "%s; %s",
			bytecode_mode_b(source->layout, (uint8_t)instruction) == BCMnone ? "      " : "  ",
			text);
	free(text);
}

/*---- Lines ----*/

bool bytecode_text_target(const struct layout *layout, uint32_t number, uint32_t instruction,
			  uint32_t *ret_target)
{
	if (bytecode_mode_c(layout, (uint8_t)instruction) != BCMjump)
		return false;
	*ret_target = number + 1 + (uint32_t)bytecode_j(instruction);
	return true;
}

void bytecode_text_line(const struct listing_source *source, const struct proto *proto, uint32_t number,
			uint32_t instruction, const char *prefix, FILE *out)
{
	const struct layout *layout = source->layout;
	uint8_t op = (uint8_t)instruction;
	const char *name = bytecode_name(layout, op);
	bool has_b = bytecode_mode_b(layout, op) != BCMnone;
	uint32_t operand = has_b ? bytecode_c(instruction) : bytecode_d(instruction), target;

	fprintf(out, "%04" PRIu32 " %s ", number, prefix);
	if (!name) {
		fprintf(out, "#%-5u %3u %3u", op, bytecode_a(instruction), bytecode_d(instruction));
		return;
	}
	fprintf(out, "%-6s ", name);
	if (bytecode_mode_a(layout, op) == BCMnone)
		fputs("    ", out);
	else
		fprintf(out, "%3u ", bytecode_a(instruction));
	if (bytecode_text_target(layout, number, instruction, &target)) {
		fprintf(out, "=> %04" PRId32, (int32_t)target);
		return;
	}
	if (has_b)
		fprintf(out, "%3u ", bytecode_b(instruction));
	else if (bytecode_mode_c(layout, op) == BCMnone)
		return;
	if (bytecode_mode_c(layout, op) == BCMlits)
		fprintf(out, "%3d", (int16_t)operand);
	else
		fprintf(out, "%3u", operand);
	write_meaning(source, proto, instruction, operand, out);
}

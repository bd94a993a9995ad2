/* SPDX-License-Identifier: MIT */
#include "luajit-layouts/bytecode.h"

#include <stddef.h>

/* The opcode of each number, by numbering. */
#define NUMBERED(name, a, b, c, mm) BC_##name,
#define NOT_YET(name, a, b, c, mm)

static const uint8_t v20_ops[] = {
#define OP_ALL NUMBERED
#define OP_V21 NOT_YET
#define OP_BITOPS NOT_YET
#include "luajit-layouts/bytecode_ops.inc"
#undef OP_V21
};

static const uint8_t v21_ops[] = {
#define OP_V21 NUMBERED
#include "luajit-layouts/bytecode_ops.inc"
#undef OP_BITOPS
};

static const uint8_t v21_bitops_ops[] = {
#define OP_BITOPS NUMBERED
#include "luajit-layouts/bytecode_ops.inc"
#undef OP_ALL
#undef OP_V21
#undef OP_BITOPS
};

static const struct {
	const uint8_t *ops;
	size_t count;
} numberings[BYTECODE_COUNT] = {
	[BYTECODE_V20] = { v20_ops, sizeof(v20_ops) },
	[BYTECODE_V21] = { v21_ops, sizeof(v21_ops) },
	[BYTECODE_V21_BITOPS] = { v21_bitops_ops, sizeof(v21_bitops_ops) },
};

static const struct description {
	const char *name;
	uint8_t a, b, c, mm;
} descriptions[] = {
#define DESCRIBED(name, a, b, c, mm) { #name, BCM##a, BCM##b, BCM##c, MM_##mm },
#define OP_ALL DESCRIBED
#define OP_V21 DESCRIBED
#define OP_BITOPS DESCRIBED
#include "luajit-layouts/bytecode_ops.inc"
	[BC__MAX] = { NULL, BCMnone, BCMnone, BCMnone, MM_none },
};

enum bytecode_op bytecode_op(const struct layout *layout, uint8_t number)
{
	if (number >= numberings[layout->bytecode].count)
		return BC__MAX;
	return (enum bytecode_op)numberings[layout->bytecode].ops[number];
}

int bytecode_count(const struct layout *layout)
{
	return (int)numberings[layout->bytecode].count;
}

int bytecode_number(const struct layout *layout, enum bytecode_op op)
{
	for (size_t number = 0; number < numberings[layout->bytecode].count; number++) {
		if (numberings[layout->bytecode].ops[number] == op)
			return (int)number;
	}
	return -1;
}

static const struct description *describe(const struct layout *layout, uint8_t number)
{
	return &descriptions[bytecode_op(layout, number)];
}

const char *bytecode_name(const struct layout *layout, uint8_t number)
{
	return describe(layout, number)->name;
}

enum bytecode_mode bytecode_mode_a(const struct layout *layout, uint8_t number)
{
	return (enum bytecode_mode)describe(layout, number)->a;
}

enum bytecode_mode bytecode_mode_b(const struct layout *layout, uint8_t number)
{
	return (enum bytecode_mode)describe(layout, number)->b;
}

enum bytecode_mode bytecode_mode_c(const struct layout *layout, uint8_t number)
{
	return (enum bytecode_mode)describe(layout, number)->c;
}

enum bytecode_mm bytecode_mm(const struct layout *layout, uint8_t number)
{
	return (enum bytecode_mm)describe(layout, number)->mm;
}

const char *bytecode_mm_name(enum bytecode_mm mm)
{
	static const char *const names[] = {
		"index", "newindex", "gc",  "mode", "eq",  "len", "lt",  "le",  "concat",
		"call",  "add",      "sub", "mul",  "div", "mod", "pow", "unm", NULL,
	};

	return names[mm];
}

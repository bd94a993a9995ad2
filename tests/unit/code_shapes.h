/* SPDX-License-Identifier: MIT */
/*
 * code_shapes: made-up code of an interpreter, of the shapes of instructions that tell a layout.
 *
 * Each shape comes with near misses: what tells nothing in the place of one of its instructions.
 */
#ifndef LJSPY_CODE_SHAPES_H
#define LJSPY_CODE_SHAPES_H

#include <stdlib.h>
#include <string.h>

#include "luajit-layouts/module/vm_code.h"

enum {
	CODE_BYTES = 8192,
	CODE_ADDRESS = 0x401000,
	CODE_TOLD = 8,
	CODE_NEEDS = 4,
	CODE_DISPATCHES = 33,
	CODE_ALL = 0xffff,
};

/* An instruction of a shape, or one that the instruction before is taken for by mistake. */
struct code_line {
	const char *bytes;
	size_t length;
	bool is_miss;
};
#define IS(text) \
	{ \
		text, sizeof(text) - 1, false \
	}
#define NOT(text) \
	{ \
		text, sizeof(text) - 1, true \
	}

/* What a shape tells: a number of struct vm_code_evidence. */
struct code_told {
	size_t place, size;
	int32_t value, unknown; /* without the shape */
	uint16_t by;            /* the instructions that it takes; bit 0: the first one */
};
#define CODE_FIELD(field, value, by) \
	{ \
		offsetof(struct vm_code_evidence, offsets.field), sizeof(int32_t), value, LAYOUT_UNKNOWN, by \
	}
#define CODE_NUMBER(member, value, unknown, by) \
	{ \
		offsetof(struct vm_code_evidence, member), \
			sizeof(((struct vm_code_evidence *)NULL)->member), value, unknown, by \
	}

struct code_shape {
	const char *name;
	const struct code_line *lines;
	size_t count; /* of lines, with near misses */
	struct code_told told[CODE_TOLD];
	const struct code_shape *needs[CODE_NEEDS]; /* what is told first */
	size_t gap_max;                             /* instructions between the first two, at most */
	bool may_be_apart;                          /* nothing is said of these */
	bool needs_room;                            /* it is not looked for at the end of the code */
};
#define CODE_SHAPE(of) .name = #of, .lines = (of), .count = sizeof(of) / sizeof((of)[0])

/* A machine's code. */
struct code_machine {
	const struct code_line *dispatch;
	size_t dispatch_count; /* of lines */
	struct code_line nothing;
	size_t room; /* instructions before and after the shapes */
	enum vm_code_status (*read)(const uint8_t *bytes, size_t length, uint64_t address,
				    struct vm_code_evidence *ret_evidence);
};

struct code_bytes {
	uint8_t bytes[CODE_BYTES];
	size_t length;
};

static inline void code_add(struct code_bytes *code, const struct code_line *line)
{
	assert_in_range(code->length + line->length, 0, CODE_BYTES);
	memcpy(code->bytes + code->length, line->bytes, line->length);
	code->length += line->length;
}

static inline void code_add_nothing(const struct code_machine *machine, struct code_bytes *code, size_t count)
{
	while (count--)
		code_add(code, &machine->nothing);
}

/* Begin with so many dispatches. */
static inline void code_begin(const struct code_machine *machine, struct code_bytes *code, size_t dispatches)
{
	code->length = 0;
	code_add_nothing(machine, code, machine->room);
	while (dispatches--)
		for (size_t i = 0; i < machine->dispatch_count; i++)
			if (!machine->dispatch[i].is_miss)
				code_add(code, &machine->dispatch[i]);
}

/*
 * How a shape is changed: line is put in the place of the instruction of that number; or gap: behind the
 * first.
 */
struct code_change {
	const struct code_line *line;
	size_t at, gap;
	size_t cut; /* instructions left out at the end */
};

static inline size_t code_instructions(const struct code_shape *shape)
{
	size_t count = 0;

	for (size_t i = 0; i < shape->count; i++)
		count += !shape->lines[i].is_miss;
	return count;
}

static inline void code_add_shape(const struct code_machine *machine, struct code_bytes *code,
				  const struct code_shape *shape, const struct code_change *change)
{
	const size_t end = code_instructions(shape) - change->cut;
	size_t number = 0;

	for (size_t i = 0; i < shape->count && number < end; i++) {
		if (shape->lines[i].is_miss)
			continue;
		code_add(code, change->line && change->at == number ? change->line : &shape->lines[i]);
		if (number++ == 0)
			code_add_nothing(machine, code, change->gap);
	}
}

/* A shape with so many instructions that do nothing before the one of that number. */
static inline void code_add_apart(const struct code_machine *machine, struct code_bytes *code,
				  const struct code_shape *shape, size_t at, size_t gap)
{
	size_t number = 0;

	for (size_t i = 0; i < shape->count; i++) {
		if (shape->lines[i].is_miss)
			continue;
		if (number++ == at)
			code_add_nothing(machine, code, gap);
		code_add(code, &shape->lines[i]);
	}
}

/* The code is read where nothing lies behind it. */
static inline enum vm_code_status code_read(const struct code_machine *machine, const struct code_bytes *code,
					    struct vm_code_evidence *ret_evidence)
{
	uint8_t *copy = malloc(code->length);
	enum vm_code_status status;

	assert_non_null(copy);
	memcpy(copy, code->bytes, code->length);
	status = machine->read(copy, code->length, CODE_ADDRESS, ret_evidence);
	free(copy);
	return status;
}

static inline int32_t code_number(const struct vm_code_evidence *evidence, const struct code_told *told)
{
	int32_t number = 0;

	memcpy(&number, (const uint8_t *)evidence + told->place, told->size);
	return number;
}

/* Read a changed shape behind those that it needs; what takes the instructions in lost is not told. */
static inline void code_expect(const struct code_machine *machine, const struct code_shape *shape,
			       const struct code_change *change, uint16_t lost, bool has_room)
{
	static struct code_bytes code;
	struct vm_code_evidence evidence;

	code_begin(machine, &code, CODE_DISPATCHES - 1);
	for (size_t i = 0; i < CODE_NEEDS && shape->needs[i]; i++) {
		code_add_shape(machine, &code, shape->needs[i], &(struct code_change){ 0 });
		code_add_nothing(machine, &code, machine->room + 1);
	}
	code_add_shape(machine, &code, shape, change);
	if (has_room)
		code_add_nothing(machine, &code, machine->room + 1);
	code_read(machine, &code, &evidence);
	for (size_t i = 0; i < CODE_TOLD && shape->told[i].size; i++) {
		const struct code_told *told = &shape->told[i];
		const bool is_lost = change->gap ? lost && (told->by & lost) == lost : (told->by & lost) != 0;

		if (code_number(&evidence, told) != (is_lost ? told->unknown : told->value))
			fail_msg("%s: number %zu is %d with a change of instruction %zu, gap %zu, cut %zu",
				 shape->name, i, (int)code_number(&evidence, told), change->at, change->gap,
				 change->cut);
	}
}

static inline void code_expect_misses(const struct code_machine *machine, const struct code_shape *shape)
{
	const struct code_line *line = NULL;
	char nothing[16];
	size_t number = 0;

	for (size_t i = 0; i < shape->count; i++) {
		struct code_line nothings = { .bytes = nothing };

		if (shape->lines[i].is_miss) {
			line = &shape->lines[i];
		} else {
			number += i > 0;
			while (nothings.length < shape->lines[i].length) {
				memcpy(nothing + nothings.length, machine->nothing.bytes,
				       machine->nothing.length);
				nothings.length += machine->nothing.length;
			}
			line = &nothings;
		}
		/* What does nothing already is no loss. */
		if (!shape->lines[i].is_miss && shape->lines[i].length == machine->nothing.length &&
		    memcmp(shape->lines[i].bytes, machine->nothing.bytes, machine->nothing.length) == 0)
			continue;
		code_expect(machine, shape, &(struct code_change){ .line = line, .at = number },
			    (uint16_t)(1U << number), true);
	}
}

/* Each shape tells what it does, and no near miss does; nor does one that is torn apart or cut. */
static inline void code_expect_shapes(const struct code_machine *machine,
				      const struct code_shape *const *shapes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct code_shape *shape = shapes[i];
		const size_t instructions = code_instructions(shape);

		code_expect(machine, shape, &(struct code_change){ 0 }, 0, true);
		code_expect_misses(machine, shape);
		if (!shape->may_be_apart && instructions > 1) {
			if (shape->gap_max)
				code_expect(machine, shape, &(struct code_change){ .gap = shape->gap_max }, 0,
					    true);
			code_expect(machine, shape, &(struct code_change){ .gap = shape->gap_max + 1 }, 3,
				    true);
		}
		if (shape->needs_room)
			continue;
		code_expect(machine, shape, &(struct code_change){ 0 }, 0, false);
		code_expect(machine, shape, &(struct code_change){ .cut = 1 },
			    (uint16_t)(1U << (instructions - 1)), false);
	}
}

#endif

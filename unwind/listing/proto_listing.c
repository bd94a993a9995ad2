/* SPDX-License-Identifier: MIT */
#include "unwind/listing/proto_listing.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "luajit-layouts/bytecode.h"
#include "unwind/listing/bytecode_text.h"
#include "unwind/lua/lua_names.h"
#include "unwind/lua/luajit.h"

/*---- Which function ----*/

struct proto_wanted proto_wanted(const char *text)
{
	const char *colon = strrchr(text, ':'), *last = text;
	size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;

	if (digits > 0 && colon[1 + digits] == '\0' && colon > text)
		return (struct proto_wanted){ .file = text,
					      .file_length = (size_t)(colon - text),
					      .line = (uint32_t)strtoul(colon + 1, NULL, 10) };
	for (const char *at = text; *at; at++)
		if ((*at == '.' || *at == ':') && at[1])
			last = at + 1;
	return (struct proto_wanted){ .name = last };
}

/* Is this the chunk's name, or the end of its path? */
static bool is_of_file(const char *chunkname, const struct proto_wanted *wanted)
{
	const char *name = *chunkname == '@' || *chunkname == '=' ? chunkname + 1 : chunkname;
	size_t length = strlen(name);
	const char *end;

	if (length < wanted->file_length)
		return false;
	end = name + length - wanted->file_length;
	return memcmp(end, wanted->file, wanted->file_length) == 0 && (end == name || end[-1] == '/');
}

enum proto_match proto_match_place(const struct proto *proto, const struct proto_wanted *wanted)
{
	if (!proto->chunkname || !is_of_file(proto->chunkname, wanted) ||
	    proto->firstline == FIRSTLINE_BUILTIN || wanted->line < proto->firstline ||
	    wanted->line - proto->firstline > proto->numline)
		return PROTO_IS_ELSEWHERE;
	return wanted->line == proto->firstline ? PROTO_BEGINS_AT_LINE : PROTO_HAS_LINE;
}

/* The string that an instruction stores the value of a slot under; 0 if it does not. */
static uint64_t stored_under(const struct layout *layout, const struct proto *proto, uint32_t instruction,
			     unsigned slot)
{
	enum bytecode_op op = bytecode_op(layout, (uint8_t)instruction);
	uint64_t string = 0;

	if ((op == BC_GSET || op == BC_TSETS) && bytecode_a(instruction) == slot)
		bytecode_text_string(layout, proto, instruction, &string);
	return string;
}

/* Does the instruction after a function is made give it this name? */
static bool names_it(const struct listing_source *source, const struct proto *proto, uint64_t pc,
		     unsigned slot, const char *name)
{
	const struct layout *layout = source->layout;
	const char *variable;
	uint32_t next;
	uint64_t string;

	if (proto_instruction(proto, pc + BYTECODE_SIZE, &next)) {
		string = stored_under(layout, proto, next, slot);
		if (string)
			return listing_is_string(source, string, name);
		if (bytecode_op(layout, (uint8_t)next) == BC_USETV && bytecode_d(next) == slot)
			return lua_upvalue_name(layout, proto, bytecode_a(next), &variable) &&
			       strcmp(variable, name) == 0;
	}
	return lua_local_name(layout, proto, pc + 2 * BYTECODE_SIZE, slot, &variable) &&
	       strcmp(variable, name) == 0;
}

size_t proto_children_named(const struct listing_source *source, const struct proto *proto, const char *name,
			    uint64_t *ret_protos, size_t max)
{
	size_t count = 0;

	for (uint32_t i = 0; i < proto->sizebc && count < max; i++) {
		uint64_t pc = proto->bc + (uint64_t)i * BYTECODE_SIZE;
		uint32_t instruction;

		if (!proto_instruction(proto, pc, &instruction))
			break;
		if (bytecode_op(source->layout, (uint8_t)instruction) == BC_FNEW &&
		    names_it(source, proto, pc, bytecode_a(instruction), name) &&
		    bytecode_text_proto(source->layout, proto, instruction, &ret_protos[count]))
			count++;
	}
	return count;
}

/*---- Its lines ----*/

/* Which instructions are jumped to: a byte for each. NULL when memory is short. */
static bool *find_targets(const struct layout *layout, const struct proto *proto)
{
	bool *targets = calloc(proto->sizebc + 1, sizeof(*targets));

	for (uint32_t i = 1; targets && i < proto->sizebc; i++) {
		uint32_t instruction, target;

		if (proto_instruction(proto, proto->bc + (uint64_t)i * BYTECODE_SIZE, &instruction) &&
		    bytecode_text_target(layout, i, instruction, &target) && target < proto->sizebc)
			targets[target] = true;
	}
	return targets;
}

static int add_line(const struct listing_source *source, const struct proto *proto, uint32_t number,
		    const char *prefix, struct listing *listing)
{
	uint64_t pc = proto->bc + (uint64_t)number * BYTECODE_SIZE;
	struct listing_text text;
	struct listing_line *line;
	uint32_t instruction;

	if (!proto_instruction(proto, pc, &instruction))
		return 0;
	if (!listing_text_begin(&text))
		return -ENOMEM;
	bytecode_text_line(source, proto, number, instruction, prefix, text.out);
	line = listing_add(listing, LISTING_BYTECODE, listing_text_end(&text));
	if (!line)
		return listing->cut ? 0 : -ENOMEM;
	line->address = pc;
	listing_place(proto, lua_line(source->layout, proto, pc), line->place);
	return 0;
}

int proto_listing_add(const struct listing_source *source, const struct proto *proto,
		      const struct listing_samples *samples, struct listing *listing)
{
	bool *targets = find_targets(source->layout, proto);
	char place[LISTING_PLACE_SIZE];
	struct listing_line all = { 0 };
	int error = 0;

	if (!targets)
		return -ENOMEM;
	listing_place(proto, proto->firstline, place);
	listing_add_format(listing, LISTING_HEAD, "-- BYTECODE -- %s-%" PRIu32, place,
			   proto->firstline + proto->numline);
	for (uint32_t i = 1; i < proto->sizebc && !error && !listing->cut; i++) {
		size_t before = listing->count;

		error = add_line(source, proto, i, targets[i] ? "=>" : "  ", listing);
		if (listing->count > before)
			listing_count(&listing->lines[before], samples, listing->lines[before].address,
				      listing->lines[before].address + BYTECODE_SIZE);
	}
	free(targets);
	listing_count(&all, samples, proto->bc, proto->bc + (uint64_t)proto->sizebc * BYTECODE_SIZE);
	listing->samples += all.samples;
	listing->cpu_ns += all.cpu_ns;
	return !error && listing->failed ? -ENOMEM : error;
}

/* SPDX-License-Identifier: MIT */
#include "unwind/members/member_loads.h"

#include <string.h>

#include "unwind/members/member_loads_parts.h"

enum {
	CODE_PIECE = 64, /* the end of the code may not be mapped */
	OFFSET_MAX = 4096,
	BRANCHES_MAX = 32,
	INSTRUCTIONS_MAX = 512,
};

struct branch {
	size_t target; /* offset in the code */
	struct member_state state;
};

struct reading {
	struct member_code code;
	bool visited[MEMBER_CODE_MAX];
	struct branch branches[BRANCHES_MAX];
	size_t branch_count, branches_done, instructions;
};

bool member_path(const struct member_value *base, int64_t offset, bool is_indexed,
		 struct member_value *ret_path)
{
	if (!base->is_known || base->depth == MEMBER_DEPTH_MAX)
		return false;
	offset += base->plus;
	if (offset < 0 || offset >= OFFSET_MAX || (is_indexed && offset != 0))
		return false;
	*ret_path = *base;
	ret_path->plus = 0;
	ret_path->offsets[ret_path->depth++] = is_indexed ? MEMBER_INDEXED : (int32_t)offset;
	return true;
}

void member_note(struct member_loads *loads, const struct member_value *path, unsigned int bytes)
{
	struct member_load *load = &loads->loads[loads->count];

	if (loads->count == MEMBER_LOADS_MAX || member_loads_have(loads, path->depth, path->offsets))
		return;
	load->depth = path->depth;
	memcpy(load->offsets, path->offsets, sizeof(load->offsets));
	load->bytes = bytes;
	loads->count++;
}

static void add_branch(struct reading *reading, uint64_t target, const struct member_state *state)
{
	uint64_t offset = target - reading->code.address;

	if (offset >= reading->code.length || reading->branch_count == BRANCHES_MAX)
		return;
	reading->branches[reading->branch_count].target = (size_t)offset;
	reading->branches[reading->branch_count++].state = *state;
}

/* Follow the code from a branch on, to where it ends or has been followed. */
static void read_branch(struct reading *reading, size_t offset, struct member_state state)
{
	enum member_step step = MEMBER_ON;

	while (offset < reading->code.length && !reading->visited[offset] &&
	       reading->instructions++ < INSTRUCTIONS_MAX && (step == MEMBER_ON || step == MEMBER_BRANCHES)) {
		uint64_t target;

		reading->visited[offset] = true;
		step = member_code_step(&reading->code, &offset, &state, &target);
		if (step == MEMBER_BRANCHES || step == MEMBER_JUMPS)
			add_branch(reading, target, &state);
	}
}

void member_loads_read(const uint8_t *code, size_t length, uint64_t address, struct member_loads *ret_loads)
{
	struct reading reading = {
		.code = { .bytes = code,
			  .length = length < MEMBER_CODE_MAX ? length : MEMBER_CODE_MAX,
			  .address = address,
			  .loads = ret_loads },
	};
	struct member_state state = { 0 };

	ret_loads->count = 0;
	if (!member_code_open(&reading.code, &state))
		return;
	read_branch(&reading, 0, state);
	while (reading.branches_done < reading.branch_count) {
		const struct branch *branch = &reading.branches[reading.branches_done++];

		read_branch(&reading, branch->target, branch->state);
	}
	member_code_close(&reading.code);
}

bool member_loads_of(struct memory *memory, uint64_t address, struct member_loads *ret_loads)
{
	uint8_t code[MEMBER_CODE_MAX];
	size_t length = 0;

	while (length < sizeof(code) &&
	       memory_read(memory, address + length, code + length, CODE_PIECE) == MEMORY_OK)
		length += CODE_PIECE;
	if (length > 0)
		member_loads_read(code, length, address, ret_loads);
	return length > 0;
}

bool member_loads_have(const struct member_loads *loads, size_t depth, const int32_t *offsets)
{
	for (size_t i = 0; i < loads->count; i++)
		if (loads->loads[i].depth == depth &&
		    memcmp(loads->loads[i].offsets, offsets, depth * sizeof(offsets[0])) == 0)
			return true;
	return false;
}

/* SPDX-License-Identifier: MIT */
/*
 * member_loads_parts: between member_loads.c, which follows the ways through a function, and
 * member_loads_MACHINE.c, which knows what an instruction does.
 */
#ifndef LJSPY_MEMBER_LOADS_PARTS_H
#define LJSPY_MEMBER_LOADS_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/members/member_loads.h"

enum { MEMBER_REGISTERS = 32 }; /* of the machine that has most */

/* The pointer that loads along these offsets lead to, plus a number of bytes. */
struct member_value {
	bool is_known;
	size_t depth;
	int32_t offsets[MEMBER_DEPTH_MAX];
	int64_t plus;
};

/* What registers hold. */
struct member_state {
	struct member_value values[MEMBER_REGISTERS];
};

struct member_code {
	const uint8_t *bytes;
	size_t length;
	uint64_t address;
	struct member_loads *loads;
	struct member_decoder *decoder; /* the machine's own */
};

/*
 * The path of memory at an offset from a base: that of the base, and one step more. is_indexed: at
 * a multiple of 8 bytes from there that is not known. False if nothing is known of it.
 */
bool member_path(const struct member_value *base, int64_t offset, bool is_indexed,
		 struct member_value *ret_path);

/* Note that the code loads so many bytes from there. */
void member_note(struct member_loads *loads, const struct member_value *path, unsigned int bytes);

/*---- Each machine has its own ----*/

enum member_step {
	MEMBER_ON,
	MEMBER_BRANCHES, /* may go to the target, or on */
	MEMBER_JUMPS,    /* goes to the target */
	MEMBER_ENDS,     /* the function ends, or this is no code */
};

/* Begin, with the structure's address in the first argument. False when out of memory. */
bool member_code_open(struct member_code *code, struct member_state *state);
void member_code_close(struct member_code *code);

/* Go through the instruction at *offset, and set *offset behind it. The target is an address. */
enum member_step member_code_step(const struct member_code *code, size_t *offset, struct member_state *state,
				  uint64_t *ret_target);

#endif

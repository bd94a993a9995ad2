/* SPDX-License-Identifier: MIT */
/*
 * code_path: what registers and the stack hold along a way through code, told
 * by what they held where it began.
 *
 * Only what a function does for its caller's sake is followed: how it moves the
 * stack pointer, and what it saves and restores. Anything else is not known.
 */
#ifndef LJSPY_CODE_PATH_H
#define LJSPY_CODE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/native/vm_decoder_x86_64.h"

enum { CODE_PATH_SAVED_MAX = 16 };	/* words on the stack that are known, at one time */

struct path_value {
	enum path_value_kind {
		PATH_UNKNOWN,
		PATH_SUM,	/* what the register held, plus the offset */
		PATH_LOADED,	/* what memory held there */
	} kind;
	int number;		/* of the register, as it is encoded */
	int64_t offset;
};

struct path_saved {
	struct path_value address, value;
};

struct code_path {
	uint64_t pc;
	struct path_value registers[REGISTER_COUNT];
	struct path_saved saved[CODE_PATH_SAVED_MAX];
	size_t saved_count;
	/* Stores of what is not known, reckoned from what a register held: from its first byte to its last. */
	struct path_extent {
		int64_t begin, end;
	} stored[REGISTER_COUNT];
};

enum path_step {
	PATH_ON,
	PATH_BRANCHES,	/* on, or elsewhere */
	PATH_RETURNS,
	PATH_ENDS,	/* it cannot be followed, or goes nowhere */
};

/* At the beginning: each register holds what it holds. */
void code_path_begin(struct code_path *path, uint64_t pc);

/*
 * One instruction, which lies at the path's pc. ret_target: where else it
 * branches to. ret_return: where it returns to, the stack pointer being past it.
 */
enum path_step code_path_step(struct code_path *path, const struct vm_instruction *instruction,
			      uint64_t *ret_target, struct path_value *ret_return);

#endif

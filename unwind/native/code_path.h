/* SPDX-License-Identifier: MIT */
/*
 * code_path: track registers and the stack along a path through code, relative
 * to their values at its start.
 *
 * It tracks only what matters to the caller: moves of the stack pointer, and
 * saves and restores of registers. Every other value is unknown.
 */
#ifndef LJSPY_CODE_PATH_H
#define LJSPY_CODE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/elf/registers.h"
#include "unwind/native/vm_decoder.h"

enum { CODE_PATH_SAVED_MAX = 16 }; /* known words on the stack at one time */

struct path_value {
	enum path_value_kind {
		PATH_UNKNOWN,
		PATH_SUM,    /* the register's initial value plus the offset */
		PATH_LOADED, /* the initial content of memory at that address */
	} kind;
	int number; /* DWARF's number of the register */
	int64_t offset;
};

struct path_saved {
	struct path_value address, value;
};

struct code_path {
	uint64_t pc;
	struct path_value registers[REGISTER_NUMBERS]; /* by DWARF's numbers; the pc is above */
	struct path_saved saved[CODE_PATH_SAVED_MAX];
	size_t saved_count;
	/* Per register: the range of stores of unknown values, as offsets from its initial value. */
	struct path_extent {
		int64_t begin, end;
	} stored[REGISTER_NUMBERS];
	/* The highest stack pointer at a call that the path passed; unknown if it passed none. */
	struct path_value at_call;
};

enum path_step {
	PATH_ON,
	PATH_BRANCHES, /* goes on, or to *ret_target */
	PATH_RETURNS,
	PATH_ENDS, /* cannot be followed, or goes nowhere */
};

/* Begin a path at pc: each register holds its own initial value. */
void code_path_begin(struct code_path *path, uint64_t pc);

/*
 * Follow one instruction, which lies at the path's pc. On PATH_BRANCHES
 * *ret_target is the other address. On PATH_RETURNS *ret_return is the return
 * address, already popped.
 */
enum path_step code_path_step(struct code_path *path, const struct vm_instruction *instruction,
			      uint64_t *ret_target, struct path_value *ret_return);

/*
 * Does the path return to the address from a place on the stack that was not yet the function's
 * caller's when it passed a call? Then that call may be one that does not return (abort()), and the
 * path has run on into the function behind.
 */
bool code_path_may_be_astray(const struct code_path *path, struct path_value return_address);

#endif

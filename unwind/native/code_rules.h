/* SPDX-License-Identifier: MIT */
/*
 * code_rules: find a frame's caller from the code between its pc and its return.
 *
 * This is for code without unwind tables: assembly, and code generated at run
 * time. On every path, a function pops what it pushed and restores its caller's
 * registers before it returns. So any path from an instruction to a return shows
 * where these values are. If two paths disagree, there is no answer. LuaJIT's VM
 * and traces do not return this way, so they are excluded.
 */
#ifndef LJSPY_CODE_RULES_H
#define LJSPY_CODE_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/memory.h"
#include "unwind/elf/frame_rules.h"
#include "unwind/elf/image.h"

struct code_rules;

/* NULL when out of memory. The image must outlive the result. */
struct code_rules *code_rules_new(struct image *image);
void code_rules_free(struct code_rules *code);

/* Forget all cached rules: the image has new modules. */
void code_rules_reset(struct code_rules *code);

/*
 * The rules of the frame that continues at pc; false if there are none. Code
 * generated at run time is read from copy, or else from the live target. Its
 * cached rules hold until the code changes.
 */
bool code_rules_find(struct code_rules *code, struct memory *copy, uint64_t pc,
		     struct frame_rules *ret_rules);

/* Can a call return to this address: does a call instruction end there? */
bool code_rules_follows_call(struct code_rules *code, struct memory *copy, uint64_t address);

/*
 * The same of a call that may have led to the function that begins there. An indirect call may have led
 * anywhere.
 */
bool code_rules_follows_call_of(struct code_rules *code, struct memory *copy, uint64_t address,
				uint64_t function);

/* Can a call of one function have led into another, through PLTs and by jumps of functions that end so? */
enum code_leads { CODE_LEADS_NOT, CODE_LEADS_PERHAPS, CODE_LEADS };
enum code_leads code_rules_lead(struct code_rules *code, uint64_t from, uint64_t to);

#endif

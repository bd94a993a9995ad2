/* SPDX-License-Identifier: MIT */
/*
 * code_rules: how to find a frame's caller by what its code does until it returns.
 *
 * For code without unwind tables: assembly, and what is made at run time. What a
 * function puts on the stack it takes off before it returns, and what it changes
 * of its caller's registers it puts back, whichever way it goes. So any way from an
 * instruction to a return tells where all of it is; two that differ tell nothing.
 * LuaJIT's VM and its traces are not left like that, and are not looked at.
 */
#ifndef LJSPY_CODE_RULES_H
#define LJSPY_CODE_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/memory.h"
#include "unwind/elf/frame_rules.h"
#include "unwind/elf/image.h"

struct code_rules;

/* NULL when memory is short. The image must outlive the result. */
struct code_rules *code_rules_new(struct image *image);
void code_rules_free(struct code_rules *code);

/* The image's modules have been replaced: forget what was told. */
void code_rules_reset(struct code_rules *code);

/*
 * The rules of the frame that goes on at pc; false if there are none. Code that was
 * made at run time is read from the copy, or where that has none, as it is by now. What was
 * told of it before holds for as long as it is the same.
 */
bool code_rules_find(struct code_rules *code, struct memory *copy, uint64_t pc,
		     struct frame_rules *ret_rules);

/* May a call return there: is what is before it one? */
bool code_rules_follows_call(struct code_rules *code, struct memory *copy, uint64_t address);

#endif

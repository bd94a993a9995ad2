/* SPDX-License-Identifier: MIT */
/*
 * truth: all the stacks of a program, in the order of time, and the judge of
 * what is said of it.
 *
 * Each event is the stack at one bytecode instruction, as LuaJIT's own debug
 * library saw it (truth.lua), and the position that the program had stored
 * then. Between two events a call or return is under way: then frames of the
 * one may be gone already, or frames of the other there, in their order, and
 * builtins may stand on the first: those that its call hook saw called there.
 */
#ifndef LJSPY_TESTS_EXACTNESS_TRUTH_H
#define LJSPY_TESTS_EXACTNESS_TRUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "output/sample/frame.h"

enum {
	STACK_FRAMES_MAX = 512,
	STACK_TEXT_MAX = 64 * 1024,
};

/* A stack in words: "FILE:LINE OF DEFINITION:LINE" or "[builtin]", root first. */
struct stack_text {
	const char *frames[STACK_FRAMES_MAX];
	size_t count;
	bool compiled;        /* a frame runs as machine code */
	const char *lost;     /* the reason of the first lost frame, or NULL */
	size_t lost_at;       /* its index */
	size_t unknown_lines; /* of Lua frames: so many say no line */
	char text[STACK_TEXT_MAX];
};

/* Frames are leaf first, as the namer gives them. False if they are too many. */
bool stack_text_fill(struct stack_text *stack, const struct frame *frames, size_t count);

/* One line, root first. */
void stack_text_print(FILE *file, const struct stack_text *stack);

enum verdict {
	VERDICT_RIGHT,
	VERDICT_NO_LINE, /* right, as far as it goes: a line of it is not known */
	VERDICT_LOST,    /* it says so itself, and what it knows is right */
	VERDICT_WRONG,
	VERDICT_COUNT
};

struct truth;

/*
 * Read what truth.lua says, up to "ready"; ret_table is the address of the position's table. NULL also, after
 * saying so, if it is too much.
 */
struct truth *truth_read(FILE *log, const char *program, uint64_t *ret_table);
void truth_free(struct truth *truth);

/* Is this stack among those that the position allows? Compiled code may lag behind it. */
enum verdict truth_judge(const struct truth *truth, int position, const struct stack_text *stack);

/*
 * The same for one who sees every instruction from position 1 on: the stacks
 * must come in their order, none twice and none left out.
 */
enum verdict truth_follow(struct truth *truth, int position, const struct stack_text *stack);
bool truth_is_followed_to_its_end(const struct truth *truth);

/* What truth_follow() would have accepted. */
void truth_print_expected(FILE *file, const struct truth *truth);

#endif

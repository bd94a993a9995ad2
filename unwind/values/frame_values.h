/* SPDX-License-Identifier: MIT */
/*
 * frame_values: what the variables of a Lua function's activation hold.
 *
 * Names and scopes come from the prototype's debug information, values from the
 * copy taken while the thread was held, or asleep. Compiled code keeps values in
 * registers. Of it, only two kinds are told: values that nothing in the variable's
 * scope assigns, which are in Lua's stack since before the trace began; and constants
 * of the last snapshot. All others are unknown, with the reason.
 * Facts: lj_debug.c (debug_localname), lj_frame.h, lj_snap.c.
 */
#ifndef LJSPY_FRAME_VALUES_H
#define LJSPY_FRAME_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/memory.h"
#include "unwind/capture/capture.h"
#include "unwind/names/namer.h"
#include "unwind/stack/merged_stack.h"

enum variable_kind {
	VARIABLE_ARGUMENT,
	VARIABLE_LOCAL,
	VARIABLE_VARARG,
	/* without debug information: may be a local, a value of an expression, or left from before */
	VARIABLE_SLOT,
	VARIABLE_UPVALUE,
	VARIABLE_KIND_COUNT
};

struct variable {
	enum variable_kind kind;
	uint32_t index;   /* the slot, or number of the upvalue, from 0; of varargs from 1 */
	char *name;       /* untrusted; NULL if unknown */
	const char *type; /* as type() has it; NULL if the value is unknown */
	char *text;       /* of the value (value_text.h), untrusted; or why it is unknown */
	bool of_snapshot; /* compiled: the value at the trace's last snapshot */
};

struct variables {
	struct variable *list; /* owned */
	size_t count, size;
};

/* "argument" and so on. */
const char *variable_kind_name(enum variable_kind kind);

void variables_clear(struct variables *variables);

/* What a stack was unwound from; the copy must be the one that the stack is of. */
struct value_source {
	struct capture *capture;
	struct memory *live;
	struct namer *namer;
};

/* Add the variables of the stack's frame; none if it is no Lua function. 0 or -ENOMEM. */
int frame_values(const struct value_source *source, const struct merged_stack *stack, size_t index,
		 struct variables *variables);

#endif

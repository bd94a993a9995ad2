/* SPDX-License-Identifier: MIT */
/*
 * trace_values: which values of a compiled function are known.
 *
 * A trace stores nothing into Lua's stack until it is left. So a slot in memory is
 * right if nothing that the trace runs assigns it. What a snapshot says of a slot is
 * how an exit restores it: a constant, or a register at that exit, and no earlier.
 */
#ifndef LJSPY_TRACE_VALUES_H
#define LJSPY_TRACE_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/lua/lua_names.h"
#include "unwind/stack/merged_stack.h"

enum { TRACE_REASON_SIZE = 64 };

struct trace_value {
	bool is_known;    /* else reason says why not */
	bool is_constant; /* it is value; else it is in the slot */
	bool of_snapshot;
	uint64_t value;
	char reason[TRACE_REASON_SIZE];
};

extern const char trace_value_unknown[];

/*
 * What is known of a local variable in a slot of a compiled frame; local is NULL without debug information.
 */
void trace_value(const struct merged_frame *frame, const struct lua_local *local, uint32_t slot,
		 struct trace_value *ret_value);

/* Has a trace called the function itself? Then memory has no frame for it. False for frames not compiled. */
bool trace_has_inlined(const struct merged_frame *frame);

/* Does an instruction in the local's scope store into its slot? Closures may assign it, too. */
bool trace_local_is_assigned(const struct layout *layout, const struct proto *proto,
			     const struct lua_local *local, uint32_t slot);

/* GCproto.sizeuv. */
uint8_t trace_upvalue_count(const struct layout *layout, const struct proto *proto);

#endif

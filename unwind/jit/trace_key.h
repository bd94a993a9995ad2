/* SPDX-License-Identifier: MIT */
/*
 * trace_key: the constant keys by which bytecodes, and the IR recorded of them, look into tables.
 *
 * LuaJIT keeps each string once, so its address tells whether two keys are the same.
 */
#ifndef LJSPY_TRACE_KEY_H
#define LJSPY_TRACE_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "luajit-layouts/bytecode.h"
#include "unwind/lua/lua_objects.h"
#include "unwind/trace/trace_block.h"

/* The key that a bytecode looks up. False if it is not a constant string. */
bool trace_key_of_bytecode(const struct layout *layout, const struct proto *proto, enum bytecode_op op,
			   uint32_t instruction, uint64_t *ret_key);

/* The key that IR_HREFK, IR_HREF or IR_NEWREF looks up. False if it is not a constant. */
bool trace_key_of_lookup(const struct trace *trace, const struct layout *layout,
			 const struct trace_instruction *ins, uint64_t *ret_key);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * bytecode_text: a bytecode instruction as jit.bc and jit.dump print it.
 *
 * Facts: jit/bc.lua (bcline), lj_obj.h (GCproto: proto_kgc, proto_knumtv).
 */
#ifndef LJSPY_BYTECODE_TEXT_H
#define LJSPY_BYTECODE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "unwind/listing/listing_source.h"

/*
 * An instruction of a prototype by its number, which LuaJIT counts from the function's header on.
 * instruction is what stands there, or what a trace has replaced. prefix stands before the name.
 */
void bytecode_text_line(const struct listing_source *source, const struct proto *proto, uint32_t number,
			uint32_t instruction, const char *prefix, FILE *out);

/* The number of the instruction that it jumps to. False if it is no jump. */
bool bytecode_text_target(const struct layout *layout, uint32_t number, uint32_t instruction,
			  uint32_t *ret_target);

/*
 * The constants of a prototype that its instructions name, at most max: strings, or the prototypes
 * of functions in it. Returns how many.
 */
enum bytecode_constant { BYTECODE_STRINGS, BYTECODE_PROTOS };

size_t bytecode_text_constants(const struct layout *layout, const struct proto *proto,
			       enum bytecode_constant kind, uint64_t *ret_objects, size_t max);

/* The string, or the prototype, that an instruction names as its last operand. False if it has none. */
bool bytecode_text_string(const struct layout *layout, const struct proto *proto, uint32_t instruction,
			  uint64_t *ret_string);
bool bytecode_text_proto(const struct layout *layout, const struct proto *proto, uint32_t instruction,
			 uint64_t *ret_proto);

#endif

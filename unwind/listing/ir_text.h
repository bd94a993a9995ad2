/* SPDX-License-Identifier: MIT */
/*
 * ir_text: the IR and the snapshots of a trace as jit.dump prints them with registers ("+rs").
 *
 * Each line is written without its end. The trace is a copy that may hold anything.
 * Facts: jit/dump.lua (dump_ir, printsnap), lj_ir.h, lib_jit.c (jit.util.tracek).
 */
#ifndef LJSPY_IR_TEXT_H
#define LJSPY_IR_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "unwind/trace/trace.h"
#include "unwind/listing/listing_source.h"

/* How a register is called (RID_*); NULL if there is no such one. For the target's machine. */
typedef const char *ir_register_name(unsigned reg);

struct ir_text {
	const struct listing_source *source;
	const struct trace *trace;
	ir_register_name *register_name;
};

/* The instruction at a reference, or nothing: jit.dump leaves out some. False for those. */
bool ir_text_instruction(const struct ir_text *text, uint32_t ref, FILE *out);

/* "....              SNAP   #0   [ ---- ---- 0001 ]"; false if there is no such snapshot. */
bool ir_text_snapshot(const struct ir_text *text, uint32_t number, FILE *out);

#endif

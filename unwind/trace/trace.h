/* SPDX-License-Identifier: MIT */
/*
 * trace: one compiled trace, a frame that it has inlined, and traces by number.
 *
 * A trace is a copy. Its functions are in trace_block.h; traces.h copies the traces of a
 * global_State.
 */
#ifndef LJSPY_TRACE_H
#define LJSPY_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TRACE_FRAMES_MAX = 256 }; /* inlined frames; slots are 250 at most (LJ_MAX_JSLOTS) */

struct trace {
	uint64_t address;
	uint32_t number;
	uint64_t mcode;
	uint32_t szmcode;
	uint16_t spadjust;
	uint16_t root; /* 0 for a root trace */
	uint64_t startpt, startpc;
	uint32_t startins;    /* the bytecode that its JFORL, JITERL or JLOOP replaced */
	const uint8_t *bytes; /* the whole block; NULL if unreadable or not kept */
	size_t size;
};

/* A frame that a trace has inlined, or its start frame. */
struct trace_frame {
	uint64_t function;    /* GCfunc, or 0 if it depends on the path */
	uint64_t pc;          /* the current bytecode, or the call in a caller */
	bool is_continuation; /* it called its callee through a continuation frame */
	bool is_near;         /* pc, or even the function, is the nearest known one, not proven */
	uint8_t base_slot;    /* the trace's slot of its base; 0 if unknown */
};

/* The traces of one global_State by number, as last seen, which may be long ago. */
struct trace_numbers {
	const struct trace **traces; /* NULL where there is none */
	uint32_t size;
};

/* The trace with this number, or NULL. */
static inline const struct trace *trace_numbered(const struct trace_numbers *numbers, uint32_t number)
{
	return number < numbers->size ? numbers->traces[number] : NULL;
}

#endif

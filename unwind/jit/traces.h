/* SPDX-License-Identifier: MIT */
/*
 * traces: the compiled traces of one global_State, and what they say of a pc.
 *
 * A GCtrace is one block: header, IR, snapshots and snapshot map. It is
 * copied while the target is held, when it is new or its header changed, and
 * compared with its header whenever it is used, so that neither a flush nor a
 * recycled trace number lends its frames to another trace.
 * Facts: lj_jit.h (GCtrace, SnapShot, SNAP()), lj_snap.c, lj_trace.c.
 */
#ifndef LJSPY_TRACES_H
#define LJSPY_TRACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/snapshot.h"
#include "unwind/elf/image.h"
#include "unwind/lua/lua_objects.h"

enum {
	TRACES_MAX = 65535,		/* trace numbers are 16 bits wide */
	TRACE_BYTES_MAX = 1 << 20,	/* of one GCtrace with its IR and snapshots */
	TRACES_BYTES_MAX = 64 << 20,	/* of all of them, with what is found out about them */
	TRACE_FRAMES_MAX = 256,		/* inlined frames; slots are 250 at most (LJ_MAX_JSLOTS) */
};

struct trace {
	uint64_t address;
	uint32_t number;
	uint64_t mcode;
	uint32_t szmcode;
	uint16_t spadjust;
	uint16_t root;			/* 0 for a root trace */
	uint64_t startpt, startpc;
	const uint8_t *bytes;		/* the whole block; NULL if it could not be read or kept */
	size_t size;
};

struct traces;

struct traces *traces_new(void);
void traces_free(struct traces *traces);

/*
 * While the target is held: learn which traces there are. J is the jit_State's
 * address, J_trace the address of the array and sizetrace its length; the traces whose numbers are
 * in executing (at most count, 0 ignored) are read again and verified.
 */
void traces_capture(struct traces *traces, struct snapshot *snapshot,
		    const struct layout *layout, uint64_t J, uint64_t J_trace, uint32_t sizetrace,
		    const uint32_t *executing, size_t count);

/* After traces_capture(): verify the trace whose machine code holds pc, if there is one, and give it. */
const struct trace *traces_capture_pc(struct traces *traces, struct snapshot *snapshot,
				      const struct layout *layout, uint64_t pc);

/* After traces_capture(): the same for the trace that this one ends in a jump to; NULL if it does not. */
const struct trace *traces_capture_link(struct traces *traces, struct snapshot *snapshot,
					const struct layout *layout, const struct trace *trace);

/*
 * False if it is not known yet what the trace says of a pc (traces_frames());
 * else the prototypes that it speaks of, which objects must hold then: what
 * is called by an upvalue is not among its constants.
 */
bool traces_protos(const struct traces *traces, const struct trace *trace,
		   const uint64_t **ret_protos, size_t *ret_count);

/* The copy of a trace's machine code, szmcode bytes; NULL if it was never captured by its pc. */
const uint8_t *traces_code(const struct traces *traces, const struct trace *trace);

/* The trace whose machine code holds pc, verified in the present snapshot; or NULL. */
const struct trace *traces_find(const struct traces *traces, uint64_t pc);

/* Is this pc in the stubs that jumps out of traces lead to? As of the last traces_capture(). */
bool traces_is_exit(const struct traces *traces, uint64_t pc);

/* The trace with this number, verified in the present snapshot; or NULL. */
const struct trace *traces_by_number(const struct traces *traces, uint32_t number);

/* The trace with this number as it was seen last, be it now or long ago; or NULL. */
const struct trace *traces_seen(const struct traces *traces, uint32_t number);

/* The trace whose startins the pc points behind (BC_JLOOP of a return, before August 2023). */
const struct trace *traces_find_startins(const struct traces *traces,
					 const struct layout *layout, uint64_t pc);

/* The bytecode that trace number's JFORL, JITERL or JLOOP replaced; false if it is not known. */
bool traces_startins(const struct traces *traces, uint32_t number, uint32_t *ret_instruction);

/* The functions or prototypes among a trace's constants; at most max of them. */
enum trace_constant { TRACE_FUNCTIONS, TRACE_PROTOS };

size_t trace_constants(const struct trace *trace, const struct layout *layout,
		       enum trace_constant kind, uint64_t *ret_objects, size_t max);

/* One frame that a trace has inlined, or its start frame. */
struct trace_frame {
	uint64_t function;	/* GCfunc, or 0 if it depends on the path */
	uint64_t pc;		/* bytecode being executed, or the call in a caller */
	bool is_continuation;	/* what it called was called through a continuation frame */
	bool is_near;		/* pc, or even the function, is the nearest known, not proven */
	uint8_t base_slot;	/* where its base is among the trace's slots */
};

/*
 * The frames of a trace at pc, innermost first; the last one is the start
 * frame at jit_base. Returns how many, 0 if the trace cannot tell. objects
 * must hold the prototypes among the trace's constants. What this says of a
 * trace is found out once, from the copy of its machine code that
 * traces_capture_pc() made.
 */
size_t traces_frames(struct traces *traces, const struct trace *trace,
		     const struct layout *layout, struct lua_objects *objects, uint64_t pc,
		     struct trace_frame *ret_frames, size_t max);

/* The frames of the snapshot in force at pc alone. */
size_t trace_frames(const struct trace *trace, const struct layout *layout, uint64_t pc,
		    struct trace_frame *ret_frames, size_t max);

/* The same for the snapshot that an exit restores. */
size_t trace_exit_frames(const struct trace *trace, const struct layout *layout, uint32_t exitno,
			 struct trace_frame *ret_frames, size_t max);

#endif

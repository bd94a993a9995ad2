/* SPDX-License-Identifier: MIT */
/*
 * traces: the compiled traces of one global_State, and the Lua frames at their pcs.
 *
 * A GCtrace is one block: header, IR, snapshots and snapshot map. While the target is
 * held, ljspy copies a block that is new or has a changed header. It compares the header
 * on every use, so that a trace never gets the frames of another one after a flush or
 * with a reused number.
 * Facts: lj_jit.h (GCtrace, SnapShot, SNAP()), lj_snap.c, lj_trace.c.
 */
#ifndef LJSPY_TRACES_H
#define LJSPY_TRACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/snapshot.h"
#include "unwind/elf/image.h"
#include "unwind/trace/trace.h"
#include "unwind/trace/trace_code.h"
#include "unwind/jit/trace_path.h"
#include "unwind/lua/lua_objects.h"

enum {
	TRACES_MAX = 65535,          /* trace numbers are 16 bits wide */
	TRACE_BYTES_MAX = 1 << 20,   /* of one GCtrace with its IR and snapshots */
	TRACES_BYTES_MAX = 64 << 20, /* of all traces, with their code and tables */
};

struct traces;

/* NULL when out of memory. */
struct traces *traces_new(void);
void traces_free(struct traces *traces);

/* The size of a GCtrace with its IR and snapshots, by its header; 0 if it makes no sense. */
size_t trace_block_size(const struct layout *layout, uint64_t address, const uint8_t *header);

/* What a GCtrace's header says of it; without its block. */
struct trace trace_of_header(const struct layout *layout, uint64_t address, const uint8_t *header);

enum { TRACES_EXECUTING_MAX = 3 };

/* What the jit_State says of traces. */
struct traces_wanted {
	uint64_t J;         /* its address */
	uint64_t J_trace;   /* of its array of traces */
	uint32_t sizetrace; /* the array's length */
	/* The numbers of traces to read and verify again; 0 is ignored. */
	uint32_t executing[TRACES_EXECUTING_MAX];
};

/* While the target is held: read the list of traces, and the new ones. */
void traces_capture(struct traces *traces, struct snapshot *snapshot, const struct layout *layout,
		    const struct traces_wanted *wanted);

/*
 * After traces_capture(): verify all traces again. LuaJIT may have put a new trace where another one was,
 * with the same number; where g->vmstate does not name the trace that runs, only its header tells.
 */
void traces_capture_again(struct traces *traces, struct snapshot *snapshot, const struct layout *layout);

/*
 * After traces_capture(): verify the trace whose machine code holds pc, copy that code, and
 * return the trace. NULL if there is none.
 */
const struct trace *traces_capture_pc(struct traces *traces, struct snapshot *snapshot,
				      const struct layout *layout, uint64_t pc);

/* After traces_capture(): the same for the trace that this one jumps to at its end; NULL if there is none. */
const struct trace *traces_capture_link(struct traces *traces, struct snapshot *snapshot,
					const struct layout *layout, const struct trace *trace);

/*
 * The prototypes in a trace's table, which traces_frames() makes on its first call; false
 * before that. objects must then hold these prototypes: functions called by an upvalue are
 * not among the trace's constants. The traces own *ret_protos.
 */
bool traces_protos(const struct traces *traces, const struct trace *trace, const uint64_t **ret_protos,
		   size_t *ret_count);

/* The copy of a trace's machine code, szmcode bytes; NULL if traces_capture_pc() has not made it. */
const uint8_t *traces_code(const struct traces *traces, const struct trace *trace);

/* Its machine code aligned with its IR (trace_code.h), and its path (trace_path.h). False without either. */
bool traces_align_code(const struct traces *traces, const struct trace *trace, const struct layout *layout,
		       struct trace_code *code);
bool traces_replay(const struct traces *traces, const struct trace *trace, const struct layout *layout,
		   struct lua_objects *objects, struct trace_path *path);

/* Where code of a trace leads that jumps to this address: the number of its exit, or -1. */
int traces_exit_number(const struct traces *traces, const struct trace *trace, const struct layout *layout,
		       uint64_t target);

/* The trace whose machine code holds pc, verified in the current snapshot; or NULL. */
const struct trace *traces_find(const struct traces *traces, uint64_t pc);

/* Is this pc in the exit stubs, which exits of traces jump to? As of the last traces_capture(). */
bool traces_is_exit(const struct traces *traces, const struct layout *layout, uint64_t pc);

/*
 * After traces_capture(): verify the trace that is left by the stub at pc, copy its code, and return it.
 * NULL if there is none, or if stubs are not a trace's own.
 */
const struct trace *traces_capture_exit(struct traces *traces, struct snapshot *snapshot,
					const struct layout *layout, uint64_t pc);

/* The trace with this number, verified in the current snapshot; or NULL. */
const struct trace *traces_by_number(const struct traces *traces, uint32_t number);

/* The trace whose startins ends at pc (BC_JLOOP of a return, before August 2023); or NULL. */
const struct trace *traces_find_startins(const struct traces *traces, const struct layout *layout,
					 uint64_t pc);

/*
 * The frames of a trace at pc, innermost first; the last one is the start frame at
 * jit_base. Return how many, 0 if they are unknown. objects must hold the prototypes among
 * the trace's constants. The first call makes the trace's table, from the machine code that
 * traces_capture_pc() copied.
 */
size_t traces_frames(struct traces *traces, const struct trace *trace, const struct layout *layout,
		     struct lua_objects *objects, uint64_t pc,
		     struct trace_frame ret_frames[static TRACE_FRAMES_MAX]);

#endif

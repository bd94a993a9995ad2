/* SPDX-License-Identifier: MIT */
#include "unwind/compiled/trace_exits.h"

#include "unwind/compiled/trace_copy.h"
#include "unwind/trace/trace_block.h"
#include "unwind/lua/luajit.h"

enum { SNAPCOUNT_DONE = 255, CANDIDATES_MAX = 64, SIZEBC_MAX = 1 << 24 };

/* What a trace may go on in: the prototypes that it knows. */
struct candidates {
	uint64_t protos[CANDIDATES_MAX], begin[CANDIDATES_MAX], end[CANDIDATES_MAX]; /* and their bytecode */
	size_t count;
};

static void add_candidate(struct memory *live, const struct layout *layout, uint64_t proto,
			  struct candidates *candidates)
{
	const uint64_t begin = proto + (uint64_t)layout->GCproto_size;
	uint32_t sizebc;

	if (candidates->count == CANDIDATES_MAX ||
	    !memory_u32(live, proto + (uint64_t)layout->GCproto_sizebc, &sizebc) || sizebc > SIZEBC_MAX)
		return;
	candidates->protos[candidates->count] = proto;
	candidates->begin[candidates->count] = begin;
	candidates->end[candidates->count++] = begin + (uint64_t)sizebc * BYTECODE_SIZE;
}

static void list_candidates(struct memory *live, const struct layout *layout, const struct trace *trace,
			    struct candidates *ret_candidates)
{
	uint64_t objects[CANDIDATES_MAX];
	size_t count = trace_constants(trace, layout, TRACE_PROTOS, objects, CANDIDATES_MAX);

	ret_candidates->count = 0;
	add_candidate(live, layout, trace->startpt, ret_candidates);
	for (size_t i = 0; i < count; i++)
		add_candidate(live, layout, objects[i], ret_candidates);
	count = trace_constants(trace, layout, TRACE_FUNCTIONS, objects, CANDIDATES_MAX);
	for (size_t i = 0; i < count; i++) {
		uint64_t pc = 0;

		/* A C function has none of its own: its pc lies in no prototype. */
		if (memory_read(live, objects[i] + (uint64_t)layout->GCfunc_pc, &pc,
				layout_ref_size(layout)) == MEMORY_OK)
			add_candidate(live, layout, pc - (uint64_t)layout->GCproto_size, ret_candidates);
	}
}

/* The prototype whose bytecode holds pc; 0 if it is not known. */
static uint64_t proto_of(const struct candidates *candidates, uint64_t pc)
{
	for (size_t i = 0; i < candidates->count; i++)
		if (pc >= candidates->begin[i] && pc < candidates->end[i])
			return candidates->protos[i];
	return 0;
}

bool trace_exits_read(struct memory *live, const struct layout *layout, const struct trace_summary *summary,
		      struct trace_exit ret_exits[static TRACE_EXITS_MAX], size_t *ret_count)
{
	struct trace_frame frames[TRACE_FRAMES_MAX];
	struct candidates candidates;
	struct trace trace;
	size_t count = 0;

	if (!trace_copy_read(live, layout, summary, &trace))
		return false;
	list_candidates(live, layout, &trace, &candidates);
	for (uint32_t i = 0; i < trace_snapshot_count(&trace, layout) && count < TRACE_EXITS_MAX; i++) {
		struct trace_snapshot snapshot;
		struct trace_exit exit = { .number = i };

		if (!trace_snapshot(&trace, layout, i, &snapshot) || snapshot.count == 0)
			continue;
		exit.has_side = snapshot.count == SNAPCOUNT_DONE;
		exit.taken = exit.has_side ? 0 : snapshot.count;
		if (trace_exit_frames(&trace, layout, i, frames, TRACE_FRAMES_MAX) > 0) {
			exit.pc = frames[0].pc;
			exit.proto = proto_of(&candidates, exit.pc);
		}
		ret_exits[count++] = exit;
	}
	trace_copy_clear(&trace);
	*ret_count = count;
	return true;
}

/* SPDX-License-Identifier: MIT */
/* Do jit_State, GCtrace and its snapshots fit the layout? */
#include <elf.h>
#include <string.h>

#include "luajit-layouts/bytecode.h"
#include "luajit-layouts/selftest/selftest_check.h"

enum {
	TAIL_BYTES_MAX = 64,
	TRACES_MAX = 65536, /* trace numbers have 16 bits */
	SAMPLES = 64,
	NUMBERED_SAMPLES = 8,
	SNAPSHOTS_MAX = 512, /* checked in one trace */
	SNAPSHOTS_SOME = 8,  /* enough that some must be behind the start of the code */
	REF_BIAS = 0x8000,   /* lj_ir.h */
	REF_NIL = REF_BIAS - 1,
	REF_TRUE = REF_BIAS - 3,
	IR_BYTES = 8,
	IR_OPCODE = 5,   /* IRIns.o */
	KPRI_TO_KGC = 2, /* KPRI, KINT, KGC follow one another */
	SNAP_ENTRY_BYTES = 4,
	SNAP_SLOT_SHIFT = 24,
	SNAP_LINK = 0x30000, /* SNAP_FRAME, SNAP_CONT */
	SLOTS_MAX = 250,     /* LJ_MAX_JSLOTS */
	STATE_ACTIVE = 0x10,
	STATE_MAX = 6,
	LINK_ROOT = 1,
	LINK_LOOP = 2,
	LINK_TAILREC = 3,
	LINK_MAX = 9,
	SPADJUST_UNIT = 8,
	SPADJUST_MAX = 4096,
	PAGE_BYTES = 4096,
	PUSH_IMM8 = 0x6a, /* how an exit stub starts on x86 */
	EXITS_MAX = 1 << 16,
};

/* ---- jit_State ---------------------------------------------------------------- */

static bool read_J(struct check *check, int32_t offset, unsigned size, const char *name, uint64_t *ret)
{
	if (offset < 0)
		return check_fail(check, "%s is not known", name);
	return check_read(check, check->g + (uint64_t)check->layout->GG_J, offset, size, name, ret);
}

#define J_FIELD(check, field, size, ret) read_J(check, (check)->layout->field, size, #field, ret)

struct trace_array {
	uint64_t at, size;
};

static bool trace_at(struct check *check, const struct trace_array *traces, uint64_t number, uint64_t *ret)
{
	return number != 0 && number < traces->size &&
	       field_read(check->memory, traces->at + number * layout_ref_size(check->layout),
			  layout_ref_size(check->layout), ret) &&
	       *ret != 0;
}

static bool read_trace_array(struct check *check, struct trace_array *ret)
{
	uint64_t first, free;

	/* J.freetrace, where the search for a free number starts, comes right before. */
	if (!J_FIELD(check, J_trace, 8, &ret->at) || !J_FIELD(check, J_sizetrace, 4, &ret->size) ||
	    !read_J(check, check->layout->J_sizetrace - 4, 4, "J.freetrace", &free))
		return false;
	if (ret->size > TRACES_MAX || free > ret->size)
		return check_fail(check, "J.sizetrace is %u", (unsigned)ret->size);
	for (uint64_t number = 1; number < free; number++) {
		if (!trace_at(check, ret, number, &first))
			return check_fail(check, "J.freetrace is not the first free place");
	}
	if (ret->size > 0 && (!field_reference(check->memory, check->layout, ret->at, &first) || first != 0))
		return check_fail(check, "J.trace is no array that starts with no trace");
	return true;
}

/* An area of machine code starts with a link to the next area and its own size. */
static bool check_areas(struct check *check)
{
	uint64_t area, size, bottom, top, linked;

	if (!J_FIELD(check, J_mcarea, 8, &area) || !J_FIELD(check, J_szmcarea, 8, &size))
		return false;
	if (area == 0)
		return true; /* nothing was compiled yet */
	if (size == 0 || size % PAGE_BYTES != 0)
		return check_fail(check, "J.szmcarea is no number of pages");
	if (!field_read(check->memory, area + 8, 8, &linked) || linked != size)
		return check_fail(check, "J.mcarea is no area of J.szmcarea bytes");
	/* The two words between them, mctop and mcbot, point into the area. */
	if (!read_J(check, check->layout->J_mcarea + 8, 8, "J.mctop", &top) ||
	    !read_J(check, check->layout->J_mcarea + 16, 8, "J.mcbot", &bottom))
		return false;
	if (bottom < area || top < bottom || top > area + size)
		return check_fail(check, "J.mcarea is not followed by a top and a bottom");
	return true;
}

/* Is there a compiled trace? */
static bool has_trace(struct check *check, const struct trace_array *traces)
{
	unsigned size = layout_ref_size(check->layout);
	uint64_t trace, cur = check->g + (uint64_t)check->layout->GG_J;

	for (uint64_t number = 1; number < traces->size; number++) {
		if (field_read(check->memory, traces->at + number * size, size, &trace) && trace != 0 &&
		    trace != cur)
			return true;
	}
	return false;
}

static bool check_exit_stubs(struct check *check, const struct trace_array *traces)
{
	uint64_t group, first;

	if (!J_FIELD(check, J_exitstubgroup, 8, &group))
		return false;
	/* On other machines, each trace has its own exit stubs. */
	if (!has_trace(check, traces) || check->vm->machine != EM_X86_64)
		return true;
	if (!field_read(check->memory, group, 2, &first) || first != PUSH_IMM8)
		return check_fail(check, "J.exitstubgroup[0] does not push exit number 0");
	check->checked++;
	return true;
}

static bool check_recorder(struct check *check)
{
	uint64_t L, state, g, parent, exitno, proto;

	if (!J_FIELD(check, J_L, 8, &L) || !J_FIELD(check, J_state, 4, &state) ||
	    !J_FIELD(check, J_parent, 4, &parent) || !J_FIELD(check, J_exitno, 4, &exitno) ||
	    !J_FIELD(check, J_pt, 8, &proto))
		return false;
	/*
	 * lj_trace_abort() takes the bit away and leaves the rest, which lasts until the recorder runs again.
	 */
	if ((state & ~(uint64_t)STATE_ACTIVE) > STATE_MAX)
		return check_fail(check, "J.state is %u", (unsigned)state);
	if (parent >= TRACES_MAX || exitno >= EXITS_MAX)
		return check_fail(check, "J.parent or J.exitno is beyond belief");
	/* While LuaJIT records a function, its prototype stays. */
	if (state > STATE_ACTIVE && proto != 0 && !check_type(check, proto, GCT_PROTO, "J.pt"))
		return false;
	if (state > STATE_ACTIVE && (!check_type(check, L, GCT_THREAD, "J.L") ||
				     !CHECK_FIELD(check, L, L_glref, 0, &g) || g != check->g))
		return check_fail(check, "J.L is no thread of this state");
	return true;
}

bool selftest_jit(struct check *check)
{
	struct trace_array traces;

	return read_trace_array(check, &traces) && check_recorder(check) && check_areas(check) &&
	       check_exit_stubs(check, &traces);
}

/* ---- traces --------------------------------------------------------------------- */

struct trace {
	uint64_t at, number;
	uint64_t nsnap, nsnapmap, snap, snapmap;
	uint64_t ir, nk, nins;
	uint64_t szmcode, mcode, mcloop;
	uint64_t link, linktype, root;
	uint64_t startpt, startpc;
	uint64_t last_mcofs; /* of the last snapshot; 0 without the field */
};

/* Bytes of GCtrace.nsnapmap and SnapShot.mapofs: 2 in early releases. */
static unsigned map_width(const struct layout *layout)
{
	return layout->SnapShot_ref - layout->SnapShot_mapofs == 2 ? 2 : 4;
}

static bool read_trace(struct check *check, uint64_t at, uint64_t number, struct trace *ret)
{
	ret->at = at;
	ret->number = number;
	return CHECK_FIELD(check, at, GCtrace_nsnap, 2, &ret->nsnap) &&
	       CHECK_FIELD(check, at, GCtrace_nsnapmap, map_width(check->layout), &ret->nsnapmap) &&
	       CHECK_FIELD(check, at, GCtrace_snap, 8, &ret->snap) &&
	       CHECK_FIELD(check, at, GCtrace_snapmap, 8, &ret->snapmap) &&
	       CHECK_FIELD(check, at, GCtrace_ir, 8, &ret->ir) &&
	       CHECK_FIELD(check, at, GCtrace_nk, 4, &ret->nk) &&
	       CHECK_FIELD(check, at, GCtrace_nins, 4, &ret->nins) &&
	       CHECK_FIELD(check, at, GCtrace_szmcode, 4, &ret->szmcode) &&
	       CHECK_FIELD(check, at, GCtrace_mcode, 8, &ret->mcode) &&
	       CHECK_FIELD(check, at, GCtrace_mcloop, 4, &ret->mcloop) &&
	       CHECK_FIELD(check, at, GCtrace_link, 2, &ret->link) &&
	       CHECK_FIELD(check, at, GCtrace_linktype, 1, &ret->linktype) &&
	       CHECK_FIELD(check, at, GCtrace_root, 2, &ret->root) &&
	       CHECK_FIELD(check, at, GCtrace_startpt, 0, &ret->startpt) &&
	       CHECK_FIELD(check, at, GCtrace_startpc, 0, &ret->startpc);
}

/* A trace is one block: GCtrace, IR from nk to nins, snapshots, their map (lj_trace_alloc()). */
static bool check_block(struct check *check, const struct trace *trace)
{
	uint64_t ir = trace->at + ((uint64_t)check->layout->GCtrace_size + 7) / 8 * 8;
	uint64_t op;

	if (trace->nk > REF_TRUE || trace->nins <= REF_BIAS || trace->nins > 2 * REF_BIAS)
		return check_fail(check, "GCtrace.nk or GCtrace.nins is no reference");
	if (trace->ir + trace->nk * IR_BYTES != ir || check->layout->GCtrace_size % IR_BYTES != 0)
		return check_fail(check, "GCtrace.ir does not start behind the GCtrace");
	if (trace->snap != ir + (trace->nins - trace->nk) * IR_BYTES)
		return check_fail(check, "GCtrace.snap is not at the end of the IR");
	if (trace->nsnap == 0 ||
	    trace->snapmap - trace->snap != trace->nsnap * (uint64_t)check->layout->SnapShot_size)
		return check_fail(check, "GCtrace.snapmap is not at the end of %u snapshots",
				  (unsigned)trace->nsnap);
	if (check->layout->IR_KGC < 0)
		return check_fail(check, "IR.KGC is not known");
	if (!field_read(check->memory, trace->ir + REF_NIL * IR_BYTES + IR_OPCODE, 1, &op) ||
	    op + KPRI_TO_KGC != (uint64_t)check->layout->IR_KGC)
		return check_fail(check, "IR.KGC: the constant nil is no KPRI");
	return true;
}

struct snapshot_fields {
	uint64_t mapofs, ref, mcofs, nslots, topslot, nent;
};

static bool read_snapshot(struct check *check, uint64_t at, struct snapshot_fields *ret)
{
	unsigned width = map_width(check->layout);

	ret->mcofs = 0;
	return CHECK_FIELD(check, at, SnapShot_mapofs, width, &ret->mapofs) &&
	       CHECK_FIELD(check, at, SnapShot_ref, 2, &ret->ref) &&
	       CHECK_FIELD(check, at, SnapShot_nslots, 1, &ret->nslots) &&
	       CHECK_FIELD(check, at, SnapShot_topslot, 1, &ret->topslot) &&
	       CHECK_FIELD(check, at, SnapShot_nent, 1, &ret->nent) &&
	       (check->layout->SnapShot_mcofs == LAYOUT_ABSENT ||
		CHECK_FIELD(check, at, SnapShot_mcofs, 2, &ret->mcofs));
}

/* Count the entries of a snapshot that are links of frames; the first frame's does not count. */
static bool count_links(struct check *check, const struct trace *trace,
			const struct snapshot_fields *snapshot, uint64_t *ret)
{
	uint64_t entry = 0, count = 0, map = trace->snapmap + snapshot->mapofs * SNAP_ENTRY_BYTES;

	for (uint64_t i = 0; i < snapshot->nent; i++) {
		if (!field_read(check->memory, map + i * SNAP_ENTRY_BYTES, SNAP_ENTRY_BYTES, &entry))
			return check_fail(check, "GCtrace.snapmap cannot be read");
		count += (entry & SNAP_LINK) != 0 && entry >> SNAP_SLOT_SHIFT != 0;
	}
	if (entry >> SNAP_SLOT_SHIFT >= snapshot->nslots && snapshot->nent != 0)
		return check_fail(check, "SnapShot.nslots is less than a slot of the map");
	*ret = count;
	return true;
}

/*
 * Behind a snapshot's entries lie its PC and base slot in two words (GC64), or
 * its PC and the links of its frames (lj_snap.c, snapshot_framelinks()).
 */
static bool check_map(struct check *check, const struct trace *trace, const struct snapshot_fields *snapshot,
		      uint64_t next_mapofs)
{
	uint64_t links = 0;

	if (snapshot->mapofs >= trace->nsnapmap || !count_links(check, trace, snapshot, &links))
		return check_fail(check, "SnapShot.mapofs is beyond the map");
	if (snapshot->mapofs + snapshot->nent + (check->layout->gc64 ? 2 : 1 + links) != next_mapofs)
		return check_fail(check, "SnapShot.nent does not lead to the next map");
	return true;
}

static bool check_snapshots(struct check *check, struct trace *trace)
{
	uint64_t size = (uint64_t)check->layout->SnapShot_size;
	struct snapshot_fields now, next = { .mapofs = 0 };

	if (!read_snapshot(check, trace->snap, &next))
		return false;
	/* The first snapshot belongs to the first instructions, at the start of the code. */
	if (next.mapofs != 0 || next.ref <= REF_BIAS || next.mcofs != 0)
		return check_fail(check, "the first SnapShot is not at the start of the trace");
	for (uint64_t i = 0; i < trace->nsnap && i < SNAPSHOTS_MAX; i++) {
		now = next;
		if (i + 1 < trace->nsnap && !read_snapshot(check, trace->snap + (i + 1) * size, &next))
			return false;
		if (i + 1 == trace->nsnap)
			next = (struct snapshot_fields){
				.mapofs = trace->nsnapmap,
				.ref = trace->nins,
			};
		if (next.ref < now.ref)
			return check_fail(check, "SnapShot.ref runs backwards");
		/*
		 * In a snapshot that no guard uses, mcofs is the end of the code before LuaJIT
		 * shortened the trace's tail (lj_asm.c: asm_snap_fixup_mcofs, asm_tail_fixup).
		 */
		if (now.mcofs > trace->szmcode + TAIL_BYTES_MAX)
			return check_fail(check, "SnapShot.mcofs is beyond the machine code");
		if (now.nslots > SLOTS_MAX || now.topslot > SLOTS_MAX)
			return check_fail(check, "SnapShot.nslots or SnapShot.topslot is beyond belief");
		if (!check_map(check, trace, &now, next.mapofs))
			return false;
		trace->last_mcofs = now.mcofs;
	}
	return true;
}

static bool check_machine_code(struct check *check, const struct trace *trace)
{
	uint64_t spadjust, topslot, byte;

	if (!CHECK_FIELD(check, trace->at, GCtrace_spadjust, 2, &spadjust) ||
	    !CHECK_FIELD(check, trace->at, GCtrace_topslot, 1, &topslot))
		return false;
	if (spadjust % SPADJUST_UNIT != 0 || spadjust > SPADJUST_MAX)
		return check_fail(check, "GCtrace.spadjust is beyond belief");
	if (topslot > SLOTS_MAX)
		return check_fail(check, "GCtrace.topslot is beyond belief");
	if (trace->szmcode == 0 || trace->mcode == 0 ||
	    !field_read(check->memory, trace->mcode + trace->szmcode - 1, 1, &byte))
		return check_fail(check, "GCtrace.mcode or GCtrace.szmcode is no code");
	/* Only a trace that loops has a loop in its code. */
	if (trace->mcloop >= trace->szmcode || (trace->mcloop != 0 && trace->linktype < LINK_LOOP))
		return check_fail(check, "GCtrace.mcloop is not in the trace");
	return true;
}

static bool check_link(struct check *check, const struct trace *trace, const struct trace_array *traces)
{
	if (trace->linktype == 0 || trace->linktype > LINK_MAX || trace->link >= traces->size)
		return check_fail(check, "GCtrace.link or GCtrace.linktype is beyond belief");
	if ((trace->linktype == LINK_LOOP || trace->linktype == LINK_TAILREC) && trace->link != trace->number)
		return check_fail(check, "GCtrace.link: a loop does not lead to itself");
	if (trace->linktype == LINK_ROOT && trace->link == 0)
		return check_fail(check, "GCtrace.link leads nowhere");
	return true;
}

/* Trace stitching continues after a call that LuaJIT cannot compile. */
static bool is_stitched(enum bytecode_op startins)
{
	return startins == BC_CALL || startins == BC_CALLM || startins == BC_ITERC;
}

/*
 * startins is the instruction that the trace replaced. For a side trace it is
 * a JMP, for a stitched one the call that it continues after. A root trace puts
 * the instruction's J form with its own number there (lj_trace.c, trace_stop()).
 */
static bool check_startins(struct check *check, const struct trace *trace)
{
	static const struct {
		enum bytecode_op installed, first, last; /* first to last: the originals */
	} forms[] = {
		{ BC_JFORL, BC_FORL, BC_FORL },    { BC_JITERL, BC_ITERL, BC_ITERL },
		{ BC_JFUNCF, BC_FUNCF, BC_FUNCF }, { BC_JLOOP, BC_LOOP, BC_LOOP },
		{ BC_JLOOP, BC_RET, BC_RET1 },     { BC_JLOOP, BC_ITERN, BC_ITERN },
	};
	enum bytecode_op original, now;
	uint64_t startins, installed;
	bool fits = false, replaced = false;

	if (!CHECK_FIELD(check, trace->at, GCtrace_startins, INSTRUCTION_BYTES, &startins) ||
	    !field_read(check->memory, trace->startpc, INSTRUCTION_BYTES, &installed))
		return check_fail(check, "GCtrace.startpc cannot be read");
	original = bytecode_op(check->layout, (uint8_t)startins);
	now = bytecode_op(check->layout, (uint8_t)installed);
	if (trace->root != 0)
		return original == BC_JMP ? true
					  : check_fail(check, "GCtrace.startins of a side trace is no JMP");
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		replaced |= now == forms[i].installed && bytecode_d((uint32_t)installed) == trace->number;
		fits |= now == forms[i].installed && original >= forms[i].first && original <= forms[i].last;
	}
	/* Stitched traces are never installed; flushed ones no longer are. */
	return fits || !replaced || is_stitched(original)
		       ? true
		       : check_fail(check, "GCtrace.startins is not what the trace was installed over");
}

static bool check_start(struct check *check, const struct trace *trace)
{
	uint64_t sizebc, bytecode;

	if (!check_type(check, trace->startpt, GCT_PROTO, "GCtrace.startpt") ||
	    !CHECK_FIELD(check, trace->startpt, GCproto_sizebc, 4, &sizebc))
		return false;
	bytecode = trace->startpt + (uint64_t)check->layout->GCproto_size;
	if (trace->root == 0 &&
	    (trace->startpc < bytecode || trace->startpc >= bytecode + sizebc * INSTRUCTION_BYTES ||
	     trace->startpc % INSTRUCTION_BYTES != 0))
		return check_fail(check, "GCtrace.startpc is not in the prototype it starts in");
	return check_startins(check, trace);
}

static bool check_side_trace(struct check *check, const struct trace *trace, uint64_t next,
			     const struct trace_array *traces)
{
	uint64_t root, roots_root;

	if (trace->root == trace->number || !trace_at(check, traces, trace->root, &root) ||
	    !CHECK_FIELD(check, root, GCtrace_root, 2, &roots_root) || roots_root != 0)
		return check_fail(check, "GCtrace.root is no root trace");
	return next < traces->size ? true : check_fail(check, "GCtrace.nextside is no trace");
}

/* A root trace chains its side traces. */
static bool check_family(struct check *check, const struct trace *trace, const struct trace_array *traces)
{
	uint64_t children, side, next, other, root, count = 0;

	if (!CHECK_FIELD(check, trace->at, GCtrace_nchild, 2, &children) ||
	    !CHECK_FIELD(check, trace->at, GCtrace_nextside, 2, &side) ||
	    !CHECK_FIELD(check, trace->at, GCtrace_nextroot, 2, &next))
		return false;
	if (trace->root != 0)
		return check_side_trace(check, trace, side, traces);
	if (next >= traces->size)
		return check_fail(check, "GCtrace.nextroot is no trace");
	for (; side != 0 && count <= traces->size; count++) {
		if (!trace_at(check, traces, side, &other) ||
		    !CHECK_FIELD(check, other, GCtrace_root, 2, &root) ||
		    !CHECK_FIELD(check, other, GCtrace_nextside, 2, &side))
			return check_fail(check, "GCtrace.nextside leads to no trace");
		if (root != trace->number)
			return check_fail(check, "GCtrace.nextside leads to another root's");
	}
	if (count != children)
		return check_fail(check, "GCtrace.nchild is %u, with %u side traces", (unsigned)children,
				  (unsigned)count);
	return true;
}

/*
 * A prototype chains the root traces installed in it. Stitched traces, which
 * continue after a call, are not installed. Neither are flushed traces: LuaJIT
 * flushes those that only return.
 */
static bool check_proto_trace(struct check *check, const struct trace *trace,
			      const struct trace_array *traces)
{
	uint64_t number, other, proto, startins, installed, steps;

	if (trace->root != 0)
		return true;
	if (!CHECK_FIELD(check, trace->at, GCtrace_startins, INSTRUCTION_BYTES, &startins) ||
	    !CHECK_FIELD(check, trace->startpt, GCproto_trace, 2, &number) ||
	    !field_read(check->memory, trace->startpc, INSTRUCTION_BYTES, &installed))
		return check_fail(check, "GCtrace.startpc cannot be read");
	if (is_stitched(bytecode_op(check->layout, (uint8_t)startins)) || startins == installed ||
	    bytecode_d((uint32_t)installed) != trace->number)
		return true;
	for (steps = 0; number != trace->number && steps < traces->size; steps++) {
		if (!trace_at(check, traces, number, &other) ||
		    !CHECK_FIELD(check, other, GCtrace_startpt, 0, &proto) || proto != trace->startpt ||
		    !CHECK_FIELD(check, other, GCtrace_nextroot, 2, &number))
			return check_fail(check, "GCproto.trace and GCtrace.nextroot do not lead to a trace");
	}
	return number == trace->number
		       ? true
		       : check_fail(check, "GCproto.trace and GCtrace.nextroot go round in circles");
}

static bool check_trace(struct check *check, uint64_t at, uint64_t number, const struct trace_array *traces,
			struct trace *ret)
{
	struct trace trace = { .at = 0 };
	uint64_t own;

	if (!check_type(check, at, GCT_TRACE, "J.trace") || !CHECK_FIELD(check, at, GCtrace_traceno, 2, &own))
		return false;
	if (own != number)
		return check_fail(check, "GCtrace.traceno is %u in place %u", (unsigned)own,
				  (unsigned)number);
	if (!read_trace(check, at, number, &trace) || !check_block(check, &trace) ||
	    !check_snapshots(check, &trace) || !check_machine_code(check, &trace) ||
	    !check_link(check, &trace, traces) || !check_start(check, &trace))
		return false;
	check->checked++;
	*ret = trace;
	return true;
}

/* A trace on the list of all objects is in the array at its number; an abandoned one has none. */
static bool check_numbers(struct check *check, const struct trace_array *traces)
{
	uint64_t objects[NUMBERED_SAMPLES], number, at;
	unsigned count = check_collect(check, GCT_TRACE, objects, NUMBERED_SAMPLES);

	for (unsigned i = 0; i < count; i++) {
		if (!CHECK_FIELD(check, objects[i], GCtrace_traceno, 2, &number))
			return false;
		if (number != 0 && (!trace_at(check, traces, number, &at) || at != objects[i]))
			return check_fail(check, "J.trace does not hold trace %u", (unsigned)number);
	}
	return check->failure[0] == '\0';
}

bool selftest_traces(struct check *check)
{
	struct trace_array traces;
	uint64_t cur = check->g + (uint64_t)check->layout->GG_J;
	uint64_t at, snapshots = 0, code = 0;
	struct trace trace = { .at = 0 };
	unsigned related = 0, unrelated = 0;
	char failure[sizeof(check->failure)];

	if (!read_trace_array(check, &traces) || !check_numbers(check, &traces))
		return false;
	for (uint64_t number = 1; number < traces.size && check->checked < SAMPLES; number++) {
		/* While LuaJIT records a trace, J->cur holds its place. */
		if (!trace_at(check, &traces, number, &at) || at == cur)
			continue;
		if (!check_trace(check, at, number, &traces, &trace))
			return false;
		if (check_family(check, &trace, &traces) && check_proto_trace(check, &trace, &traces)) {
			related++;
		} else {
			if (unrelated++ == 0)
				memcpy(failure, check->failure, sizeof(failure));
			check->failure[0] = '\0';
		}
		snapshots += trace.nsnap - 1;
		code += trace.last_mcofs;
	}
	/*
	 * Traces that were flushed one by one or abandoned are not linked like the
	 * others. A wrong offset makes most traces look like that.
	 */
	if (unrelated > related)
		return check_fail(check, "%s", failure);
	if (check->layout->SnapShot_mcofs != LAYOUT_ABSENT && snapshots > SNAPSHOTS_SOME && code == 0)
		return check_fail(check, "SnapShot.mcofs is 0 in all snapshots");
	return true;
}

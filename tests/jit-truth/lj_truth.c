/* SPDX-License-Identifier: MIT */
/* See lj_truth.h. Part of lj_trace.c, for its headers. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "lj_truth.h"

/* The last place is for where the trace leads to. */
enum { TRUTH_FRAMES = 64, TRUTH_REFS = 65536 + 1, TRUTH_TAIL = 65536 };

static struct {
	uint32_t firstline, line;
} truth_frames[TRUTH_REFS][TRUTH_FRAMES];
static uint8_t truth_frame_count[TRUTH_REFS];
static const uint8_t *truth_code[TRUTH_REFS];
static const uint8_t *truth_tail_code;
static uint32_t truth_copied; /* the instruction that LOOP copies at present; 0 if none */
static const BCIns *truth_pc; /* being recorded; J->pc may already be where it leads to */
static struct {
	GCproto *pt;
	const BCIns *pc;
} truth_lua; /* the last one in a Lua function */
static FILE *truth_file;

static void truth_add(uint32_t ref, GCproto *pt, const BCIns *pc)
{
	uint8_t n = truth_frame_count[ref];

	if (n == TRUTH_FRAMES || pc < proto_bc(pt) || pc >= proto_bc(pt) + pt->sizebc)
		return;
	truth_frames[ref][n].firstline = (uint32_t)pt->firstline;
	truth_frames[ref][n].line = (uint32_t)lj_debug_line(pt, (BCPos)(pc - proto_bc(pt)));
	truth_frame_count[ref] = (uint8_t)(n + 1);
}

/* The frames that the recorder has inlined (snapshot_framelinks() in lj_snap.c). */
static void truth_add_frames(jit_State *J, uint32_t ref)
{
	cTValue *frame = J->L->base - 1;
	cTValue *lim = J->L->base - J->baseslot + LJ_FR2;

	if (J->pt)
		truth_add(ref, J->pt, truth_pc ? truth_pc : J->pc);
	while (frame > lim) {
		const BCIns *pc = NULL;

		if (frame_islua(frame)) {
			pc = frame_pc(frame) - 1;
			frame = frame_prevl(frame);
		} else if (frame_iscont(frame)) {
			pc = frame_contpc(frame) - 1;
			frame = frame_prevd(frame);
		} else {
			frame = frame_prevd(frame);
		}
		if (pc && isluafunc(frame_func(frame)))
			truth_add(ref, funcproto(frame_func(frame)), pc);
	}
	/* A builtin that was called by a tail call runs in no Lua function's frame. */
	if (truth_frame_count[ref] == 0 && truth_lua.pt)
		truth_add(ref, truth_lua.pt, truth_lua.pc);
}

void lj_truth_recorded(jit_State *J, uint32_t ref)
{
	truth_frame_count[ref] = 0;
	if (ref == REF_BASE) {
		truth_pc = NULL;
		truth_lua.pt = NULL;
		truth_tail_code = NULL;
		truth_copied = 0;
	}
	if (truth_copied) {
		truth_frame_count[ref] = truth_frame_count[truth_copied];
		memcpy(truth_frames[ref], truth_frames[truth_copied], sizeof(truth_frames[ref]));
	} else if (truth_pc) {
		truth_add_frames(J, ref);
	}
}

void lj_truth_recording(jit_State *J)
{
	bool is_first = !truth_pc;
	uint32_t ref;

	truth_pc = J->pc;
	if (J->pt) {
		truth_lua.pt = J->pt;
		truth_lua.pc = J->pc;
	}
	truth_frame_count[TRUTH_TAIL] = 0;
	truth_add_frames(J, TRUTH_TAIL);
	/* What was set up before the first bytecode belongs to it. */
	for (ref = REF_BASE; is_first && ref < J->cur.nins; ref++)
		truth_add_frames(J, ref);
}

void lj_truth_copying(uint32_t ref)
{
	truth_copied = ref;
}

/* Traces are assembled backwards: the last call for an instruction says where its code begins. */
void lj_truth_assembled(uint32_t ref, const uint8_t *code)
{
	truth_code[ref] = code;
}

void lj_truth_tail(const uint8_t *code)
{
	truth_tail_code = code;
}

static void truth_print(const uint8_t *base, const uint8_t *code, uint32_t ref)
{
	uint8_t i;

	fprintf(truth_file, "C %x %d", (unsigned)(code - base), ref == TRUTH_TAIL ? -1 : (int)ref - REF_BIAS);
	for (i = 0; i < truth_frame_count[ref]; i++)
		fprintf(truth_file, " %u:%u", truth_frames[ref][i].firstline, truth_frames[ref][i].line);
	if (i == 0)
		fprintf(truth_file, " -");
	fprintf(truth_file, "\n");
}

void lj_truth_saved(jit_State *J, GCtrace *T)
{
	const uint8_t *base = (const uint8_t *)T->mcode, *end = base + T->szmcode;
	const uint8_t *last = base;
	uint32_t ref;

	UNUSED(J);
	if (!truth_file && getenv("LUAJIT_TRUTH"))
		truth_file = fopen(getenv("LUAJIT_TRUTH"), "a");
	if (!truth_file)
		return;
	fprintf(truth_file, "T %u %lx %x %u\n", T->traceno, (unsigned long)(uintptr_t)base,
		(unsigned)T->szmcode, T->spadjust);
	/* What precedes the first instruction is the head: it belongs to the start. */
	truth_print(base, base, REF_BASE);
	for (ref = REF_BASE + 1; ref < T->nins; ref++) {
		const uint8_t *code = truth_code[ref], *next = end;
		uint32_t after;

		truth_code[ref] = NULL;
		if (code < last || code >= end)
			continue;
		for (after = ref + 1; after < T->nins; after++)
			if (truth_code[after]) {
				next = truth_code[after];
				break;
			}
		if (code == next)
			continue;
		truth_print(base, code, ref);
		last = code;
	}
	if (truth_tail_code >= last && truth_tail_code < end)
		truth_print(base, truth_tail_code, TRUTH_TAIL);
	fprintf(truth_file, "E\n");
	fflush(truth_file);
}

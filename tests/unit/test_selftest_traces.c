/* SPDX-License-Identifier: MIT */
/* Fields of the compiler and of traces that cannot be as they are: in a kept heap (test_heap_read.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "luajit-layouts/bytecode.h"
#include "tests/unit/kept_fields.h"
#include "tests/unit/kept_lies.h"
#include "unwind/lua/luajit.h"

enum {
	STATE_ACTIVE = 0x10,
	STATE_RECORDS = 0x11,
	STATE_MAX = 0x16,
	STATE_ABORTED_MAX = 6, /* lj_trace_abort() clears LJ_TRACE_ACTIVE */
	WORD = 8,
	REF_BIAS = 0x8000,
	IR_BYTES = 8,
	IR_OPCODE = 5,
	REF_NIL = REF_BIAS - 1,
	REF_TRUE = REF_BIAS - 3, /* constants begin here, or before */
	SNAP_ENTRY = 4,
	SNAP_FRAME = 0x10000,
	SLOT_SHIFT = 24,
	CODE_BEHIND_MAX = 64, /* the end of the code, before LuaJIT made its tail shorter */
	LINK_ROOT = 1,
	LINK_LOOP,
	LINK_TAILREC,
	LINK_UPREC,
	LINK_STITCH = 9,
	COPY = 0x20000000, /* on pages of which nothing is kept */
	FURTHER = 0x10000,
	PLACES = 4,
};

static void what_is_kept_passes(void **state)
{
	(void)state;
	kept_passes(SELFTEST_JIT);
	kept_passes(SELFTEST_TRACES);
}

static void each_field_of_the_compiler_that_lies_is_found_out(void **state)
{
	static const struct lie lies[] = {
		SET("J.sizetrace", OF_J, J_sizetrace, 4, (1 << 16) + 1),
		SET("J.sizetrace", OF_J, J_sizetrace, 4, 0),
		SET("J.trace", OF_J, J_trace, 8, 8),
		SET("J.state", OF_J, J_state, 4, STATE_ABORTED_MAX + 1),
		SET("J.state", OF_J, J_state, 4, STATE_MAX + 1),
		SET("J.state", OF_J, J_state, 4, 2 * STATE_ACTIVE),
		SET("J.parent", OF_J, J_parent, 4, 1 << 16),
		SET("J.parent or J.exitno", OF_J, J_exitno, 4, 1 << 16),
		LIE("J.szmcarea", OF_J, J_szmcarea, 8, 1),
		SET("J.szmcarea", OF_J, J_szmcarea, 8, 0),
		LIE("J.mcarea", OF_J, J_szmcarea, 8, 4096),
		LIE("J.mcarea", OF_J, J_mcarea, 8, 8),
		LIE("J.exitstubgroup", OF_J, J_exitstubgroup, 8, 8),
	};

	(void)state;
	kept_try(SELFTEST_JIT, SELFTEST_FAILED, lies, sizeof(lies) / sizeof(lies[0]));
}

static void each_field_of_a_trace_that_lies_is_found_out(void **state)
{
	static const struct lie lies[] = {
		LIE("GCtrace.nk", GCT_TRACE, GCtrace_nk, 4, 1 << 15),
		LIE("GCtrace.ir", GCT_TRACE, GCtrace_nk, 4, 1),
		LIE("GCtrace.ir", GCT_TRACE, GCtrace_ir, 8, 8),
		LIE("GCtrace.snap is not", GCT_TRACE, GCtrace_nins, 4, 1),
		LIE("GCtrace.snap is not", GCT_TRACE, GCtrace_snap, 8, 8),
		LIE("GCtrace.nk or GCtrace.nins", GCT_TRACE, GCtrace_nins, 4, 1 << 16),
		LIE("GCtrace.snapmap is not", GCT_TRACE, GCtrace_nsnap, 2, 1),
		LIE("GCtrace.snapmap is not", GCT_TRACE, GCtrace_snapmap, 8, 4),
		LIE("GCtrace.spadjust", GCT_TRACE, GCtrace_spadjust, 2, 4),
		LIE("GCtrace.spadjust", GCT_TRACE, GCtrace_spadjust, 2, 8192),
		SET("GCtrace.topslot", GCT_TRACE, GCtrace_topslot, 1, 251),
		LIE("GCtrace.mcode or GCtrace.szmcode", GCT_TRACE, GCtrace_mcode, 8, 1 << 20),
		LIE("GCtrace.mcloop", GCT_TRACE, GCtrace_mcloop, 4, 1 << 16),
		LIE("SnapShot.nent", GCT_TRACE, GCtrace_nsnapmap, 2, 1),
	};

	(void)state;
	kept_try(SELFTEST_TRACES, SELFTEST_FAILED, lies, sizeof(lies) / sizeof(lies[0]));
}

/* The last number of each that can be, and what there may be none of. */
static void what_can_just_be_passes(void **state)
{
	static const struct lie of_compiler[] = {
		SET("", OF_J, J_state, 4, STATE_ACTIVE),      SET("", OF_J, J_parent, 4, UINT16_MAX),
		SET("", OF_J, J_exitno, 4, UINT16_MAX),       SET("", OF_J, J_mcarea, 8, 0),
		SET("", OF_J, J_sizetrace, 4, 1 << 16),       SET("", OF_J, J_state, 4, 1),
		SET("", OF_J, J_state, 4, STATE_ABORTED_MAX),
	};
	static const struct lie of_traces[] = {
		SET("", GCT_TRACE, GCtrace_topslot, 1, 250),
		SET("", GCT_TRACE, GCtrace_spadjust, 2, 4096),
	};

	(void)state;
	kept_try(SELFTEST_JIT, SELFTEST_PASSED, of_compiler, sizeof(of_compiler) / sizeof(of_compiler[0]));
	kept_try(SELFTEST_TRACES, SELFTEST_PASSED, of_traces, sizeof(of_traces) / sizeof(of_traces[0]));
}

/*---- In each kept state ----*/

static void expect(bool passes, const char *reason)
{
	kept_expect(SELFTEST_JIT, passes ? SELFTEST_PASSED : SELFTEST_FAILED, passes ? "" : reason);
}

static void put_recorder(uint32_t jit_state, uint64_t L, uint64_t proto)
{
	put_of(OF_J, layout->J_state, jit_state, 4);
	put_of(OF_J, layout->J_L, L, WORD);
	put_of(OF_J, layout->J_pt, proto, WORD);
}

static void record(void)
{
	const uint64_t main = kept_newest[OF_MAIN], proto = kept_newest[GCT_PROTO];

	/* What it recorded last may be gone. */
	put_recorder(0, WORD, WORD);
	expect(true, "");
	put_recorder(STATE_ACTIVE, WORD, WORD);
	expect(true, "");
	for (uint32_t jit_state = STATE_RECORDS; jit_state <= STATE_MAX; jit_state++) {
		put_recorder(jit_state, main, proto);
		expect(true, "");
		/* In a C function. */
		put_recorder(jit_state, main, 0);
		expect(true, "");
		put_recorder(jit_state, main, kept_newest[GCT_TABLE]);
		expect(false, "J.pt leads to an object of type");
		put_recorder(jit_state, proto, proto);
		expect(false, "J.L leads to an object of type");
	}
	put_recorder(STATE_RECORDS, kept_newest[GCT_THREAD], proto);
	expect(true, "");
	put_of(GCT_THREAD, layout->L_glref, kept_state.g + WORD, layout_ref_size(layout));
	expect(false, "J.L is no thread of this state");
}

static void what_records_has_a_thread_of_the_state(void **state)
{
	(void)state;
	in_each(record);
}

static void put_place(uint64_t number, uint64_t trace)
{
	const unsigned ref = layout_ref_size(layout);

	kept_pages_put(&kept_state, get_of(OF_J, layout->J_trace, WORD) + number * ref, trace, ref);
}

static void put_array(uint32_t free, uint32_t size)
{
	put_of(OF_J, layout->J_sizetrace - 4, free, 4);
	put_of(OF_J, layout->J_sizetrace, size, 4);
}

/* All places before the first free one are taken, but for that of number 0. */
static void fill_places(void)
{
	const uint64_t trace = kept_newest[GCT_TRACE];

	put_place(2, trace);
	put_place(3, 0);
	for (uint32_t free = 0; free <= 4; free++) {
		put_array(free, 4);
		expect(free < 4, "J.freetrace is not the first free place");
	}
	put_array(3, 3);
	expect(true, "");
	put_array(4, 3);
	expect(false, "J.sizetrace");
	put_place(1, 0);
	put_array(2, 3);
	expect(false, "J.freetrace is not the first free place");
	put_place(1, trace);
	put_place(0, trace);
	expect(false, "J.trace is no array");
}

static void traces_have_places_behind_the_first(void **state)
{
	(void)state;
	in_each(fill_places);
}

/* Exits that nothing can take are no evidence. */
static void compile_nothing(void)
{
	const uint64_t trace = kept_newest[GCT_TRACE];

	put_array(1, 2);
	kept_expect(SELFTEST_JIT, SELFTEST_PASSED, "1 sound");
	put_place(1, 0);
	kept_expect(SELFTEST_JIT, SELFTEST_UNTESTED, "none yet");
	put_place(1, kept_newest[OF_J]); /* J->cur, which is being recorded */
	kept_expect(SELFTEST_JIT, SELFTEST_UNTESTED, "none yet");
	put_place(1, trace);
	put_array(0, 1);
	kept_expect(SELFTEST_JIT, SELFTEST_UNTESTED, "none yet");
	put_array(0, 0);
	put_place(0, trace);
	kept_expect(SELFTEST_JIT, SELFTEST_UNTESTED, "none yet");
	put_place(0, 0);
	put_array(1, 2);
	kept_vm.machine = EM_AARCH64;
	kept_expect(SELFTEST_JIT, SELFTEST_UNTESTED, "none yet");
}

static void exits_are_looked_at_if_there_is_a_trace(void **state)
{
	(void)state;
	in_each(compile_nothing);
}

/* Between the area's address and its size: the top of what is free in it, and the bottom. */
static void expect_area(uint64_t top, uint64_t bottom, bool passes)
{
	put_of(OF_J, layout->J_mcarea + WORD, top, WORD);
	put_of(OF_J, layout->J_mcarea + 2 * WORD, bottom, WORD);
	expect(passes, "J.mcarea is not followed by a top and a bottom");
}

static void fill_areas(void)
{
	const uint64_t begin = get_of(OF_J, layout->J_mcarea, WORD);
	const uint64_t end = begin + get_of(OF_J, layout->J_szmcarea, WORD);

	expect_area(end, begin, true);
	expect_area(begin, begin, true);
	expect_area(end, end, true);
	expect_area(end + WORD, begin, false);
	expect_area(end, begin - WORD, false);
	expect_area(begin + WORD, begin + 2 * WORD, false);
}

static void machine_code_has_a_top_and_a_bottom(void **state)
{
	(void)state;
	in_each(fill_areas);
}

/*---- One trace ----*/

static void expect_trace(bool passes, const char *reason)
{
	kept_expect(SELFTEST_TRACES, passes ? SELFTEST_PASSED : SELFTEST_FAILED, passes ? "" : reason);
}

static uint64_t trace_word(int32_t field, unsigned size)
{
	return get_of(GCT_TRACE, field, size);
}

static void put_trace(int32_t field, uint64_t value, unsigned size)
{
	put_of(GCT_TRACE, field, value, size);
}

static void change_opcodes(void)
{
	const int32_t number = layout->IR_KGC;

	kept_vm.layout.IR_KGC = LAYOUT_UNKNOWN;
	expect_trace(false, "IR.KGC is not known");
	kept_vm.layout.IR_KGC = 0;
	expect_trace(false, "IR.KGC: the constant nil");
	kept_vm.layout.IR_KGC = number + 1;
	expect_trace(false, "IR.KGC: the constant nil");
	kept_vm.layout.IR_KGC = number;
	expect_trace(true, "");
}

static void the_number_of_an_opcode_is_told_by_the_constant_nil(void **state)
{
	(void)state;
	in_each(change_opcodes);
}

/* The IR has other references, with nil where it is then. */
static void number_ir_from(uint64_t nk)
{
	const uint64_t size = ((uint64_t)layout->GCtrace_size + 7) / 8 * 8;
	const uint64_t more = nk - trace_word(layout->GCtrace_nk, 4);
	const uint64_t ir = kept_newest[GCT_TRACE] + size - nk * IR_BYTES;

	put_trace(layout->GCtrace_nk, nk, 4);
	put_trace(layout->GCtrace_nins, trace_word(layout->GCtrace_nins, 4) + more, 4);
	put_trace(layout->GCtrace_ir, ir, WORD);
	kept_pages_put(&kept_state, ir + REF_NIL * IR_BYTES + IR_OPCODE, (uint64_t)layout->IR_KGC - 2, 1);
}

static int32_t mapofs_size(void)
{
	return layout->SnapShot_ref - layout->SnapShot_mapofs == 2 ? 2 : 4;
}

static uint64_t snapshot_at(uint64_t number)
{
	return trace_word(layout->GCtrace_snap, WORD) + number * (uint64_t)layout->SnapShot_size;
}

static uint64_t snapshot_word(uint64_t number, int32_t field, unsigned size)
{
	return kept_number(snapshot_at(number) + (uint64_t)field, size);
}

static void put_snapshot(uint64_t number, int32_t field, uint64_t value, unsigned size)
{
	kept_pages_put(&kept_state, snapshot_at(number) + (uint64_t)field, value, size);
}

static void number_ir(void)
{
	number_ir_from(REF_TRUE);
	expect_trace(true, "");
	number_ir_from(REF_TRUE + 1);
	expect_trace(false, "GCtrace.nk or GCtrace.nins");
	/* As few instructions as there can be. */
	for (uint64_t i = 0; i < trace_word(layout->GCtrace_nsnap, 2); i++)
		put_snapshot(i, layout->SnapShot_ref, REF_BIAS + 1, 2);
	number_ir_from(trace_word(layout->GCtrace_nk, 4) + REF_BIAS + 1 -
		       trace_word(layout->GCtrace_nins, 4));
	expect_trace(true, "");
	number_ir_from(trace_word(layout->GCtrace_nk, 4) - 1);
	expect_trace(false, "GCtrace.nk or GCtrace.nins");
}

static void ir_has_constants_before_the_bias_and_instructions_behind(void **state)
{
	(void)state;
	in_each(number_ir);
}

static void change_first_snapshots(void)
{
	const uint64_t ref = snapshot_word(0, layout->SnapShot_ref, 2),
		       next_ref = snapshot_word(1, layout->SnapShot_ref, 2),
		       szmcode = trace_word(layout->GCtrace_szmcode, 4);

	assert_in_range(trace_word(layout->GCtrace_nsnap, 2), 2, 100);
	put_snapshot(0, layout->SnapShot_mapofs, 1, (unsigned)mapofs_size());
	expect_trace(false, "the first SnapShot");
	put_snapshot(0, layout->SnapShot_mapofs, 0, (unsigned)mapofs_size());
	put_snapshot(0, layout->SnapShot_ref, REF_BIAS, 2);
	expect_trace(false, "the first SnapShot");
	put_snapshot(0, layout->SnapShot_ref, REF_BIAS + 1, 2);
	expect_trace(true, "");
	put_snapshot(0, layout->SnapShot_ref, next_ref, 2);
	expect_trace(true, "");
	put_snapshot(0, layout->SnapShot_ref, next_ref + 1, 2);
	expect_trace(false, "SnapShot.ref runs backwards");
	put_snapshot(0, layout->SnapShot_ref, ref, 2);
	if (layout->SnapShot_mcofs == LAYOUT_ABSENT)
		return;
	put_snapshot(0, layout->SnapShot_mcofs, 1, 2);
	expect_trace(false, "the first SnapShot");
	put_snapshot(0, layout->SnapShot_mcofs, 0, 2);
	put_snapshot(1, layout->SnapShot_mcofs, szmcode + CODE_BEHIND_MAX, 2);
	expect_trace(true, "");
	put_snapshot(1, layout->SnapShot_mcofs, szmcode + CODE_BEHIND_MAX + 1, 2);
	expect_trace(false, "SnapShot.mcofs is beyond");
	/* Early builds have none. */
	kept_vm.layout.SnapShot_mcofs = LAYOUT_ABSENT;
	expect_trace(true, "");
}

static void snapshots_follow_the_code(void **state)
{
	(void)state;
	in_each(change_first_snapshots);
}

static void change_slots(void)
{
	const int32_t fields[] = { layout->SnapShot_nslots, layout->SnapShot_topslot };

	for (int i = 0; i < 2; i++) {
		const uint64_t before = snapshot_word(1, fields[i], 1);

		put_snapshot(1, fields[i], 250, 1);
		expect_trace(true, "");
		put_snapshot(1, fields[i], 251, 1);
		expect_trace(false, "SnapShot.nslots or SnapShot.topslot");
		put_snapshot(1, fields[i], before, 1);
	}
}

static void a_snapshot_has_no_more_slots_than_luajit_compiles(void **state)
{
	(void)state;
	in_each(change_slots);
}

/* A snapshot with two entries at least. */
static uint64_t snapshot_of_two(void)
{
	uint64_t number = 0;

	while (snapshot_word(number, layout->SnapShot_nent, 1) < 2)
		assert_in_range(++number, 1, trace_word(layout->GCtrace_nsnap, 2) - 1);
	return number;
}

/* The last entry's slot is the highest. */
static void change_entries(void)
{
	const uint64_t number = snapshot_of_two(), nent = snapshot_word(number, layout->SnapShot_nent, 1),
		       map = trace_word(layout->GCtrace_snapmap, WORD) +
			     snapshot_word(number, layout->SnapShot_mapofs, (unsigned)mapofs_size()) *
				     SNAP_ENTRY;
	uint64_t entry, slot;

	entry = kept_number(map + (nent - 1) * SNAP_ENTRY, SNAP_ENTRY);
	slot = entry >> SLOT_SHIFT;
	put_snapshot(number, layout->SnapShot_nslots, slot, 1);
	expect_trace(false, "SnapShot.nslots is less than a slot");
	put_snapshot(number, layout->SnapShot_nslots, slot + 1, 1);
	expect_trace(true, "");
	if (layout->gc64)
		return;
	/* Each frame but the first one has its link behind the entries: the last word is one. */
	put_snapshot(number, layout->SnapShot_nent, nent - 1, 1);
	expect_trace(false, "SnapShot.nent does not lead to the next map");
	kept_pages_put(&kept_state, map, (UINT64_C(1) << SLOT_SHIFT) | SNAP_FRAME, SNAP_ENTRY);
	expect_trace(true, "");
	kept_pages_put(&kept_state, map, SNAP_FRAME, SNAP_ENTRY);
	expect_trace(false, "SnapShot.nent does not lead to the next map");
}

static void a_map_has_entries_and_links_of_frames(void **state)
{
	(void)state;
	in_each(change_entries);
}

static void change_loop(void)
{
	const uint64_t szmcode = trace_word(layout->GCtrace_szmcode, 4);

	assert_int_equal(trace_word(layout->GCtrace_linktype, 1), LINK_LOOP);
	put_trace(layout->GCtrace_mcloop, szmcode - 1, 4);
	expect_trace(true, "");
	put_trace(layout->GCtrace_mcloop, szmcode, 4);
	expect_trace(false, "GCtrace.mcloop");
	put_trace(layout->GCtrace_mcloop, 1, 4);
	put_trace(layout->GCtrace_linktype, LINK_ROOT, 1);
	expect_trace(false, "GCtrace.mcloop");
}

static void only_what_loops_has_a_loop(void **state)
{
	(void)state;
	in_each(change_loop);
}

static void change_links(void)
{
	put_trace(layout->GCtrace_mcloop, 0, 4);
	put_place(2, 0);
	put_place(3, 0);
	put_array(2, PLACES);
	for (uint64_t type = 0; type <= LINK_STITCH + 1; type++)
		for (uint64_t link = 0; link <= PLACES; link++) {
			const bool is_loop = type == LINK_LOOP || type == LINK_TAILREC;

			put_trace(layout->GCtrace_linktype, type, 1);
			put_trace(layout->GCtrace_link, link, 2);
			if (type == 0 || type > LINK_STITCH || link == PLACES)
				expect_trace(false, "GCtrace.link or GCtrace.linktype is beyond belief");
			else if (is_loop && link != 1)
				expect_trace(false, "a loop does not lead to itself");
			else if (type == LINK_ROOT && link == 0)
				expect_trace(false, "GCtrace.link leads nowhere");
			else
				expect_trace(true, "");
		}
}

static void a_trace_leads_to_another_or_to_itself(void **state)
{
	(void)state;
	in_each(change_links);
}

/*---- Where a trace begins ----*/

static uint32_t instruction_of(enum bytecode_op op, uint32_t d)
{
	const int number = bytecode_number(layout, op);

	assert_in_range(number, 0, UINT8_MAX);
	return (uint32_t)number | d << 16;
}

static void replace_instructions(void)
{
	static const enum bytecode_op originals[] = {
		BC_FORL, BC_ITERL, BC_FUNCF, BC_LOOP, BC_RETM,  BC_RET,   BC_RET0,
		BC_RET1, BC_ITERN, BC_CALL,  BC_MOV,  BC_CALLM, BC_ITERC, BC_JMP,
	};
	static const struct {
		enum bytecode_op installed, fitting[5];
	} forms[] = {
		{ BC_JFORL, { BC_FORL, BC_FORL, BC_FORL, BC_FORL, BC_FORL } },
		{ BC_JITERL, { BC_ITERL, BC_ITERL, BC_ITERL, BC_ITERL, BC_ITERL } },
		{ BC_JFUNCF, { BC_FUNCF, BC_FUNCF, BC_FUNCF, BC_FUNCF, BC_FUNCF } },
		{ BC_JLOOP, { BC_LOOP, BC_RET, BC_RET0, BC_RET1, BC_ITERN } },
	};
	const uint64_t startpc = trace_word(layout->GCtrace_startpc, layout_ref_size(layout));

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		for (size_t j = 0; j < sizeof(originals) / sizeof(originals[0]); j++) {
			const enum bytecode_op original = originals[j];
			bool fits = original == BC_CALL || original == BC_CALLM || original == BC_ITERC;

			for (int k = 0; k < 5; k++)
				fits |= forms[i].fitting[k] == original;
			put_trace(layout->GCtrace_startins, instruction_of(original, 5), 4);
			kept_pages_put(&kept_state, startpc, instruction_of(forms[i].installed, 1), 4);
			expect_trace(fits, "GCtrace.startins is not what the trace was installed over");
			/* Another trace is there now, or none. */
			kept_pages_put(&kept_state, startpc, instruction_of(forms[i].installed, 2), 4);
			expect_trace(true, "");
			kept_pages_put(&kept_state, startpc, instruction_of(BC_MOV, 1), 4);
			expect_trace(true, "");
		}
}

static void a_trace_replaces_an_instruction_by_its_own_form(void **state)
{
	(void)state;
	in_each(replace_instructions);
}

static void move_the_beginning(void)
{
	const unsigned ref = layout_ref_size(layout);
	const uint64_t proto = trace_word(layout->GCtrace_startpt, ref),
		       bytecode = proto + (uint64_t)layout->GCproto_size,
		       end = bytecode + kept_number(proto + (uint64_t)layout->GCproto_sizebc, 4) * 4;
	const struct {
		uint64_t startpc;
		bool passes;
	} places[] = {
		{ bytecode - 4, false }, { bytecode, true }, { bytecode + 1, false },
		{ bytecode + 2, false }, { end - 4, true },  { end, false },
	};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		put_trace(layout->GCtrace_startpc, places[i].startpc, ref);
		expect_trace(places[i].passes, "GCtrace.startpc is not in the prototype");
	}
}

static void a_trace_begins_in_its_prototype(void **state)
{
	(void)state;
	in_each(move_the_beginning);
}

/*---- Several traces ----*/

/* Another trace: the same, with another number. */
static void copy_trace_to(uint64_t to, uint64_t number)
{
	const uint64_t from = kept_newest[GCT_TRACE], distance = to - from,
		       end = trace_word(layout->GCtrace_snapmap, WORD) +
			     trace_word(layout->GCtrace_nsnapmap, 2) * SNAP_ENTRY;
	const int32_t pointers[] = { layout->GCtrace_ir, layout->GCtrace_snap, layout->GCtrace_snapmap };

	for (uint64_t at = from; at < end; at++)
		kept_pages_put(&kept_state, at + distance, kept_number(at, 1), 1);
	for (size_t i = 0; i < sizeof(pointers) / sizeof(pointers[0]); i++)
		kept_pages_put(&kept_state, to + (uint64_t)pointers[i],
			       trace_word(pointers[i], WORD) + distance, WORD);
	kept_pages_put(&kept_state, to + (uint64_t)layout->GCtrace_traceno, number, 2);
	kept_pages_put(&kept_state, to + (uint64_t)layout->GCtrace_link, number, 2);
	put_place(number, to);
}

static void copy_trace(void)
{
	copy_trace_to(COPY, 2);
	put_place(3, 0);
	put_array(3, PLACES);
}

static void put_copy(int32_t field, uint64_t value, unsigned size)
{
	kept_pages_put(&kept_state, COPY + (uint64_t)field, value, size);
}

static void change_numbers(void)
{
	copy_trace();
	kept_expect(SELFTEST_TRACES, SELFTEST_PASSED, "2 sound");
	put_copy(layout->GCtrace_traceno, 3, 2);
	expect_trace(false, "GCtrace.traceno is 3 in place 2");
	put_copy(layout->GCtrace_traceno, 2, 2);
	put_place(2, kept_newest[GCT_TABLE]);
	expect_trace(false, "J.trace leads to an object of type");
	put_place(2, COPY + 2);
	expect_trace(false, "J.trace leads nowhere");
	put_place(2, COPY);
	kept_expect(SELFTEST_TRACES, SELFTEST_PASSED, "2 sound");
	put_place(1, COPY);
	expect_trace(false, "J.trace does not hold trace 1");
	put_array(1, PLACES);
	put_place(1, 0);
	expect_trace(false, "J.trace does not hold trace 1");
	/* One that was abandoned has no number. */
	put_trace(layout->GCtrace_traceno, 0, 2);
	kept_expect(SELFTEST_TRACES, SELFTEST_PASSED, "1 sound");
	/* One that is being recorded has a place, and is no object yet. */
	put_place(2, kept_newest[OF_J]);
	kept_expect(SELFTEST_TRACES, SELFTEST_UNTESTED, "none yet");
}

/* Leave out a snapshot of the kept trace; the map follows the others. */
static void drop_last_snapshot(void)
{
	const uint64_t last = trace_word(layout->GCtrace_nsnap, 2) - 1, map = snapshot_at(last),
		       entries = snapshot_word(last, layout->SnapShot_mapofs, (unsigned)mapofs_size());

	for (uint64_t i = 0; i < entries; i++)
		kept_pages_put(
			&kept_state, map + i * SNAP_ENTRY,
			kept_number(trace_word(layout->GCtrace_snapmap, WORD) + i * SNAP_ENTRY, SNAP_ENTRY),
			SNAP_ENTRY);
	put_trace(layout->GCtrace_nsnap, last, 2);
	put_trace(layout->GCtrace_snapmap, map, WORD);
	put_trace(layout->GCtrace_nsnapmap, entries, 2);
}

static void empty_the_map(void)
{
	while (trace_word(layout->GCtrace_nsnap, 2) > 1)
		drop_last_snapshot();
	expect_trace(true, "");
	put_trace(layout->GCtrace_nsnapmap, 0, 2);
	expect_trace(false, "SnapShot.mapofs is beyond the map");
}

static void a_snapshot_is_in_the_map(void **state)
{
	(void)state;
	in_each(empty_the_map);
}

/*
 * Few snapshots may all be at the start of the code. Here are three traces with four each, of which the first
 * is there.
 */
static void forget_places_in_the_code(void)
{
	enum { COUNT = 4 };

	if (layout->SnapShot_mcofs == LAYOUT_ABSENT)
		return;
	assert_int_equal(trace_word(layout->GCtrace_nsnap, 2), COUNT);
	for (uint64_t i = 0; i < COUNT; i++)
		put_snapshot(i, layout->SnapShot_mcofs, 0, 2);
	copy_trace_to(COPY, 2);
	copy_trace_to(COPY + FURTHER, 3);
	put_array(PLACES, PLACES);
	expect_trace(false, "SnapShot.mcofs is 0 in all snapshots");
	put_snapshot(COUNT - 1, layout->SnapShot_mcofs, 1, 2);
	expect_trace(true, "");
	put_snapshot(COUNT - 1, layout->SnapShot_mcofs, 0, 2);
	drop_last_snapshot();
	expect_trace(true, "");
}

static void some_snapshot_is_behind_the_start_of_the_code(void **state)
{
	(void)state;
	in_each(forget_places_in_the_code);
}

static void spoil_either(void)
{
	copy_trace();
	kept_expect(SELFTEST_TRACES, SELFTEST_PASSED, "2 sound");
	put_copy(layout->GCtrace_topslot, UINT8_MAX, 1);
	expect_trace(false, "GCtrace.topslot");
	copy_trace();
	put_trace(layout->GCtrace_topslot, UINT8_MAX, 1);
	expect_trace(false, "GCtrace.topslot");
}

/* Here it is the copy, as if it were flushed. */
static void spoil_what_is_related_to_none(void)
{
	const struct {
		int32_t field;
		uint64_t value;
		unsigned size;
		const char *reason;
	} lies[] = {
		{ layout->GCtrace_nk, 1 << 15, 4, "GCtrace.nk" },
		{ layout->GCtrace_nsnapmap, UINT16_MAX, 2, "SnapShot.nent" },
		{ layout->GCtrace_spadjust, 1, 2, "GCtrace.spadjust" },
		{ layout->GCtrace_link, PLACES, 2, "GCtrace.link or GCtrace.linktype" },
		{ layout->GCtrace_startpt, 8, layout_ref_size(layout), "GCtrace.startpt" },
	};

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		copy_trace();
		put_copy(layout->GCtrace_nchild, 1, 2);
		kept_expect(SELFTEST_TRACES, SELFTEST_PASSED, "2 sound");
		put_copy(lies[i].field, lies[i].value, lies[i].size);
		expect_trace(false, lies[i].reason);
	}
}

static void a_trace_that_is_related_to_none_has_to_be_sound(void **state)
{
	(void)state;
	in_each(spoil_what_is_related_to_none);
}

static void one_trace_that_is_not_sound_is_enough(void **state)
{
	(void)state;
	in_each(spoil_either);
}

static void a_trace_is_in_the_place_of_its_number(void **state)
{
	(void)state;
	in_each(change_numbers);
}

static void change_roots(void)
{
	put_array(2, PLACES);
	put_place(2, 0);
	put_place(3, 0);
	put_trace(layout->GCtrace_nextroot, PLACES - 1, 2);
	expect_trace(true, "");
	put_trace(layout->GCtrace_nextroot, PLACES, 2);
	expect_trace(false, "GCtrace.nextroot is no trace");
	put_trace(layout->GCtrace_nextroot, 0, 2);
	put_trace(layout->GCtrace_nchild, 1, 2);
	expect_trace(false, "GCtrace.nchild is 1, with 0 side traces");
	put_trace(layout->GCtrace_nextside, 2, 2);
	expect_trace(false, "GCtrace.nextside leads to no trace");
	put_trace(layout->GCtrace_nextside, 1, 2);
	expect_trace(false, "GCtrace.nextside leads to another root's");
}

static void a_root_trace_chains_its_side_traces(void **state)
{
	(void)state;
	in_each(change_roots);
}

/* Half of all traces may be related to none, such as those that were flushed: here it is the root trace. */
static void change_side_traces(void)
{
	const uint64_t jmp = instruction_of(BC_JMP, 0);

	copy_trace();
	put_copy(layout->GCtrace_root, 1, 2);
	expect_trace(false, "GCtrace.startins of a side trace is no JMP");
	put_copy(layout->GCtrace_startins, jmp, 4);
	put_copy(layout->GCtrace_startpc, 0x1000, layout_ref_size(layout)); /* where an exit goes on */
	expect_trace(false, "GCtrace.startpc cannot be read");
	put_copy(layout->GCtrace_startpc, kept_newest[OF_J], layout_ref_size(layout));
	expect_trace(true, "");
	put_trace(layout->GCtrace_nchild, 1, 2);
	put_trace(layout->GCtrace_nextside, 2, 2);
	expect_trace(true, "");
	/* From here on, the side trace has to be related to its root. */
	put_trace(layout->GCtrace_nchild, 2, 2);
	expect_trace(true, "");
	put_copy(layout->GCtrace_nextside, PLACES - 1, 2);
	expect_trace(true, "");
	put_copy(layout->GCtrace_nextside, PLACES, 2);
	expect_trace(false, "GCtrace.nextside leads to no trace");
	put_copy(layout->GCtrace_nextside, 0, 2);
	for (uint64_t root = 2; root < PLACES; root++) {
		put_copy(layout->GCtrace_root, root, 2);
		expect_trace(false, "GCtrace.nextside leads to another root's");
	}
}

static void a_side_trace_has_a_root_trace(void **state)
{
	(void)state;
	in_each(change_side_traces);
}

static void change_chains(void)
{
	const uint64_t proto = trace_word(layout->GCtrace_startpt, layout_ref_size(layout)),
		       first = proto + (uint64_t)layout->GCproto_trace,
		       startpc = trace_word(layout->GCtrace_startpc, layout_ref_size(layout));
	const char *const reason = "GCproto.trace and GCtrace.nextroot";

	copy_trace();
	put_copy(layout->GCtrace_nchild, 1, 2); /* so that it counts as related to none */
	put_copy(layout->GCtrace_nextside, 1, 2);
	expect_trace(true, "");
	kept_pages_put(&kept_state, first, 0, 2);
	expect_trace(false, reason);
	kept_pages_put(&kept_state, first, 2, 2);
	put_copy(layout->GCtrace_nextroot, 1, 2);
	expect_trace(true, "");
	put_copy(layout->GCtrace_nextroot, 2, 2);
	expect_trace(false, reason);
	put_copy(layout->GCtrace_nextroot, 0, 2);
	expect_trace(false, reason);
	/* A trace that is not installed is on no chain. */
	kept_pages_put(&kept_state, startpc, trace_word(layout->GCtrace_startins, 4), 4);
	expect_trace(true, "");
	kept_pages_put(&kept_state, startpc, instruction_of(BC_JFORL, 2), 4);
	put_copy(layout->GCtrace_startins, trace_word(layout->GCtrace_startins, 4), 4);
	expect_trace(true, "");
	kept_pages_put(&kept_state, startpc, instruction_of(BC_JFORL, 1), 4);
	expect_trace(false, reason);
	put_trace(layout->GCtrace_startins, instruction_of(BC_CALL, 0), 4);
	expect_trace(true, "");
}

static void a_prototype_chains_its_root_traces(void **state)
{
	(void)state;
	in_each(change_chains);
}

static void a_field_of_no_known_offset_fails(void **state)
{
	static const struct field_name fields[] = {
		FIELD(GCtrace_ir),       FIELD(GCtrace_link),     FIELD(GCtrace_linktype),
		FIELD(GCtrace_mcloop),   FIELD(GCtrace_mcode),    FIELD(GCtrace_nchild),
		FIELD(GCtrace_nextroot), FIELD(GCtrace_nextside), FIELD(GCtrace_nins),
		FIELD(GCtrace_nk),       FIELD(GCtrace_nsnap),    FIELD(GCtrace_nsnapmap),
		FIELD(GCtrace_root),     FIELD(GCtrace_snap),     FIELD(GCtrace_snapmap),
		FIELD(GCtrace_spadjust), FIELD(GCtrace_startins), FIELD(GCtrace_startpc),
		FIELD(GCtrace_startpt),  FIELD(GCtrace_szmcode),  FIELD(GCtrace_topslot),
		FIELD(GCtrace_traceno),  FIELD(SnapShot_mapofs),  FIELD(SnapShot_mcofs),
		FIELD(SnapShot_nent),    FIELD(SnapShot_nslots),  FIELD(SnapShot_ref),
		FIELD(SnapShot_topslot),
	};

	(void)state;
	kept_try_unknown(SELFTEST_TRACES, fields, sizeof(fields) / sizeof(fields[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_field_of_no_known_offset_fails),
		cmocka_unit_test(what_is_kept_passes),
		cmocka_unit_test(each_field_of_the_compiler_that_lies_is_found_out),
		cmocka_unit_test(each_field_of_a_trace_that_lies_is_found_out),
		cmocka_unit_test(what_can_just_be_passes),
		cmocka_unit_test(what_records_has_a_thread_of_the_state),
		cmocka_unit_test(traces_have_places_behind_the_first),
		cmocka_unit_test(exits_are_looked_at_if_there_is_a_trace),
		cmocka_unit_test(machine_code_has_a_top_and_a_bottom),
		cmocka_unit_test(the_number_of_an_opcode_is_told_by_the_constant_nil),
		cmocka_unit_test(ir_has_constants_before_the_bias_and_instructions_behind),
		cmocka_unit_test(snapshots_follow_the_code),
		cmocka_unit_test(a_snapshot_has_no_more_slots_than_luajit_compiles),
		cmocka_unit_test(a_map_has_entries_and_links_of_frames),
		cmocka_unit_test(only_what_loops_has_a_loop),
		cmocka_unit_test(a_trace_leads_to_another_or_to_itself),
		cmocka_unit_test(a_trace_replaces_an_instruction_by_its_own_form),
		cmocka_unit_test(a_trace_begins_in_its_prototype),
		cmocka_unit_test(one_trace_that_is_not_sound_is_enough),
		cmocka_unit_test(a_snapshot_is_in_the_map),
		cmocka_unit_test(some_snapshot_is_behind_the_start_of_the_code),
		cmocka_unit_test(a_trace_that_is_related_to_none_has_to_be_sound),
		cmocka_unit_test(a_trace_is_in_the_place_of_its_number),
		cmocka_unit_test(a_root_trace_chains_its_side_traces),
		cmocka_unit_test(a_side_trace_has_a_root_trace),
		cmocka_unit_test(a_prototype_chains_its_root_traces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

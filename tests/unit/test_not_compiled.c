/* SPDX-License-Identifier: MIT */
/* What LuaJIT notes of recordings that failed, and where it therefore begins no trace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "luajit-layouts/bytecode.h"
#include "luajit-layouts/field.h"
#include "tests/unit/made_up_memory.h"
#include "unwind/compiled/not_compiled.h"
#include "unwind/compiled/trace_aborts.h"
#include "unwind/compiled/trace_list.h"
#include "unwind/lua/luajit.h"

enum {
	G = MADE_UP_AT,
	J = G + 0x100,
	GROUPS = J + 0x200,      /* exitstubgroup */
	SLOTS = GROUPS + 16 * 8, /* penalty */
	PROTO = MADE_UP_AT + 0x1000,
	TRACES = MADE_UP_AT + 0x2000, /* J->trace */
	TRACE = MADE_UP_AT + 0x3000,  /* and more of them, each TRACE_SIZE further */
	TRACE_SIZE = 0x100,
	IR = MADE_UP_AT + 0x3800,
	BIAS = 0x8000,
	INSTRUCTIONS = 12,
	NOJIT = 0x08,
	ILOOP = 0x10,
};

static struct vm_code vm;
static struct layout *const layout = &vm.layout;
static const struct global_state global = { .g = G, .vm = &vm };
static struct memory *memory;
static struct trace_aborts aborts;

static int begin(void **state)
{
	(void)state;
	memory = made_up_memory_begin();
	vm.layout = (struct layout){
		.gc64 = true,
		.bytecode = BYTECODE_V21,
		.GG_J = J - G,
		.J_exitstubgroup = GROUPS - J,
		.J_trace = 0x10,
		.J_sizetrace = 0x18,
		.J_szmcarea = 0x20,
		.GChead_gct = 9,
		.GCproto_flags = 8,
		.GCproto_sizebc = 12,
		.GCproto_size = 32,
		.GCtrace_nins = 12,
		.GCtrace_nk = 16,
		.GCtrace_ir = 24,
		.GCtrace_startins = 32,
		.GCtrace_szmcode = 36,
		.GCtrace_mcode = 40,
		.GCtrace_traceno = 48,
		.GCtrace_link = 50,
		.GCtrace_root = 52,
		.GCtrace_nsnap = 54,
		.GCtrace_linktype = 56,
		.GCtrace_startpt = 64,
		.GCtrace_startpc = 72,
		.GCtrace_size = 80,
	};
	aborts = (struct trace_aborts){ .count = 0 };
	return 0;
}

/*---- Notes of failures ----*/

static void put_abort(unsigned slot, uint64_t pc, unsigned penalty, unsigned reason)
{
	const uint64_t size = layout->gc64 ? 16 : 8, ref = layout->gc64 ? 8 : 4;

	put(SLOTS + slot * size, pc, ref);
	put(SLOTS + slot * size + ref, penalty, 2);
	put(SLOTS + slot * size + ref + 2, reason, 2);
}

static void check_abort(uint64_t pc, unsigned times, const char *reason)
{
	const struct trace_abort *abort = trace_aborts_find(&aborts, pc);

	assert_non_null(abort);
	assert_int_equal(abort->times, times);
	assert_string_equal(abort->reason ? abort->reason : "unknown", reason);
}

static void each_failure_doubles_the_penalty(void **state)
{
	(void)state;
	put_abort(0, 0x100, 72, 0);
	put_abort(1, 0x200, 72 + 15, 2);
	put_abort(7, 0x300, 2 * 72, 1);
	put_abort(63, 0x400, 16 * 72 + 100, 7);
	assert_true(trace_aborts_read(memory, &global, &aborts));
	assert_int_equal(aborts.count, 4);
	check_abort(0x100, 1, "error thrown or hook called during recording");
	check_abort(0x200, 1, "trace too long");
	check_abort(0x300, 2, "trace too short");
	check_abort(0x400, 5, "NYI: bytecode");
	assert_null(trace_aborts_find(&aborts, 0x500));
}

static void reasons_have_the_numbers_of_their_release(void **state)
{
	(void)state;
	layout->bytecode = BYTECODE_V20;
	put_abort(0, 0x100, 72, 1);
	put_abort(1, 0x200, 72, 1000);
	assert_true(trace_aborts_read(memory, &global, &aborts));
	check_abort(0x100, 1, "trace too long"); /* 2.0 has no "trace too short" */
	check_abort(0x200, 1, "unknown");
	/* A 2.1 from before August 2015 has other numbers, and no padding before exitstubgroup. */
	layout->bytecode = BYTECODE_V21;
	put(GROUPS - 4, 7, 4);
	assert_true(trace_aborts_read(memory, &global, &aborts));
	check_abort(0x100, 1, "unknown");
}

static void slots_of_32_bits(void **state)
{
	(void)state;
	layout->gc64 = false;
	put_abort(0, 0x100, 72, 0);
	put_abort(63, 0x400, 4 * 72, 3);
	assert_true(trace_aborts_read(memory, &global, &aborts));
	assert_int_equal(aborts.count, 2);
	check_abort(0x400, 3, "trace too deep");
}

static void what_makes_no_sense_is_not_believed(void **state)
{
	(void)state;
	put_abort(0, 0x100, 71, 0); /* the least penalty is 72 */
	assert_false(trace_aborts_read(memory, &global, &aborts));
	put_abort(0, 0x100, 72, 0);
	assert_true(trace_aborts_read(memory, &global, &aborts));
	put(SLOTS + 64 * 16, 63, 4); /* penaltyslot */
	assert_true(trace_aborts_read(memory, &global, &aborts));
	put(SLOTS + 64 * 16, 64, 4);
	assert_false(trace_aborts_read(memory, &global, &aborts));
}

/*---- Places ----*/

static const struct proto proto = {
	.address = PROTO,
	.bc = PROTO + 32,
	.size = 32 + INSTRUCTIONS * BYTECODE_SIZE,
	.sizebc = INSTRUCTIONS,
};

static uint64_t pc_of(unsigned index)
{
	return proto.bc + index * BYTECODE_SIZE;
}

/* The prototype that the test's memory holds, with this code. */
static struct proto put_proto(const enum bytecode_op *ops, unsigned count)
{
	struct proto made = proto;

	for (unsigned i = 0; i < INSTRUCTIONS; i++)
		put(pc_of(i), (uint64_t)bytecode_number(layout, i < count ? ops[i] : BC_MOV), BYTECODE_SIZE);
	made.bytes = made_up_memory.bytes + (PROTO - MADE_UP_AT);
	put(PROTO + (uint64_t)layout->GCproto_sizebc, INSTRUCTIONS, 4);
	return made;
}

static void put_aborted(unsigned index, unsigned times, const char *reason)
{
	aborts.at[aborts.count++] = (struct trace_abort){ .pc = pc_of(index),
							  .times = times,
							  .reason = reason };
}

static enum not_compiled_glance glance(void)
{
	static const uint64_t protos[] = { PROTO };
	enum not_compiled_glance glance;

	not_compiled_glance(memory, layout, &aborts, protos, 1, &glance);
	return glance;
}

static void a_glance_tells_which_functions_matter(void **state)
{
	(void)state;
	put_proto(NULL, 0);
	assert_int_equal(glance(), NOT_COMPILED_NOWHERE);
	put_aborted(INSTRUCTIONS, 1, NULL); /* just behind its code */
	assert_int_equal(glance(), NOT_COMPILED_NOWHERE);
	put_aborted(INSTRUCTIONS - 1, 1, NULL);
	assert_int_equal(glance(), NOT_COMPILED_SOMEWHERE);
	aborts.count = 0;
	put(PROTO + (uint64_t)layout->GCproto_flags, ILOOP, 1);
	assert_int_equal(glance(), NOT_COMPILED_SOMEWHERE);
	put(PROTO + (uint64_t)layout->GCproto_flags, ILOOP | NOJIT, 1);
	assert_int_equal(glance(), NOT_COMPILED_EVERYWHERE);
}

static void unreadable_functions_are_in_no_glance(void **state)
{
	static const uint64_t protos[] = { PROTO, MADE_UP_AT + MADE_UP_BYTES, PROTO };
	enum not_compiled_glance glances[3];

	(void)state;
	put_proto(NULL, 0);
	put(PROTO + (uint64_t)layout->GCproto_flags, NOJIT, 1);
	not_compiled_glance(memory, layout, &aborts, protos, 3, glances);
	assert_int_equal(glances[0], NOT_COMPILED_EVERYWHERE);
	assert_int_equal(glances[1], NOT_COMPILED_NOWHERE);
	assert_int_equal(glances[2], NOT_COMPILED_EVERYWHERE);
}

static void each_of_many_functions_has_its_own_glance(void **state)
{
	enum { MANY = 600 };
	static uint64_t protos[MANY];
	static enum not_compiled_glance glances[MANY];

	(void)state;
	put_proto(NULL, 0);
	put(PROTO + (uint64_t)layout->GCproto_flags, NOJIT, 1);
	for (size_t i = 0; i < MANY; i++)
		protos[i] = i % 7 == 3 ? PROTO : MADE_UP_AT; /* which has no flags */
	not_compiled_glance(memory, layout, &aborts, protos, MANY, glances);
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(glances[i], i % 7 == 3 ? NOT_COMPILED_EVERYWHERE : NOT_COMPILED_NOWHERE);
}

static void check_place(const struct not_compiled *place, unsigned index, bool is_loop,
			enum not_compiled_cause cause)
{
	assert_int_equal(place->pc, pc_of(index));
	assert_int_equal(place->is_loop, is_loop);
	assert_int_equal(place->cause, cause);
}

static void places_are_loops_and_functions_that_are_not_recorded(void **state)
{
	static const enum bytecode_op code[] = { BC_IFUNCF, BC_FORL,  BC_IFORL, BC_LOOP,  BC_ILOOP,
						 BC_ITERL,  BC_ITERC, BC_ITERN, BC_JFORL, BC_ADDVV };
	struct not_compiled places[NOT_COMPILED_MAX];
	struct proto made = put_proto(code, 10);

	(void)state;
	assert_int_equal(not_compiled_find(layout, &made, &aborts, NOT_COMPILED_SOMEWHERE, places), 3);
	check_place(&places[0], 0, false, NOT_COMPILED_BLACKLISTED);
	check_place(&places[1], 2, true, NOT_COMPILED_BLACKLISTED);
	check_place(&places[2], 4, true, NOT_COMPILED_BLACKLISTED);
	assert_int_equal(places[0].times, 0);
	assert_null(places[0].reason);
	for (unsigned i = 1; i < 10; i++)
		put_aborted(i, i, "why");
	assert_int_equal(not_compiled_find(layout, &made, &aborts, NOT_COMPILED_SOMEWHERE, places), 8);
	check_place(&places[1], 1, true, NOT_COMPILED_ABORTED);
	check_place(&places[2], 2, true, NOT_COMPILED_BLACKLISTED);
	check_place(&places[3], 3, true, NOT_COMPILED_ABORTED);
	check_place(&places[5], 5, true, NOT_COMPILED_ABORTED);
	check_place(&places[6], 6, true, NOT_COMPILED_BLACKLISTED); /* was ITERN */
	check_place(&places[7], 7, true, NOT_COMPILED_ABORTED);
	assert_int_equal(places[7].times, 7);
	assert_string_equal(places[7].reason, "why");
}

static void a_function_is_recorded_until_that_fails(void **state)
{
	static const enum bytecode_op code[] = { BC_FUNCV };
	struct not_compiled places[NOT_COMPILED_MAX];
	struct proto made = put_proto(code, 1);

	(void)state;
	assert_int_equal(not_compiled_find(layout, &made, &aborts, NOT_COMPILED_SOMEWHERE, places), 0);
	put_aborted(0, 2, NULL);
	assert_int_equal(not_compiled_find(layout, &made, &aborts, NOT_COMPILED_SOMEWHERE, places), 1);
	check_place(&places[0], 0, false, NOT_COMPILED_ABORTED);
	assert_int_equal(not_compiled_find(layout, &made, &aborts, NOT_COMPILED_EVERYWHERE, places), 1);
	check_place(&places[0], 0, false, NOT_COMPILED_OFF);
}

static void so_many_places_are_found_and_no_more(void **state)
{
	enum { LOOPS = NOT_COMPILED_MAX + 6 };
	static struct not_compiled places[LOOPS];
	struct proto made = proto;

	(void)state;
	for (unsigned int i = 0; i < LOOPS; i++)
		put(pc_of(i), (uint64_t)bytecode_number(layout, BC_ILOOP), BYTECODE_SIZE);
	made.bytes = made_up_memory.bytes + (PROTO - MADE_UP_AT);
	made.sizebc = LOOPS;
	made.size = 32 + LOOPS * BYTECODE_SIZE;
	assert_int_equal(not_compiled_find(layout, &made, &aborts, NOT_COMPILED_SOMEWHERE, places),
			 NOT_COMPILED_MAX);
	check_place(&places[NOT_COMPILED_MAX - 1], NOT_COMPILED_MAX - 1, true, NOT_COMPILED_BLACKLISTED);
	assert_int_equal(places[NOT_COMPILED_MAX].pc, 0);
}

/*---- The list of traces ----*/

static void put_trace(uint32_t number, unsigned szmcode)
{
	const uint64_t at = TRACE + number * TRACE_SIZE;

	put(TRACES + number * 8, at, 8);
	put(at + (uint64_t)layout->GChead_gct, GCT_TRACE, 1);
	put(at + (uint64_t)layout->GCtrace_traceno, number, 2);
	put(at + (uint64_t)layout->GCtrace_szmcode, szmcode, 4);
	put(at + (uint64_t)layout->GCtrace_mcode, UINT64_MAX, 8);
	put(at + (uint64_t)layout->GCtrace_nins, BIAS + 5, 4);
	put(at + (uint64_t)layout->GCtrace_nk, UINT32_MAX, 4);
	put(at + (uint64_t)layout->GCtrace_ir, IR - BIAS * 8, 8);
	put(at + (uint64_t)layout->GCtrace_linktype, TRACE_LINK_LOOP, 1);
	put(at + (uint64_t)layout->GCtrace_link, number, 2);
}

static void traces_are_listed_by_what_they_are(void **state)
{
	struct trace_summary *traces = calloc(TRACE_LIST_BATCH, sizeof(*traces));
	uint32_t next = 0;
	size_t count;

	(void)state;
	assert_non_null(traces);
	put(J + (uint64_t)layout->J_trace, TRACES, 8);
	put(J + (uint64_t)layout->J_sizetrace, 7, 4);
	put_trace(1, 100);
	put_trace(2, 200);
	put(TRACE + 2 * TRACE_SIZE + (uint64_t)layout->GCtrace_root, 1, 2);
	put_trace(3, 0); /* being made */
	put_trace(4, 50);
	put(TRACE + 4 * TRACE_SIZE + (uint64_t)layout->GCtrace_startins,
	    (uint64_t)bytecode_number(layout, BC_CALLM), 4);
	put(TRACE + 4 * TRACE_SIZE + (uint64_t)layout->GCtrace_linktype, TRACE_LINK_COUNT, 1);
	put_trace(6, 10);
	put(TRACE + 6 * TRACE_SIZE + (uint64_t)layout->GCtrace_traceno, 5, 2); /* another one's by now */
	put(IR, 1, 2);     /* REF_BASE of a side trace: its parent */
	put(IR + 2, 9, 2); /* and exit */
	assert_true(trace_list_read(memory, &global, &next, traces, &count));
	assert_int_equal(next, 0);
	assert_int_equal(count, 3);
	assert_int_equal(traces[0].number, 1);
	assert_int_equal(traces[0].kind, TRACE_ROOT);
	assert_int_equal(traces[0].parent, 0);
	assert_int_equal(traces[0].instructions, 4);
	assert_int_equal(traces[0].linktype, TRACE_LINK_LOOP);
	assert_int_equal(traces[1].kind, TRACE_SIDE);
	assert_int_equal(traces[1].root, 1);
	assert_int_equal(traces[1].parent, 1);
	assert_int_equal(traces[1].exitno, 9);
	assert_int_equal(traces[2].number, 4);
	assert_int_equal(traces[2].kind, TRACE_STITCHED);
	assert_int_equal(traces[2].linktype, TRACE_LINK_NONE);
	free(traces);
}

static void a_trace_that_is_being_recorded_is_none(void **state)
{
	struct trace_summary *traces = calloc(TRACE_LIST_BATCH, sizeof(*traces));
	uint32_t next = 0;
	size_t count;

	(void)state;
	assert_non_null(traces);
	put(J + (uint64_t)layout->J_trace, TRACES, 8);
	put(J + (uint64_t)layout->J_sizetrace, 3, 4);
	put_trace(1, 1);
	put_trace(2, 1);
	/* Without an instruction, and with none but the first one, which each has. */
	put(TRACE + TRACE_SIZE + (uint64_t)layout->GCtrace_nins, BIAS, 4);
	put(TRACE + 2 * TRACE_SIZE + (uint64_t)layout->GCtrace_nins, BIAS + 1, 4);
	assert_true(trace_list_read(memory, &global, &next, traces, &count));
	assert_int_equal(count, 1);
	assert_int_equal(traces[0].number, 2);
	assert_int_equal(traces[0].instructions, 0);
	assert_int_equal(traces[0].szmcode, 1);
	free(traces);
}

static void a_long_list_is_read_in_pieces(void **state)
{
	/* Nothing lies behind it. */
	const uint64_t list = MADE_UP_AT + MADE_UP_BYTES - (2 + TRACE_LIST_BATCH) * 8;
	struct trace_summary *traces = calloc(TRACE_LIST_BATCH, sizeof(*traces));
	uint32_t next = 0;
	size_t count;

	(void)state;
	assert_non_null(traces);
	put(J + (uint64_t)layout->J_trace, list, 8);
	put(J + (uint64_t)layout->J_sizetrace, 2 + TRACE_LIST_BATCH, 4);
	put_trace(1, 100);
	put_trace(2, 100);
	put(list + 8, TRACE + TRACE_SIZE, 8);
	put(list + (1 + TRACE_LIST_BATCH) * 8, TRACE + 2 * TRACE_SIZE, 8);
	put(TRACE + 2 * TRACE_SIZE + (uint64_t)layout->GCtrace_traceno, 1 + TRACE_LIST_BATCH, 2);
	assert_true(trace_list_read(memory, &global, &next, traces, &count));
	assert_int_equal(count, 1);
	assert_int_equal(next, 1 + TRACE_LIST_BATCH);
	assert_true(trace_list_read(memory, &global, &next, traces, &count));
	assert_int_equal(count, 1);
	assert_int_equal(traces[0].number, 1 + TRACE_LIST_BATCH);
	assert_int_equal(next, 0);
	put(J + (uint64_t)layout->J_sizetrace, 1 << 30, 4);
	assert_false(trace_list_read(memory, &global, &next, traces, &count));
	free(traces);
}

/* Nothing is read behind its end. */
static void a_list_is_as_long_as_it_says(void **state)
{
	const uint64_t end = MADE_UP_AT + MADE_UP_BYTES;
	struct trace_summary *traces = calloc(TRACE_LIST_BATCH, sizeof(*traces));
	uint32_t next = 0;
	size_t count;

	(void)state;
	assert_non_null(traces);
	put_trace(2, 100);
	put(J + (uint64_t)layout->J_sizetrace, 3, 4);
	for (int gc64 = 1; gc64 >= 0; gc64--) {
		const size_t ref = gc64 ? 8 : 4;

		layout->gc64 = gc64;
		put(J + (uint64_t)layout->J_trace, end - 3 * ref, 8);
		put(end - ref, TRACE + 2 * TRACE_SIZE, ref);
		put(end - 2 * ref, 0, ref);
		assert_true(trace_list_read(memory, &global, &next, traces, &count));
		assert_int_equal(count, 1);
		assert_int_equal(traces[0].number, 2);
		assert_int_equal(traces[0].address, TRACE + 2 * TRACE_SIZE);
		assert_int_equal(next, 0);
	}
	next = 3; /* it is no longer as long as before */
	assert_true(trace_list_read(memory, &global, &next, traces, &count));
	assert_int_equal(count, 0);
	assert_int_equal(next, 0);
	put(J + (uint64_t)layout->J_trace, end - 8, 8);
	assert_false(trace_list_read(memory, &global, &next, traces, &count));
	free(traces);
}

/* JIT_PARAMDEF: param[] ends before exitstubgroup, with or without padding. */
static void put_params(uint64_t end)
{
	put(end - 4, 512, 4);    /* maxmcode, in KB */
	put(end - 2 * 4, 64, 4); /* sizemcode */
	put(end - 8 * 4, 10, 4); /* hotexit */
}

static void limits_are_those_of_jit_opt(void **state)
{
	struct trace_limits limits;

	(void)state;
	put(J + (uint64_t)layout->J_szmcarea + 8, 4096, 8);
	for (uint64_t end = GROUPS; end >= GROUPS - 4; end -= 4) {
		put(GROUPS - 4, 0, 4);
		put_params(end);
		assert_true(trace_list_limits(memory, &global, &limits));
		assert_int_equal(limits.mcode_allocated, 4096);
		assert_int_equal(limits.mcode_max, 512 * 1024);
		assert_int_equal(limits.mcode_area, 64 * 1024);
		assert_int_equal(limits.hotexit, 10);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_failure_doubles_the_penalty, begin),
		cmocka_unit_test_setup(reasons_have_the_numbers_of_their_release, begin),
		cmocka_unit_test_setup(slots_of_32_bits, begin),
		cmocka_unit_test_setup(what_makes_no_sense_is_not_believed, begin),
		cmocka_unit_test_setup(a_glance_tells_which_functions_matter, begin),
		cmocka_unit_test_setup(unreadable_functions_are_in_no_glance, begin),
		cmocka_unit_test_setup(places_are_loops_and_functions_that_are_not_recorded, begin),
		cmocka_unit_test_setup(a_function_is_recorded_until_that_fails, begin),
		cmocka_unit_test_setup(traces_are_listed_by_what_they_are, begin),
		cmocka_unit_test_setup(a_trace_that_is_being_recorded_is_none, begin),
		cmocka_unit_test_setup(a_long_list_is_read_in_pieces, begin),
		cmocka_unit_test_setup(each_of_many_functions_has_its_own_glance, begin),
		cmocka_unit_test_setup(so_many_places_are_found_and_no_more, begin),
		cmocka_unit_test_setup(a_list_is_as_long_as_it_says, begin),
		cmocka_unit_test_setup(limits_are_those_of_jit_opt, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Each field of the compiler and of a trace that cannot be as it is is found out: in a kept heap (test_heap_read.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/kept_lies.h"
#include "unwind/lua/luajit.h"

enum { STATE_ACTIVE = 0x10, STATE_RECORDS = 0x11, STATE_MAX = 0x16, WORD = 8 };

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
		SET("J.state", OF_J, J_state, 4, 1),
		SET("J.state", OF_J, J_state, 4, 0x17),
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
		SET("", OF_J, J_state, 4, STATE_ACTIVE), SET("", OF_J, J_parent, 4, UINT16_MAX),
		SET("", OF_J, J_exitno, 4, UINT16_MAX),  SET("", OF_J, J_mcarea, 8, 0),
		SET("", OF_J, J_sizetrace, 4, 1 << 16),
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

static const struct layout *layout;

static void in_each(void (*test)(void))
{
	for (size_t i = 0; i < KEPT_STATES; i++) {
		kept_state_begin(kept_states[i]);
		layout = &kept_vm.layout;
		test();
		kept_state_end();
	}
}

static void put_of(unsigned of, int32_t field, uint64_t value, unsigned size)
{
	kept_pages_put(&kept_state, kept_newest[of] + (uint64_t)(int64_t)field, value, size);
}

static uint64_t get_of(unsigned of, int32_t field, unsigned size)
{
	return kept_number(kept_newest[of] + (uint64_t)(int64_t)field, size);
}

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_kept_passes),
		cmocka_unit_test(each_field_of_the_compiler_that_lies_is_found_out),
		cmocka_unit_test(each_field_of_a_trace_that_lies_is_found_out),
		cmocka_unit_test(what_can_just_be_passes),
		cmocka_unit_test(what_records_has_a_thread_of_the_state),
		cmocka_unit_test(traces_have_places_behind_the_first),
		cmocka_unit_test(exits_are_looked_at_if_there_is_a_trace),
		cmocka_unit_test(machine_code_has_a_top_and_a_bottom),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

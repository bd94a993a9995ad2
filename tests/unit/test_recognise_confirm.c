/* SPDX-License-Identifier: MIT */
/* What a state settles of a layout, and which state contradicts it: with one that is kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "luajit-layouts/bytecode.h"
#include "luajit-layouts/recognise/recognise.h"
#include "luajit-layouts/tables.h"
#include "tests/unit/kept_state.h"

/* Each of the processes, with what a test does to it. */
static void with_each(void (*test)(void))
{
	for (size_t i = 0; i < KEPT_STATES; i++) {
		kept_state_begin(kept_states[i]);
		test();
		kept_state_end();
	}
}

enum { FAR = 1 << 28 /* from g: nothing is kept there */ };

/* The last verdict on the layout of traces, on the main thread and on the numbering. */
static char of_traces[256], of_thread[256], of_bytecode[256];
static char last_probe[32]; /* what the last verdict is on: the reason, if the layout is refused */

static void note_verdict(void *context, const char *probe, const char *verdict)
{
	(void)context;
	snprintf(last_probe, sizeof(last_probe), "%s", probe);
	if (strcmp(probe, "trace objects") == 0)
		snprintf(of_traces, sizeof(of_traces), "%s", verdict);
	if (strcmp(probe, "lua_State") == 0)
		snprintf(of_thread, sizeof(of_thread), "%s", verdict);
	if (strcmp(probe, "bytecode") == 0)
		snprintf(of_bytecode, sizeof(of_bytecode), "%s", verdict);
}

static enum recognise_status confirm(void)
{
	of_traces[0] = of_thread[0] = of_bytecode[0] = '\0';
	return recognise_confirm(&kept_state.memory, &kept_vm, kept_state.g, note_verdict, NULL);
}

/* What was wrong or unknown is as the process had it. */
static void assert_is_settled(void)
{
	assert_int_equal(confirm(), RECOGNISE_OK);
	assert_true(kept_vm.confirmed);
	assert_false(kept_vm.traces_open || kept_vm.bytecode_open);
	assert_null(layout_conflict(&kept_vm.layout, &kept_state.layout));
	for (size_t i = 0; i < layout_field_count; i++)
		assert_int_equal(layout_offset(&kept_vm.layout, &layout_fields[i]),
				 layout_offset(&kept_state.layout, &layout_fields[i]));
	assert_int_equal(kept_vm.layout.bytecode, kept_state.layout.bytecode);
}

static void assert_is_contradicted(void)
{
	const struct vm_code before = kept_vm;

	assert_int_equal(confirm(), RECOGNISE_UNKNOWN_LAYOUT);
	assert_memory_equal(&before, &kept_vm, sizeof(before));
	assert_false(kept_vm.confirmed);
}

static void a_sound_state_confirms_its_layout(void **state)
{
	(void)state;
	with_each(assert_is_settled);
}

static void forget_the_thread(void)
{
	kept_vm.layout.L_size = kept_vm.layout.L_exdata = kept_vm.layout.L_exdata2 = LAYOUT_UNKNOWN;
	assert_is_settled();
}

static void the_end_of_a_thread_is_told_by_where_g_is(void **state)
{
	(void)state;
	with_each(forget_the_thread);
}

/* As if the main thread were so long, which lies right before g. */
static void assert_verdict_on_thread(int32_t size, const char *expected)
{
	kept_pages_put(&kept_state, kept_state.g + (uint64_t)kept_vm.layout.g_mainthref,
		       kept_state.g - (uint64_t)size, layout_ref_size(&kept_vm.layout));
	confirm();
	assert_string_equal(of_thread, expected);
}

static void try_each_thread(void)
{
	const unsigned mode = LAYOUT_MODE(kept_vm.layout.gc64 ? LAYOUT_X64_GC64 : LAYOUT_X64_GC32);
	unsigned count = 0;
	struct layout_row row;
	char expected[256];

	for (size_t i = 0; i < layout_row_count(LAYOUT_GROUP_THREAD); i++) {
		layout_row_get(LAYOUT_GROUP_THREAD, i, &row);
		if ((row.modes & mode) == 0)
			continue;
		snprintf(expected, sizeof(expected), "%d bytes: %s (%s)", (int)row.offsets.L_size, row.name,
			 row.from);
		assert_verdict_on_thread(row.offsets.L_size, expected);
		count++;
	}
	assert_true(count > 1);
	/* As in the other mode only, or in none. */
	assert_verdict_on_thread(kept_vm.layout.gc64 ? 64 : 96,
				 kept_vm.layout.gc64
					 ? "64 bytes, as in no release known; its end is left alone"
					 : "96 bytes, as in no release known; its end is left alone");
	assert_verdict_on_thread(88, "88 bytes, as in no release known; its end is left alone");
}

static void a_thread_is_of_the_releases_with_its_length(void **state)
{
	(void)state;
	with_each(try_each_thread);
}

static void forget_the_numbering(void)
{
	kept_vm.bytecode_open = true;
	for (enum layout_bytecode set = 0; set < BYTECODE_COUNT; set++) {
		kept_vm.layout.bytecode = set;
		kept_vm.bytecode_open = true;
		assert_is_settled();
		kept_vm.confirmed = false;
	}
	/* No numbering has the instruction of C functions there. */
	kept_vm.bytecode_open = true;
	kept_pages_put(&kept_state, kept_state.g + (uint64_t)kept_vm.layout.g_bc_cfunc_int, 0xfe, 1);
	assert_is_contradicted();
	assert_string_equal(of_bytecode, "no known numbering has FUNCC at 254");
}

static void try_each_numbering(void)
{
	char expected[64];

	for (enum layout_bytecode set = 0; set < BYTECODE_COUNT; set++) {
		const struct layout layout = { .bytecode = set };
		const int number = bytecode_number(&layout, BC_FUNCC);

		kept_vm.bytecode_open = true;
		kept_pages_put(&kept_state, kept_state.g + (uint64_t)kept_vm.layout.g_bc_cfunc_int,
			       (uint64_t)number, 1);
		confirm();
		snprintf(expected, sizeof(expected), "numbered so that FUNCC is %d", number);
		assert_string_equal(of_bytecode, expected);
	}
}

static void each_numbering_has_c_functions_somewhere_else(void **state)
{
	(void)state;
	with_each(try_each_numbering);
}

static void the_numbering_of_bytecode_is_told_by_c_functions(void **state)
{
	(void)state;
	with_each(forget_the_numbering);
}

/* As if the code left open which row of the table holds. */
static void open_traces(void)
{
	const int32_t size = kept_vm.layout.GCtrace_size;

	for (size_t i = 0; i < layout_field_count; i++)
		if (strcmp(layout_fields[i].structure, "GCtrace") == 0 ||
		    strcmp(layout_fields[i].structure, "SnapShot") == 0)
			*layout_offset_in(&kept_vm.layout, &layout_fields[i]) = LAYOUT_UNKNOWN;
	kept_vm.layout.IR_KGC = LAYOUT_UNKNOWN;
	kept_vm.layout.GCtrace_size = size;
	kept_vm.traces_open = true;
}

static void forget_traces(void)
{
	char expected[64];

	open_traces();
	assert_is_settled();
	snprintf(expected, sizeof(expected), "snapshots of %d bytes, by the traces there are",
		 (int)kept_state.layout.SnapShot_size);
	assert_string_equal(of_traces, expected);
	/* Where the code has shown the number of the IR opcode. */
	open_traces();
	kept_vm.layout.IR_KGC = kept_state.layout.IR_KGC;
	kept_vm.confirmed = false;
	assert_is_settled();
	assert_string_equal(of_traces, expected);
	open_traces();
	kept_vm.layout.IR_KGC = kept_state.layout.IR_KGC + 1;
	kept_vm.confirmed = false;
	assert_is_contradicted();
	assert_string_equal(of_traces, "no known layout fits the traces there are");
}

static void the_layout_of_traces_is_told_by_a_trace(void **state)
{
	(void)state;
	with_each(forget_traces);
}

static uint64_t J(int32_t field)
{
	return kept_state.g + (uint64_t)kept_vm.layout.GG_J + (uint64_t)field;
}

/* The list is empty but for its first place. */
static void flush_traces(void)
{
	open_traces();
	kept_pages_put(&kept_state,
		       kept_number(J(kept_vm.layout.J_trace), 8) + layout_ref_size(&kept_vm.layout), 0,
		       layout_ref_size(&kept_vm.layout));
	kept_pages_put(&kept_state, J(kept_vm.layout.J_sizetrace) - 4, 1, 4); /* J.freetrace */
	assert_int_equal(confirm(), RECOGNISE_OK);
	assert_true(kept_vm.confirmed);
	assert_true(kept_vm.traces_open);
	assert_int_equal(kept_vm.layout.IR_KGC, LAYOUT_UNKNOWN);
	assert_string_equal(of_traces, "no trace yet to tell their layout by");
	/* Even if there is but one to be told; a trace that was abandoned is among the objects. */
	kept_vm.layout = kept_state.layout;
	kept_pages_put(&kept_state, kept_newest[GCT_TRACE] + (uint64_t)kept_vm.layout.GCtrace_traceno, 0, 2);
	kept_vm.traces_open = true;
	assert_int_equal(confirm(), RECOGNISE_OK);
	assert_true(kept_vm.traces_open);
	assert_string_equal(of_traces, "no trace yet to tell their layout by");
}

static void without_a_trace_their_layout_stays_open(void **state)
{
	(void)state;
	with_each(flush_traces);
}

static void spoil_the_trace(void)
{
	const uint64_t nk = kept_newest[GCT_TRACE] + (uint64_t)kept_vm.layout.GCtrace_nk;

	kept_pages_put(&kept_state, nk, kept_number(nk, 4) + 1, 4);
	assert_is_contradicted();
	assert_string_equal(of_traces, "");
	open_traces();
	assert_is_contradicted();
	assert_string_equal(of_traces, "no known layout fits the traces there are");
}

static void a_trace_that_fits_no_layout_contradicts(void **state)
{
	(void)state;
	with_each(spoil_the_trace);
}

/* Whether or not the layout of traces is known: a state, a string, an object and the compiler. */
static void spoil_the_others(void)
{
	const unsigned ref = layout_ref_size(&kept_vm.layout);
	const struct vm_code whole = kept_vm;
	const uint64_t places[] = {
		kept_newest[OF_MAIN] + (uint64_t)kept_vm.layout.L_glref,
		kept_state.g + (uint64_t)kept_vm.layout.g_gcroot,
		kept_newest[GCT_FUNCTION] + (uint64_t)kept_vm.layout.GCfunc_env,
		J(kept_vm.layout.J_szmcarea),
	};

	for (size_t i = 0; i < 2 * sizeof(places) / sizeof(places[0]); i++) {
		const uint64_t before = kept_number(places[i / 2], ref);

		kept_pages_put(&kept_state, places[i / 2], before + 8, ref);
		kept_vm = whole;
		if (i % 2)
			open_traces();
		assert_is_contradicted();
		kept_pages_put(&kept_state, places[i / 2], before, ref);
	}
	kept_vm = whole;
	assert_is_settled();
}

static void whatever_lies_contradicts(void **state)
{
	(void)state;
	with_each(spoil_the_others);
}

static void a_state_that_is_gone_confirms_nothing(void **state)
{
	(void)state;
	kept_state_begin(kept_states[0]);
	kept_vm.bytecode_open = true;
	kept_vm.layout.g_bc_cfunc_int = FAR;
	assert_is_contradicted();
	assert_string_equal(of_bytecode, "g.bc_cfunc_int cannot be read");
	assert_string_equal(last_probe, "bytecode");
	kept_pages_forget(&kept_state, kept_state.g + (uint64_t)kept_vm.layout.g_mainthref);
	assert_is_contradicted();
	assert_string_equal(of_thread, "g.mainthref cannot be read");
	assert_string_equal(last_probe, "lua_State");
	kept_state_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sound_state_confirms_its_layout),
		cmocka_unit_test(the_end_of_a_thread_is_told_by_where_g_is),
		cmocka_unit_test(a_thread_is_of_the_releases_with_its_length),
		cmocka_unit_test(the_numbering_of_bytecode_is_told_by_c_functions),
		cmocka_unit_test(each_numbering_has_c_functions_somewhere_else),
		cmocka_unit_test(the_layout_of_traces_is_told_by_a_trace),
		cmocka_unit_test(without_a_trace_their_layout_stays_open),
		cmocka_unit_test(a_trace_that_fits_no_layout_contradicts),
		cmocka_unit_test(whatever_lies_contradicts),
		cmocka_unit_test(a_state_that_is_gone_confirms_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

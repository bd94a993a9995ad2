/* SPDX-License-Identifier: MIT */
/* Fields of states, threads and C frames that cannot be as they are: in a kept heap (test_heap_read.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "luajit-layouts/vmstate.h"
#include "tests/unit/kept_fields.h"
#include "tests/unit/kept_lies.h"
#include "unwind/lua/luajit.h"

enum {
	SLOT = 8,
	C_FRAME = 0x10000100, /* on a page of which nothing is kept */
	STACK_SLOTS_MAX = 1 << 20,
	CURRENT_WHITES = 3,
	OTHER_TABLE = 0x10010000,
	STRING_CHAINS = 1024,
	STRINGS_OF_A_CHAIN = 1000, /* at most */
	C_FRAMES_MAX = 256,
};

static void what_is_kept_passes(void **state)
{
	(void)state;
	kept_passes(SELFTEST_STATE);
}

static void each_field_of_a_state_that_lies_is_found_out(void **state)
{
	static const struct lie lies[] = {
		SET("g.gc.total", OF_G, g_gc_total, 0, 1000),
		SET("g.gc.state", OF_G, g_gc_state, 1, 8),
		LIE("g.strmask", OF_G, g_strmask, 4, 1),
		SET("g.strmask", OF_G, g_strmask, 4, 0),
		SET("g.strnum", OF_G, g_strnum, 4, 0),
		SET("g.strhash", OF_G, g_strhash, 0, 8),
		SET("g.vmstate", OF_G, g_vmstate, 4, VMST_LOWEST - 1),
		SET("g.vmstate", OF_G, g_vmstate, 4, 1 << 16),
		LIE("g.bc_cfunc_int", OF_G, g_bc_cfunc_int, 4, 1),
		LIE("g.bc_cfunc_int", OF_G, g_bc_cfunc_int, 4, 0x100),
		SET("g.registrytv", OF_G, g_registrytv, 8, 0),
		LIE("g.jit_base", OF_G, g_jit_base, 0, 1),
		LIE("a thread leads", OF_G, g_mainthref, 0, 8),
		LIE("g.cur_L", OF_G, g_cur_L, 0, 8),
		LIE("g.ctype_state", OF_G, g_ctype_state, 0, 8),
		SET("GG.dispatch", OF_G, GG_dispatch, 8, 0),
		LIE("GG.dispatch", OF_G, GG_dispatch, 8, 1),
		LIE("L.glref", OF_MAIN, L_glref, 0, 8),
		SET("L.status", OF_MAIN, L_status, 1, 8),
		LIE("L.env", OF_MAIN, L_env, 0, 8),
		LIE("L.openupval", OF_MAIN, L_openupval, 0, 8),
		LIE("L.base", OF_MAIN, L_base, 0, 1 << 20),
		LIE("L.base", OF_MAIN, L_base, 0, 1),
		LIE("L.top", OF_MAIN, L_top, 0, 1 << 20),
		LIE("L.top", OF_MAIN, L_top, 0, 1),
		LIE("L.stack", OF_MAIN, L_stack, 0, 8),
		LIE("L.stacksize", OF_MAIN, L_stacksize, 4, 64),
		SET("L.stacksize", OF_MAIN, L_stacksize, 4, 0),
		LIE("L.maxstack", OF_MAIN, L_maxstack, 0, 8),
		SET("GChead.marked", OF_MAIN, GChead_marked, 1, 0),
		SET("", OF_MAIN, L_cframe, 8, 8),
		LIE("L.stack or L.stacksize", OF_MAIN, L_stack, 0, 1),
		LIE("L.stack or L.stacksize", OF_MAIN, L_stacksize, 4, STACK_SLOTS_MAX),
		SET("GChead.marked", OF_MAIN, GChead_marked, 1, 0x41),
	};

	(void)state;
	kept_try(SELFTEST_STATE, SELFTEST_FAILED, lies, sizeof(lies) / sizeof(lies[0]));
}

/* The last number of each that can be, and what there may be none of. */
static void what_can_just_be_passes(void **state)
{
	static const struct lie bounds[] = {
		SET("", OF_G, g_gc_state, 1, 7),          SET("", OF_G, g_vmstate, 4, UINT16_MAX),
		SET("", OF_G, g_vmstate, 4, VMST_LOWEST), SET("", OF_G, g_vmstate, 4, 0),
		SET("", OF_MAIN, L_status, 1, 7),         SET("", OF_G, g_ctype_state, 0, 0),
		SET("", OF_MAIN, L_openupval, 0, 0),      SET("", OF_MAIN, GChead_marked, 1, 0x67),
		SET("", OF_MAIN, GChead_marked, 1, 0x60),
	};

	(void)state;
	kept_try(SELFTEST_STATE, SELFTEST_PASSED, bounds, sizeof(bounds) / sizeof(bounds[0]));
}

/*---- In each kept state ----*/

/* The state passes, or fails for this reason. */
static void expect(bool passes, const char *reason)
{
	kept_expect(SELFTEST_STATE, passes ? SELFTEST_PASSED : SELFTEST_FAILED, passes ? "" : reason);
}

/*---- The table of strings ----*/

/* The least table has 32 chains. Its number of strings may be one off. */
static void count_strings(void)
{
	enum { LEAST_MASK = 31 };
	unsigned int total, count;

	put_of(OF_G, layout->g_strmask, LEAST_MASK / 2, 4);
	expect(false, "g.strmask is no mask");
	/* The first chains of the table that there is. */
	put_of(OF_G, layout->g_strmask, LEAST_MASK, 4);
	put_of(OF_G, layout->g_strnum, 100000, 4);
	expect(false, "g.strnum");
	assert_int_equal(sscanf(kept_reason, "g.strnum is %u, with %u strings", &total, &count), 2);
	assert_int_equal(total, 100000);
	assert_in_range(count, 2, 10000);
	for (int more = -2; more <= 2; more++) {
		put_of(OF_G, layout->g_strnum, (uint64_t)((int64_t)count + more), 4);
		expect(more != -2 && more != 2, "g.strnum");
	}
}

static void the_table_of_strings_has_as_many_as_it_says(void **state)
{
	(void)state;
	in_each(count_strings);
}

/* A table of nothing, but for one chain, and one behind those that are looked at. */
static void count_first_strings(void)
{
	const unsigned ref = layout_ref_size(layout);
	uint64_t chain = 0, at = kept_reference(kept_state.g + (uint64_t)layout->g_strhash);

	for (; chain == 0; at += ref)
		chain = kept_reference(at) & ~UINT64_C(1);
	for (uint64_t i = 0; i <= 2 * STRING_CHAINS; i++)
		kept_pages_put(&kept_state, OTHER_TABLE + i * ref, i >= STRING_CHAINS ? 8 : 0, ref);
	put_of(OF_G, layout->g_strhash, OTHER_TABLE, 0);
	put_of(OF_G, layout->g_strmask, 2 * STRING_CHAINS - 1, 4);
	put_of(OF_G, layout->g_strnum, 2, 4);
	expect(true, "");
	put_of(OF_G, layout->g_strmask, STRING_CHAINS - 1, 4);
	expect(false, "g.strnum is 2, with 0 strings");
	/* The lowest bit is no part of the address (LuaJIT: strings of a second hash). */
	kept_pages_put(&kept_state, OTHER_TABLE + (STRING_CHAINS - 1) * ref, chain | 1, ref);
	put_of(OF_G, layout->g_strnum, 100000, 4);
	expect(false, "g.strnum is 100000, with ");
	assert_null(strstr(kept_reason, "with 0 "));
	put_of(OF_G, layout->g_strmask, 2 * STRING_CHAINS - 1, 4);
	expect(true, "");
}

/* One that leads to itself counts so often. */
static void tie_a_chain(void)
{
	const unsigned ref = layout_ref_size(layout);
	uint64_t string = 0, at = kept_reference(kept_state.g + (uint64_t)layout->g_strhash);

	for (; string == 0; at += ref)
		string = kept_reference(at) & ~UINT64_C(1);
	kept_pages_put(&kept_state, string + (uint64_t)layout->GChead_nextgc, string, ref);
	for (uint64_t i = 0; i < 32; i++)
		kept_pages_put(&kept_state, OTHER_TABLE + i * ref, i == 31 ? string : 0, ref);
	put_of(OF_G, layout->g_strhash, OTHER_TABLE, 0);
	put_of(OF_G, layout->g_strmask, 31, 4);
	put_of(OF_G, layout->g_strnum, STRINGS_OF_A_CHAIN, 4);
	expect(true, "");
	put_of(OF_G, layout->g_strnum, 0, 4);
	expect(false, "g.strnum is 0, with 1000 strings");
	/* What is on a chain is a string. */
	kept_pages_put(&kept_state, string + (uint64_t)layout->GChead_nextgc, kept_newest[GCT_TABLE], ref);
	expect(false, "g.strhash leads to an object of type");
}

static void a_chain_of_strings_has_an_end(void **state)
{
	(void)state;
	in_each(tie_a_chain);
}

/* The next chain's first string, from an anchor on. */
static uint64_t next_string(uint64_t *at)
{
	uint64_t string = 0;

	for (; string == 0; *at += layout_ref_size(layout))
		string = kept_reference(*at) & ~UINT64_C(1);
	return string;
}

static void put_chain(uint64_t number, uint64_t string)
{
	kept_pages_put(&kept_state, OTHER_TABLE + number * layout_ref_size(layout), string,
		       layout_ref_size(layout));
}

static void put_next(uint64_t string, uint64_t next)
{
	kept_pages_put(&kept_state, string + (uint64_t)layout->GChead_nextgc, next, layout_ref_size(layout));
}

static void put_total(uint64_t total)
{
	put_of(OF_G, layout->g_strnum, total, 4);
}

/* While the collector sweeps strings, a freed one may be on one chain, or still look like a string. */
static void sweep_strings(void)
{
	enum { SWEEPSTRING = 3, SWEEP };
	uint64_t at = kept_reference(kept_state.g + (uint64_t)layout->g_strhash);
	const uint64_t string = next_string(&at), first = next_string(&at), last = next_string(&at);

	put_next(string, kept_newest[GCT_TABLE]);
	put_next(first, last);
	put_next(last, 0);
	for (uint64_t i = 0; i < 32; i++)
		put_chain(i, i == 7 ? string : 0);
	put_of(OF_G, layout->g_strhash, OTHER_TABLE, 0);
	put_of(OF_G, layout->g_strmask, 31, 4);
	put_total(100);
	put_of(OF_G, layout->g_gc_state, SWEEP, 1);
	expect(false, "g.strhash leads to an object of type");
	put_of(OF_G, layout->g_gc_state, SWEEPSTRING, 1);
	expect(true, "");
	put_chain(8, string);
	expect(false, "g.strhash leads to an object of type");
	/* The other chains count as ever. */
	put_chain(8, first);
	put_total(1);
	expect(true, "");
	put_total(0);
	expect(false, "g.strnum is 0, with 2 strings");
	put_total(STRINGS_OF_A_CHAIN + 3);
	expect(true, "");
	put_total(STRINGS_OF_A_CHAIN + 4);
	expect(false, "g.strnum is 1004, with 2 strings");
	/* A chain without an end is the torn one. */
	put_next(string, string);
	expect(false, "g.strnum is 1004, with 2 strings");
	put_total(1);
	expect(true, "");
	put_total(0);
	expect(false, "g.strnum is 0, with 2 strings");
	put_chain(9, string);
	expect(false, "g.strhash has a chain without an end");
	/* Without a torn one, the strings of one chain may all be freed. */
	put_chain(7, 0);
	put_chain(9, 0);
	expect(true, "");
	put_chain(9, last);
	expect(true, "");
	put_chain(10, last);
	expect(false, "g.strnum is 0, with 4 strings");
}

static void a_sweep_of_strings_may_be_under_way(void **state)
{
	(void)state;
	in_each(sweep_strings);
}

static void of_a_large_table_of_strings_the_first_chains_count(void **state)
{
	(void)state;
	in_each(count_first_strings);
}

/*---- g ----*/

/* Its first word is code of the VM, here of one byte, and the word before it is not. */
static void the_dispatch_table_has_a_beginning(void **state)
{
	(void)state;
	for (size_t i = 0; i < KEPT_STATES; i++)
		for (int from_code = -1; from_code <= 1; from_code++)
			for (int32_t before = 0; before <= 8; before += 8) {
				kept_state_begin(kept_states[i]);
				layout = &kept_vm.layout;
				put_of(OF_G, layout->GG_dispatch - before,
				       (uint64_t)((int64_t)kept_vm.begin + from_code), 8);
				expect((from_code == 0) == (before == 0), "GG.dispatch");
				kept_state_end();
			}
}

static void try_whites(void)
{
	const uint64_t before = get_of(OF_G, layout->g_gc_state - 1, 1);

	for (uint64_t white = 0; white <= CURRENT_WHITES; white++) {
		put_of(OF_G, layout->g_gc_state - 1, (before & ~(uint64_t)CURRENT_WHITES) | white | 4, 1);
		expect(white == 1 || white == 2, "g.gc.state is not preceded by a current white");
	}
}

static void one_of_two_whites_is_current(void **state)
{
	(void)state;
	in_each(try_whites);
}

static void try_totals(void)
{
	put_of(OF_G, layout->g_gc_total, (uint64_t)layout->GG_dispatch, 0);
	expect(true, "");
	put_of(OF_G, layout->g_gc_total, (uint64_t)layout->GG_dispatch - 1, 0);
	expect(false, "g.gc.total");
}

static void a_heap_is_not_less_than_its_state(void **state)
{
	(void)state;
	in_each(try_totals);
}

static void put_other_registry(void)
{
	const unsigned shift = layout->gc64 ? 47 : 32;
	const uint64_t value = get_of(OF_G, layout->g_registrytv, 8);

	put_of(OF_G, layout->g_registrytv, value - (UINT64_C(1) << shift), 8); /* a userdata's tag */
	expect(false, "g.registrytv holds no table");
}

static void the_registry_is_a_table(void **state)
{
	(void)state;
	in_each(put_other_registry);
}

/* Before the first call, none runs; but a VM that has a thread of its own has it from the beginning. */
static void forget_threads(void)
{
	if (layout->g_cur_L != LAYOUT_ABSENT) {
		put_of(OF_G, layout->g_cur_L, kept_newest[GCT_THREAD], 0);
		put_of(GCT_THREAD, layout->L_status, 8, 1);
		expect(false, "L.status is 8");
		put_of(OF_G, layout->g_cur_L, 0, 0);
		expect(true, "");
		kept_vm.layout.g_cur_L = LAYOUT_ABSENT;
		expect(true, "");
	}
	/* It is put where another field is that says nothing about this. */
	kept_vm.layout.g_vmthref = layout->g_ctype_state;
	kept_vm.layout.g_ctype_state = layout->g_jit_base;
	put_of(OF_G, layout->g_ctype_state, 0, 0);
	put_of(OF_G, layout->g_vmthref, kept_newest[OF_MAIN], 0);
	expect(true, "");
	put_of(OF_G, layout->g_vmthref, 0, 0);
	expect(false, "g.vmthref leads nowhere");
	kept_vm.layout.g_vmthref = LAYOUT_ABSENT;
	expect(true, "");
}

/* How many objects are said to be sound. */
static unsigned int count_sound(void)
{
	unsigned int count = 0;

	assert_int_equal(kept_verdict(SELFTEST_STATE), SELFTEST_PASSED);
	assert_int_equal(sscanf(kept_reason, "%u sound", &count), 1);
	return count;
}

static void count_threads(void)
{
	unsigned int without;

	if (layout->g_cur_L == LAYOUT_ABSENT)
		return;
	put_of(OF_G, layout->g_cur_L, 0, 0);
	without = count_sound();
	assert_true(without > 0);
	put_of(OF_G, layout->g_cur_L, kept_newest[OF_MAIN], 0);
	assert_int_equal(count_sound(), without + 1);
}

static void each_thread_that_is_sound_counts(void **state)
{
	(void)state;
	in_each(count_threads);
}

static void a_state_may_run_no_thread(void **state)
{
	(void)state;
	in_each(forget_threads);
}

/* Forks have more fields, or others. g comes right behind it. */
static void change_the_end(void)
{
	const int32_t size = kept_vm.layout.L_size;
	char expected[64];

	kept_vm.layout.L_exdata = kept_vm.layout.L_exdata2 = LAYOUT_UNKNOWN;
	expect(true, "");
	kept_vm.layout.L_size = size + 8;
	snprintf(expected, sizeof(expected), "L.size is %d:", (int)size);
	expect(false, expected);
	kept_vm.layout.L_size = LAYOUT_UNKNOWN;
	expect(true, "");
	kept_vm.layout.L_size = size;
	kept_vm.layout.L_exdata = size - 8;
	expect(true, "");
	kept_vm.layout.L_exdata2 = size;
	expect(false, "L.exdata is not at the end");
	kept_vm.layout.L_exdata = size - 16;
	kept_vm.layout.L_exdata2 = size - 8;
	expect(true, "");
	kept_vm.layout.L_exdata2 = LAYOUT_ABSENT;
	expect(false, "L.exdata is not at the end");
	kept_vm.layout.L_exdata = 0;
	expect(false, "L.exdata is not at the end");
}

static void the_main_thread_ends_with_what_a_program_may_store(void **state)
{
	(void)state;
	in_each(change_the_end);
}

/*---- Stacks ----*/

static uint64_t stack_begin(void)
{
	return get_of(OF_MAIN, layout->L_stack, 0);
}

static uint64_t stack_end(void)
{
	return stack_begin() + get_of(OF_MAIN, layout->L_stacksize, 4) * SLOT;
}

static void try_reserves(void)
{
	for (uint64_t slots = 0; slots <= 12; slots++) {
		put_of(OF_MAIN, layout->L_maxstack, stack_end() - slots * SLOT, 0);
		expect(slots == 6 || slots == 8 || slots == 9, "L.maxstack");
	}
	/* The largest stack that is believed. */
	put_of(OF_MAIN, layout->L_stacksize, STACK_SLOTS_MAX, 4);
	put_of(OF_MAIN, layout->L_maxstack, stack_end() - 8 * SLOT, 0);
	expect(true, "");
	put_of(OF_MAIN, layout->L_stacksize, STACK_SLOTS_MAX + 1, 4);
	expect(false, "L.stack or L.stacksize");
}

static void some_slots_behind_the_stack_are_in_reserve(void **state)
{
	(void)state;
	in_each(try_reserves);
}

static void change_the_bottom(void)
{
	kept_pages_put(&kept_state, stack_begin(), kept_number(stack_begin(), 4) + SLOT, 4);
	expect(false, "L.stack does not start with L");
}

static void a_stack_begins_with_its_thread(void **state)
{
	(void)state;
	in_each(change_the_bottom);
}

/* In compiled code, where they may be stale. */
static void try_bases_and_tops(void)
{
	const int32_t fields[] = { layout->L_base, layout->L_top };
	const char *const names[] = { "L.base is outside", "L.top is outside" };

	put_of(OF_G, layout->g_vmstate, 1, 4);
	for (int i = 0; i < 2; i++) {
		const uint64_t before = get_of(OF_MAIN, fields[i], 0);

		put_of(OF_MAIN, fields[i], stack_begin(), 0);
		expect(false, names[i]);
		put_of(OF_MAIN, fields[i], stack_begin() + SLOT, 0);
		expect(true, "");
		put_of(OF_MAIN, fields[i], stack_end(), 0);
		expect(true, "");
		put_of(OF_MAIN, fields[i], stack_end() + SLOT, 0);
		expect(false, names[i]);
		put_of(OF_MAIN, fields[i], before, 0);
	}
}

static void a_base_and_a_top_are_slots_of_the_stack(void **state)
{
	(void)state;
	in_each(try_bases_and_tops);
}

/* Only then are they those of its frame. Here it is one above the bottom, of the same object. */
static void run_c(void)
{
	const uint64_t base = stack_begin() + (layout->gc64 ? 3 : 2) * SLOT;

	if (layout->g_cur_L == LAYOUT_ABSENT)
		return;
	put_of(OF_G, layout->g_cur_L, kept_newest[OF_MAIN], 0);
	kept_pages_put(&kept_state, stack_begin() + SLOT, kept_number(stack_begin(), SLOT), SLOT);
	for (int32_t numbered = VMST_LOWEST; numbered <= 1; numbered++) {
		const bool is_c = vmstate_of(layout, numbered) == VMST_C;

		put_of(OF_G, layout->g_vmstate, (uint64_t)numbered, 4);
		put_of(OF_MAIN, layout->L_base, base, 0);
		put_of(OF_MAIN, layout->L_top, base, 0);
		expect(true, "");
		put_of(OF_MAIN, layout->L_top, base - SLOT, 0);
		expect(!is_c, "L.top is below L.base");
		put_of(OF_MAIN, layout->L_top, stack_end(), 0);
		put_of(OF_MAIN, layout->L_base, base + 2 * SLOT, 0);
		kept_pages_put(&kept_state, base, 0, SLOT);
		kept_pages_put(&kept_state, base + SLOT, 0, SLOT);
		expect(!is_c, "L.base");
	}
}

static void while_c_runs_the_base_is_its_frame(void **state)
{
	(void)state;
	in_each(run_c);
}

static void open_upvalues(void)
{
	const int32_t v = layout->GCupval_v, closed = layout->GCupval_closed;

	put_of(OF_MAIN, layout->L_openupval, kept_newest[GCT_UPVALUE], 0);
	put_of(GCT_UPVALUE, v, stack_begin(), 0);
	expect(false, "GCupval.v of an open upvalue");
	put_of(GCT_UPVALUE, closed, 0, 1);
	expect(true, "");
	put_of(GCT_UPVALUE, v, stack_end() - SLOT, 0);
	expect(true, "");
	put_of(GCT_UPVALUE, v, stack_end(), 0);
	expect(false, "GCupval.v of an open upvalue");
	put_of(GCT_UPVALUE, v, stack_begin() - SLOT, 0);
	expect(false, "GCupval.v of an open upvalue");
}

static void an_open_upvalue_has_its_value_on_the_stack(void **state)
{
	(void)state;
	in_each(open_upvalues);
}

/*---- C frames ----*/

static void put_c_frame(uint64_t frame, int32_t nres, int32_t errf, uint64_t previous)
{
	const struct {
		int32_t field;
		unsigned size;
		uint64_t value;
	} words[] = {
		{ layout->CFRAME_L, layout_ref_size(layout), kept_newest[OF_MAIN] },
		{ layout->CFRAME_NRES, 4, (uint64_t)nres },
		{ layout->CFRAME_ERRF, 4, (uint64_t)errf },
		{ layout->CFRAME_PREV, 8, previous },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		kept_pages_put(&kept_state, frame + (uint64_t)words[i].field, words[i].value, words[i].size);
}

static void expect_c_frame(int32_t nres, int32_t errf, const char *reason)
{
	put_c_frame(C_FRAME, nres, errf, 0);
	expect(!reason, reason);
}

static void try_c_frames(void)
{
	const int32_t stack_bytes = (int32_t)(stack_end() - stack_begin());
	const int32_t lowest = -2 * STACK_SLOTS_MAX * SLOT;

	put_of(OF_MAIN, layout->L_cframe, C_FRAME | 3, 8); /* with its flags */
	/* Who asks for a number of results sets no error function: what is there is older. */
	expect_c_frame(0, 4, NULL);
	expect_c_frame(5, 4, NULL);
	expect_c_frame(-SLOT, -1, NULL);
	expect_c_frame(lowest, -1, NULL);
	expect_c_frame(lowest - SLOT, -1, "CFRAME.NRES");
	expect_c_frame(-1, -1, "CFRAME.NRES");
	expect_c_frame(-SLOT, 0, NULL);
	expect_c_frame(-SLOT, SLOT, NULL);
	expect_c_frame(-SLOT, stack_bytes - SLOT, NULL);
	expect_c_frame(-SLOT, stack_bytes, "CFRAME.ERRF");
	expect_c_frame(-SLOT, SLOT / 2, "CFRAME.ERRF");
	expect_c_frame(-SLOT, -2, "CFRAME.ERRF");
	expect_c_frame(-SLOT, -SLOT, "CFRAME.ERRF");
	put_c_frame(C_FRAME, 0, 0, 0);
	kept_pages_put(&kept_state, C_FRAME + (uint64_t)layout->CFRAME_L, kept_newest[OF_MAIN] + 8,
		       layout_ref_size(layout));
	expect(false, "CFRAME.L is another thread");
}

static void a_c_frame_is_of_its_thread_and_catches_errors_on_its_stack(void **state)
{
	(void)state;
	in_each(try_c_frames);
}

static void chain_c_frames(void)
{
	const uint64_t outer = C_FRAME + (uint64_t)layout->CFRAME_size;

	put_of(OF_MAIN, layout->L_cframe, C_FRAME, 8);
	put_c_frame(outer, 0, 0, 0);
	put_c_frame(C_FRAME, 0, 0, outer | 3);
	expect(true, "");
	put_c_frame(outer, -1, 0, 0);
	expect(false, "CFRAME.NRES");
	put_c_frame(outer - 8, 0, 0, 0);
	put_c_frame(C_FRAME, 0, 0, outer - 8);
	expect(false, "CFRAME.PREV does not lead outwards");
	put_c_frame(C_FRAME, 0, 0, C_FRAME);
	expect(false, "CFRAME.PREV does not lead outwards");
}

/* The last one that is looked at, and the next one. */
static void chain_many_c_frames(void)
{
	const uint64_t size = (uint64_t)layout->CFRAME_size;

	put_of(OF_MAIN, layout->L_cframe, C_FRAME, 8);
	for (uint64_t i = 0; i <= C_FRAMES_MAX; i++)
		put_c_frame(C_FRAME + i * size, i == C_FRAMES_MAX ? -1 : 0, 0,
			    i == C_FRAMES_MAX ? 0 : C_FRAME + (i + 1) * size);
	expect(true, "");
	put_c_frame(C_FRAME + (C_FRAMES_MAX - 1) * size, -1, 0, 0);
	expect(false, "CFRAME.NRES");
}

static void of_many_c_frames_the_first_are_looked_at(void **state)
{
	(void)state;
	in_each(chain_many_c_frames);
}

static void c_frames_lead_outwards(void **state)
{
	(void)state;
	in_each(chain_c_frames);
}

static void a_field_of_no_known_offset_fails(void **state)
{
	static const struct field_name fields[] = {
		FIELD(GChead_marked), FIELD(L_base),     FIELD(L_cframe),    FIELD(L_env),
		FIELD(L_glref),       FIELD(L_maxstack), FIELD(L_openupval), FIELD(L_stack),
		FIELD(L_stacksize),   FIELD(L_status),   FIELD(L_top),       FIELD(g_bc_cfunc_int),
		FIELD(g_ctype_state), FIELD(g_gc_state), FIELD(g_gc_total),  FIELD(g_jit_base),
		FIELD(g_mainthref),   FIELD(g_strhash),  FIELD(g_strmask),   FIELD(g_strnum),
		FIELD(g_vmstate),
	};

	(void)state;
	kept_try_unknown(SELFTEST_STATE, fields, sizeof(fields) / sizeof(fields[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_field_of_no_known_offset_fails),
		cmocka_unit_test(what_is_kept_passes),
		cmocka_unit_test(each_field_of_a_state_that_lies_is_found_out),
		cmocka_unit_test(what_can_just_be_passes),
		cmocka_unit_test(the_table_of_strings_has_as_many_as_it_says),
		cmocka_unit_test(a_chain_of_strings_has_an_end),
		cmocka_unit_test(a_sweep_of_strings_may_be_under_way),
		cmocka_unit_test(of_a_large_table_of_strings_the_first_chains_count),
		cmocka_unit_test(the_dispatch_table_has_a_beginning),
		cmocka_unit_test(one_of_two_whites_is_current),
		cmocka_unit_test(a_heap_is_not_less_than_its_state),
		cmocka_unit_test(the_registry_is_a_table),
		cmocka_unit_test(a_state_may_run_no_thread),
		cmocka_unit_test(each_thread_that_is_sound_counts),
		cmocka_unit_test(the_main_thread_ends_with_what_a_program_may_store),
		cmocka_unit_test(some_slots_behind_the_stack_are_in_reserve),
		cmocka_unit_test(a_stack_begins_with_its_thread),
		cmocka_unit_test(a_base_and_a_top_are_slots_of_the_stack),
		cmocka_unit_test(while_c_runs_the_base_is_its_frame),
		cmocka_unit_test(an_open_upvalue_has_its_value_on_the_stack),
		cmocka_unit_test(a_c_frame_is_of_its_thread_and_catches_errors_on_its_stack),
		cmocka_unit_test(c_frames_lead_outwards),
		cmocka_unit_test(of_many_c_frames_the_first_are_looked_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

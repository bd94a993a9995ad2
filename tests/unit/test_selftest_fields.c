/* SPDX-License-Identifier: MIT */
/* Each field of an object that cannot be as it is is found out: in a kept heap (test_heap_read.c), one field at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "luajit-layouts/field.h"
#include "luajit-layouts/selftest/selftest.h"
#include "luajit-layouts/vmstate.h"
#include "tests/unit/kept_state.h"
#include "unwind/lua/luajit.h"

enum { REASON_SIZE = 256 };

static char reason[REASON_SIZE];

static void take_reason(void *context, const char *probe, const char *verdict)
{
	(void)context;
	(void)probe;
	snprintf(reason, sizeof(reason), "%s", verdict);
}

static enum selftest_verdict run(enum selftest test)
{
	reason[0] = '\0';
	return selftest_run(&kept_state.memory, &kept_vm, kept_state.g, test, take_reason, NULL);
}

static void what_is_kept_passes(void **state)
{
	static const enum selftest tests[] = { SELFTEST_STATE, SELFTEST_STRINGS, SELFTEST_OBJECTS,
					       SELFTEST_JIT, SELFTEST_TRACES };

	(void)state;
	for (size_t i = 0; i < KEPT_STATES * sizeof(tests) / sizeof(tests[0]); i++) {
		kept_state_begin(kept_states[i % KEPT_STATES]);
		if (run(tests[i / KEPT_STATES]) != SELFTEST_PASSED)
			fail_msg("%s: test %d: %s", kept_states[i % KEPT_STATES], (int)tests[i / KEPT_STATES],
				 reason);
		kept_state_end();
	}
}

/* A field of the newest object of a type, its size (0: a reference), and what is added to it or put there. */
static const struct lie {
	const char *reason; /* a part of what is said */
	size_t field;
	int64_t more;
	unsigned size;
	uint8_t gct;
	bool is_set; /* instead of adding to what is there */
} lies[] = {
#define LIE(reason, gct, field, size, more) \
	{ \
		reason, offsetof(struct layout, field), more, size, gct, false \
	}
	LIE("GCproto.k is not", GCT_PROTO, GCproto_sizebc, 4, 2),
	LIE("GCproto.k is not", GCT_PROTO, GCproto_sizekgc, 4, 4),
	LIE("GCproto.k is not", GCT_PROTO, GCproto_k, 0, 8),
	LIE("GCproto.uv is not", GCT_PROTO, GCproto_sizekn, 4, 1),
	LIE("GCproto.uv is not", GCT_PROTO, GCproto_uv, 0, 4),
	LIE("GCproto.lineinfo", GCT_PROTO, GCproto_lineinfo, 0, 1),
	LIE("GCproto.lineinfo", GCT_PROTO, GCproto_sizeuv, 1, 2),
	LIE("GCproto.uvinfo is not", GCT_PROTO, GCproto_uvinfo, 0, 1),
	LIE("GCproto.varinfo", GCT_PROTO, GCproto_varinfo, 0, 1 << 20),
	LIE("GCproto.varinfo", GCT_PROTO, GCproto_varinfo, 0, -(1 << 20)),
	LIE("GCproto.sizept", GCT_PROTO, GCproto_sizept, 4, -(1 << 16)),
	LIE("GCproto.framesize", GCT_PROTO, GCproto_framesize, 1, 1),
	LIE("GCproto.framesize", GCT_PROTO, GCproto_framesize, 1, -1),
	LIE("GCproto.framesize", GCT_PROTO, GCproto_numparams, 1, 200),
	LIE("GCproto.numparams", GCT_PROTO, GCproto_numparams, 1, 1),
	LIE("GCproto.flags", GCT_PROTO, GCproto_flags, 1, 1),
	LIE("GCproto.flags", GCT_PROTO, GCproto_flags, 1, 2),
	LIE("GCproto.chunkname", GCT_PROTO, GCproto_chunkname, 0, 8),
	LIE("GCproto.firstline", GCT_PROTO, GCproto_firstline, 4, INT32_MIN),
	LIE("GCfunc.pc", GCT_FUNCTION, GCfunc_pc, 0, 8),
	LIE("GCfunc.nupvalues", GCT_FUNCTION, GCfunc_nupvalues, 1, 1),
	LIE("GCfunc.env", GCT_FUNCTION, GCfunc_env, 0, 8),
	LIE("GCupval.closed", GCT_UPVALUE, GCupval_closed, 1, 1),
	LIE("GCupval.closed", GCT_UPVALUE, GCupval_closed, 1, -1),
	LIE("GCupval.v", GCT_UPVALUE, GCupval_v, 0, 8),
	LIE("GCtab.asize", GCT_TABLE, GCtab_asize, 4, 1 << 28),
	LIE("GCtab.asize", GCT_TABLE, GCtab_asize, 4, 1 << 26),
	LIE("GCtab.asize or GCtab.array", GCT_TABLE, GCtab_array, 0, 1),
	LIE("GCtab.array is not", GCT_TABLE, GCtab_colo, 1, 0x40),
	LIE("GCtab.metatable", GCT_TABLE, GCtab_metatable, 0, 8),
	LIE("GCtab.hmask", GCT_TABLE, GCtab_hmask, 4, 4),
	LIE("GCudata.env", GCT_USERDATA, GCudata_env, 0, 8),
	LIE("GCudata.metatable", GCT_USERDATA, GCudata_metatable, 0, 8),
	LIE("GCudata.len", GCT_USERDATA, GCudata_len, 4, INT32_MIN),
	LIE("GChead.marked", GCT_TABLE, GChead_marked, 1, 0x20),
	LIE("GChead.marked", GCT_TABLE, GChead_marked, 1, 0x40),
	LIE("GChead.marked", GCT_TABLE, GChead_marked, 1, 0x80),
#undef LIE
};

static const struct lie state_lies[] = {
#define LIE(reason, of, field, size, more) \
	{ \
		reason, offsetof(struct layout, field), more, size, of, false \
	}
#define SET(reason, of, field, size, value) \
	{ \
		reason, offsetof(struct layout, field), value, size, of, true \
	}
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
#undef LIE
#undef SET
};

static const struct lie jit_lies[] = {
#define LIE(reason, field, size, more) \
	{ \
		reason, offsetof(struct layout, field), more, size, OF_J, false \
	}
#define SET(reason, field, size, value) \
	{ \
		reason, offsetof(struct layout, field), value, size, OF_J, true \
	}
	SET("J.sizetrace", J_sizetrace, 4, (1 << 16) + 1),
	SET("J.sizetrace", J_sizetrace, 4, 0),
	SET("J.trace", J_trace, 8, 8),
	SET("J.state", J_state, 4, 1),
	SET("J.state", J_state, 4, 0x17),
	SET("J.parent", J_parent, 4, 1 << 16),
	SET("J.parent or J.exitno", J_exitno, 4, 1 << 16),
	LIE("J.szmcarea", J_szmcarea, 8, 1),
	SET("J.szmcarea", J_szmcarea, 8, 0),
	LIE("J.mcarea", J_szmcarea, 8, 4096),
	LIE("J.mcarea", J_mcarea, 8, 8),
	LIE("J.exitstubgroup", J_exitstubgroup, 8, 8),
#undef LIE
#undef SET
};

static const struct lie trace_lies[] = {
#define LIE(reason, field, size, more) \
	{ \
		reason, offsetof(struct layout, field), more, size, GCT_TRACE, false \
	}
#define SET(reason, field, size, value) \
	{ \
		reason, offsetof(struct layout, field), value, size, GCT_TRACE, true \
	}
	LIE("GCtrace.nk", GCtrace_nk, 4, 1 << 15),
	LIE("GCtrace.ir", GCtrace_nk, 4, 1),
	LIE("GCtrace.ir", GCtrace_ir, 8, 8),
	LIE("GCtrace.snap is not", GCtrace_nins, 4, 1),
	LIE("GCtrace.snap is not", GCtrace_snap, 8, 8),
	LIE("GCtrace.nk or GCtrace.nins", GCtrace_nins, 4, 1 << 16),
	LIE("GCtrace.snapmap is not", GCtrace_nsnap, 2, 1),
	LIE("GCtrace.snapmap is not", GCtrace_snapmap, 8, 4),
	LIE("GCtrace.spadjust", GCtrace_spadjust, 2, 4),
	LIE("GCtrace.spadjust", GCtrace_spadjust, 2, 8192),
	SET("GCtrace.topslot", GCtrace_topslot, 1, 251),
	LIE("GCtrace.mcode or GCtrace.szmcode", GCtrace_mcode, 8, 1 << 20),
	LIE("GCtrace.mcloop", GCtrace_mcloop, 4, 1 << 16),
	LIE("SnapShot.nent", GCtrace_nsnapmap, 2, 1),
#undef LIE
#undef SET
};

static void tell(const struct lie *lie)
{
	const uint64_t at = kept_newest[lie->gct] +
			    (uint64_t) * (const int32_t *)(const void *)((const char *)&kept_vm.layout +
									 lie->field);
	const unsigned size = lie->size ? lie->size : layout_ref_size(&kept_vm.layout);

	kept_pages_put(&kept_state, at, (lie->is_set ? 0 : kept_number(at, size)) + (uint64_t)lie->more,
		       size);
}

static void expect_lies(enum selftest test, const struct lie *of, size_t count)
{
	for (size_t i = 0; i < KEPT_STATES * count; i++) {
		kept_state_begin(kept_states[i / count]);
		tell(&of[i % count]);
		if (run(test) != SELFTEST_FAILED || !strstr(reason, of[i % count].reason))
			fail_msg("%s: \"%s\" %+lld: %s", kept_states[i / count], of[i % count].reason,
				 (long long)of[i % count].more, reason);
		kept_state_end();
	}
}

static void each_field_of_an_object_that_lies_is_found_out(void **state)
{
	(void)state;
	expect_lies(SELFTEST_OBJECTS, lies, sizeof(lies) / sizeof(lies[0]));
}

static void each_field_of_a_state_that_lies_is_found_out(void **state)
{
	(void)state;
	expect_lies(SELFTEST_STATE, state_lies, sizeof(state_lies) / sizeof(state_lies[0]));
}

static void each_field_of_the_compiler_that_lies_is_found_out(void **state)
{
	(void)state;
	expect_lies(SELFTEST_JIT, jit_lies, sizeof(jit_lies) / sizeof(jit_lies[0]));
}

static void each_field_of_a_trace_that_lies_is_found_out(void **state)
{
	(void)state;
	expect_lies(SELFTEST_TRACES, trace_lies, sizeof(trace_lies) / sizeof(trace_lies[0]));
}

/* The last number of each that can be. */
static void what_can_just_be_passes(void **state)
{
	static const struct {
		enum selftest test;
		struct lie set;
	} bounds[] = {
#define SET(test, of, field, size, value) \
	{ \
		test, \
		{ \
#field, offsetof(struct layout, field), value, size, of, true \
		} \
	}
		SET(SELFTEST_STATE, OF_G, g_gc_state, 1, 7),
		SET(SELFTEST_STATE, OF_G, g_vmstate, 4, UINT16_MAX),
		SET(SELFTEST_STATE, OF_G, g_vmstate, 4, VMST_LOWEST),
		SET(SELFTEST_STATE, OF_MAIN, L_status, 1, 7),
		SET(SELFTEST_OBJECTS, GCT_USERDATA, GCudata_len, 4, INT32_MAX),
		SET(SELFTEST_JIT, OF_J, J_state, 4, 0x10),
		SET(SELFTEST_JIT, OF_J, J_parent, 4, UINT16_MAX),
		SET(SELFTEST_JIT, OF_J, J_exitno, 4, UINT16_MAX),
		SET(SELFTEST_TRACES, GCT_TRACE, GCtrace_topslot, 1, 250),
		SET(SELFTEST_TRACES, GCT_TRACE, GCtrace_spadjust, 2, 4096),
#undef SET
	};
	enum { COUNT = sizeof(bounds) / sizeof(bounds[0]) };

	(void)state;
	for (size_t i = 0; i < KEPT_STATES * COUNT; i++) {
		kept_state_begin(kept_states[i / COUNT]);
		tell(&bounds[i % COUNT].set);
		if (run(bounds[i % COUNT].test) != SELFTEST_PASSED)
			fail_msg("%s: %s: %s", kept_states[i / COUNT], bounds[i % COUNT].set.reason, reason);
		kept_state_end();
	}
}

static void put_of_g(int32_t field, uint64_t value, unsigned size)
{
	kept_pages_put(&kept_state, kept_state.g + (uint64_t)(int64_t)field, value, size);
}

/* The least table has 32 chains. Its number of strings may be one off. */
static void the_table_of_strings_has_as_many_as_it_says(void **state)
{
	enum { LEAST_MASK = 31 };

	(void)state;
	for (size_t i = 0; i < KEPT_STATES; i++) {
		const struct layout *layout = &kept_vm.layout;
		unsigned int total, count;

		kept_state_begin(kept_states[i]);
		put_of_g(layout->g_strmask, LEAST_MASK / 2, 4);
		assert_int_equal(run(SELFTEST_STATE), SELFTEST_FAILED);
		assert_string_equal(reason, "g.strmask is no mask");
		/* The first chains of the table that there is. */
		put_of_g(layout->g_strmask, LEAST_MASK, 4);
		put_of_g(layout->g_strnum, 100000, 4);
		assert_int_equal(run(SELFTEST_STATE), SELFTEST_FAILED);
		assert_int_equal(sscanf(reason, "g.strnum is %u, with %u strings", &total, &count), 2);
		assert_int_equal(total, 100000);
		assert_in_range(count, 2, 10000);
		for (int more = -2; more <= 2; more++) {
			put_of_g(layout->g_strnum, (uint64_t)((int64_t)count + more), 4);
			assert_int_equal(run(SELFTEST_STATE),
					 more == -2 || more == 2 ? SELFTEST_FAILED : SELFTEST_PASSED);
		}
		kept_state_end();
	}
}

/* Its first word is code of the VM, here of one byte, and the word before it is not. */
static void the_dispatch_table_has_a_beginning(void **state)
{
	(void)state;
	for (size_t i = 0; i < KEPT_STATES; i++)
		for (int from_code = -1; from_code <= 1; from_code++)
			for (int32_t before = 0; before <= 8; before += 8) {
				kept_state_begin(kept_states[i]);
				put_of_g(kept_vm.layout.GG_dispatch - before,
					 (uint64_t)((int64_t)kept_vm.begin + from_code), 8);
				assert_int_equal(run(SELFTEST_STATE), (from_code == 0) == (before == 0)
									      ? SELFTEST_PASSED
									      : SELFTEST_FAILED);
				kept_state_end();
			}
}

static void the_object_that_was_made_last_may_not_be_complete(void **state)
{
	(void)state;
	kept_state_begin(kept_states[0]);
	assert_int_equal(kept_number(kept_last + (uint64_t)kept_vm.layout.GChead_gct, 1), GCT_TABLE);
	kept_pages_put(&kept_state, kept_last + (uint64_t)kept_vm.layout.GCtab_asize, UINT32_MAX, 4);
	assert_int_equal(run(SELFTEST_OBJECTS), SELFTEST_PASSED);
	kept_pages_put(&kept_state, kept_newest[GCT_TABLE] + (uint64_t)kept_vm.layout.GCtab_asize, UINT32_MAX,
		       4);
	assert_int_equal(run(SELFTEST_OBJECTS), SELFTEST_FAILED);
	kept_state_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_of_strings_has_as_many_as_it_says),
		cmocka_unit_test(the_dispatch_table_has_a_beginning),
		cmocka_unit_test(what_is_kept_passes),
		cmocka_unit_test(each_field_of_an_object_that_lies_is_found_out),
		cmocka_unit_test(each_field_of_a_state_that_lies_is_found_out),
		cmocka_unit_test(each_field_of_the_compiler_that_lies_is_found_out),
		cmocka_unit_test(each_field_of_a_trace_that_lies_is_found_out),
		cmocka_unit_test(what_can_just_be_passes),
		cmocka_unit_test(the_object_that_was_made_last_may_not_be_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Fields of objects that cannot be as they are: in a kept heap (test_heap_read.c), one field at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/kept_fields.h"
#include "tests/unit/kept_lies.h"
#include "unwind/lua/luajit.h"

enum { INSTRUCTION = 4, MODULE_BYTES_MAX = 64 << 20, FFID_C = 1, FFID_LIBRARY = 2 };

static void what_is_kept_passes(void **state)
{
	(void)state;
	kept_passes(SELFTEST_STRINGS);
	kept_passes(SELFTEST_OBJECTS);
}

static void each_field_of_an_object_that_lies_is_found_out(void **state)
{
	static const struct lie lies[] = {
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
	};

	(void)state;
	kept_try(SELFTEST_OBJECTS, SELFTEST_FAILED, lies, sizeof(lies) / sizeof(lies[0]));
}

static void what_can_just_be_passes(void **state)
{
	static const struct lie bounds[] = {
		SET("", GCT_USERDATA, GCudata_len, 4, INT32_MAX),
	};

	(void)state;
	kept_try(SELFTEST_OBJECTS, SELFTEST_PASSED, bounds, sizeof(bounds) / sizeof(bounds[0]));
}

static void the_object_that_was_made_last_may_not_be_complete(void **state)
{
	(void)state;
	kept_state_begin(kept_states[0]);
	assert_int_equal(kept_number(kept_last + (uint64_t)kept_vm.layout.GChead_gct, 1), GCT_TABLE);
	kept_pages_put(&kept_state, kept_last + (uint64_t)kept_vm.layout.GCtab_asize, UINT32_MAX, 4);
	kept_expect(SELFTEST_OBJECTS, SELFTEST_PASSED, "");
	kept_pages_put(&kept_state, kept_newest[GCT_TABLE] + (uint64_t)kept_vm.layout.GCtab_asize, UINT32_MAX,
		       4);
	kept_expect(SELFTEST_OBJECTS, SELFTEST_FAILED, "");
	kept_state_end();
}

/* Let the newest function be one in C, or of the library: at this instruction, with its code there. */
static void put_c_function(uint8_t ffid, uint64_t pc, uint64_t code)
{
	put_of(GCT_FUNCTION, layout->GCfunc_ffid, ffid, 1);
	put_of(GCT_FUNCTION, layout->GCfunc_pc, pc, 0);
	put_of(GCT_FUNCTION, layout->GCfuncC_f, code, 8);
}

static uint64_t shared_instruction(void)
{
	return kept_state.g + (uint64_t)layout->g_bc_cfunc_int;
}

/* In g, one instruction is for functions of the library, the next one for others. The VM's own are behind. */
static void vary_instructions(void)
{
	const uint64_t shared = shared_instruction();
	const uint64_t dispatch = kept_state.g + (uint64_t)layout->GG_dispatch;

	put_c_function(FFID_C, shared + INSTRUCTION, kept_vm.begin);
	kept_expect(SELFTEST_OBJECTS, SELFTEST_PASSED, "");
	put_c_function(FFID_LIBRARY, shared, kept_vm.begin);
	kept_expect(SELFTEST_OBJECTS, SELFTEST_PASSED, "");
	put_c_function(FFID_LIBRARY, dispatch, kept_vm.begin);
	kept_expect(SELFTEST_OBJECTS, SELFTEST_PASSED, "");
	for (unsigned int wrong = 0; wrong <= 3; wrong++) {
		put_c_function(FFID_C, wrong == 3 ? dispatch : shared + wrong * 2 * INSTRUCTION,
			       kept_vm.begin);
		kept_expect(SELFTEST_OBJECTS, SELFTEST_FAILED, "GCfunc.pc of a C function");
	}
	put_c_function(FFID_LIBRARY, shared + INSTRUCTION, kept_vm.begin);
	kept_expect(SELFTEST_OBJECTS, SELFTEST_FAILED, "GCfunc.pc of a C function");
	put_c_function(FFID_LIBRARY, dispatch - INSTRUCTION, kept_vm.begin);
	kept_expect(SELFTEST_OBJECTS, SELFTEST_FAILED, "GCfunc.pc of a C function");
}

static void a_function_in_c_begins_with_an_instruction_in_g(void **state)
{
	(void)state;
	in_each(vary_instructions);
}

/* That of others is anywhere. */
static void vary_places(void)
{
	for (int64_t beyond = 0; beyond <= 1; beyond++)
		for (int sign = -1; sign <= 1; sign += 2) {
			const uint64_t code = (uint64_t)((int64_t)kept_vm.begin +
							 sign * (MODULE_BYTES_MAX + beyond));

			put_c_function(FFID_LIBRARY, shared_instruction(), code);
			kept_expect(SELFTEST_OBJECTS, beyond ? SELFTEST_FAILED : SELFTEST_PASSED,
				    beyond ? "GCfuncC.f" : "");
			put_c_function(FFID_C, shared_instruction() + INSTRUCTION, code);
			kept_expect(SELFTEST_OBJECTS, SELFTEST_PASSED, "");
		}
}

static void the_code_of_the_library_is_near_the_vm(void **state)
{
	(void)state;
	in_each(vary_places);
}

/*---- Strings ----*/

/* The names of metamethods are the first objects that a state keeps, each in its place. */
static void vary_names(void)
{
	static const struct {
		unsigned int place;
		const char *name;
	} names[] = {
		{ 0, "__index" }, { 1, "__newindex" }, { 2, "__gc" },
		{ 4, "__eq" },    { 9, "__call" },     { 16, "__unm" },
	};

	kept_expect(SELFTEST_STRINGS, SELFTEST_PASSED, "6 sound");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const uint64_t string = get_of(OF_G,
					       layout->g_gcroot +
						       (int32_t)(names[i].place * layout_ref_size(layout)),
					       0),
			       text = string + (uint64_t)layout->GCstr_size,
			       len = string + (uint64_t)layout->GCstr_len;
		const size_t length = strlen(names[i].name);
		char reason[64];

		snprintf(reason, sizeof(reason), "g.gcroot does not hold the name %s", names[i].name);
		/* The last one of these is the NUL behind it. */
		for (size_t at = 0; at <= length; at++) {
			assert_int_equal(kept_number(text + at, 1), names[i].name[at]);
			kept_pages_put(&kept_state, text + at, '?', 1);
			kept_expect(SELFTEST_STRINGS, SELFTEST_FAILED, reason);
			kept_pages_put(&kept_state, text + at, (uint64_t)names[i].name[at], 1);
		}
		for (int more = -1; more <= 1; more += 2) {
			kept_pages_put(&kept_state, len, (uint64_t)((int64_t)length + more), 4);
			kept_expect(SELFTEST_STRINGS, SELFTEST_FAILED, reason);
		}
		kept_pages_put(&kept_state, len, length, 4);
		kept_expect(SELFTEST_STRINGS, SELFTEST_PASSED, "6 sound");
	}
}

static void a_name_of_a_metamethod_is_told_by_each_character(void **state)
{
	(void)state;
	in_each(vary_names);
}

/*---- The list of all objects ----*/

enum { WHITES = 3 };

/* What a dead object refers to may be gone. */
static void kill_an_object(void)
{
	const uint64_t current = get_of(OF_G, layout->g_gc_state - 1, 1) & WHITES;

	put_of(GCT_TABLE, layout->GCtab_asize, UINT32_MAX, 4);
	put_of(GCT_TABLE, layout->GChead_marked, current, 1);
	kept_expect(SELFTEST_OBJECTS, SELFTEST_FAILED, "GCtab.asize");
	put_of(GCT_TABLE, layout->GChead_marked, 4, 1); /* black */
	kept_expect(SELFTEST_OBJECTS, SELFTEST_FAILED, "GCtab.asize");
	put_of(GCT_TABLE, layout->GChead_marked, ~current & WHITES, 1);
	kept_expect(SELFTEST_OBJECTS, SELFTEST_PASSED, "");
	/* Everything is, while a state is closed. */
	put_of(OF_G, layout->g_gc_state - 1, WHITES, 1);
	kept_expect(SELFTEST_OBJECTS, SELFTEST_FAILED, "GCtab.asize");
}

static void a_dead_object_is_not_looked_at(void **state)
{
	(void)state;
	in_each(kill_an_object);
}

/* A list of objects that leads to nothing, or to itself. */
static void break_the_list(void)
{
	const uint64_t next = kept_last + (uint64_t)layout->GChead_nextgc, behind = kept_reference(next);
	const unsigned ref = layout_ref_size(layout);
	const uint64_t first = 0x20000000; /* on a page of which nothing is kept */

	kept_pages_put(&kept_state, next, 8, ref);
	kept_expect(SELFTEST_OBJECTS, SELFTEST_FAILED, "the list of objects leads to something else after 1");
	for (uint64_t gct = 3; gct <= 13; gct++) {
		kept_pages_put(&kept_state, first + (uint64_t)layout->GChead_nextgc, behind, ref);
		kept_pages_put(&kept_state, first + (uint64_t)layout->GChead_gct, gct, 1);
		kept_pages_put(&kept_state, next, first, ref);
		if (gct == 3 || gct == 13)
			kept_expect(SELFTEST_OBJECTS, SELFTEST_FAILED,
				    "the list of objects leads to something else after 1");
		else if (gct == GCT_STRING || gct == GCT_TRACE || gct == GCT_CDATA)
			kept_expect(SELFTEST_OBJECTS, SELFTEST_PASSED, "");
	}
	/* It is read as far as a header goes. */
	for (int32_t at = 16 - (int32_t)ref; at <= 17 - (int32_t)ref; at++) {
		const uint64_t newest = kept_newest[GCT_TABLE], before = get_of(OF_G, layout->g_gc_root, 0);

		kept_vm.layout.GChead_nextgc = at;
		put_of(OF_G, layout->g_gc_root, newest, 0);
		kept_pages_put(&kept_state, newest + (uint64_t)at, 8, ref);
		kept_verdict(SELFTEST_OBJECTS);
		assert_int_equal(strcmp(kept_reason, "the list of objects leads to something else after 1") ==
					 0,
				 at == 16 - (int32_t)ref);
		put_of(OF_G, layout->g_gc_root, before, 0);
	}
	kept_vm.layout.GChead_nextgc = 0;
	/* Others lead to itself: so many of them are looked at. */
	kept_pages_put(&kept_state, first + (uint64_t)layout->GChead_gct, GCT_STRING, 1);
	kept_pages_put(&kept_state, first + (uint64_t)layout->GChead_nextgc, first, ref);
	kept_expect(SELFTEST_OBJECTS, SELFTEST_PASSED, "");
}

static void the_list_of_objects_has_objects_only(void **state)
{
	(void)state;
	in_each(break_the_list);
}

static void a_field_of_no_known_offset_fails(void **state)
{
	static const struct field_name fields[] = {
		FIELD(GCfuncC_f),         FIELD(GCfunc_env),
		FIELD(GCfunc_ffid),       FIELD(GCfunc_nupvalues),
		FIELD(GCfunc_pc),         FIELD(GCproto_chunkname),
		FIELD(GCproto_firstline), FIELD(GCproto_flags),
		FIELD(GCproto_framesize), FIELD(GCproto_k),
		FIELD(GCproto_lineinfo),  FIELD(GCproto_numline),
		FIELD(GCproto_numparams), FIELD(GCproto_sizebc),
		FIELD(GCproto_sizekgc),   FIELD(GCproto_sizekn),
		FIELD(GCproto_sizept),    FIELD(GCproto_sizeuv),
		FIELD(GCproto_trace),     FIELD(GCproto_uv),
		FIELD(GCproto_uvinfo),    FIELD(GCproto_varinfo),
		FIELD(GCtab_array),       FIELD(GCtab_asize),
		FIELD(GCtab_colo),        FIELD(GCtab_hmask),
		FIELD(GCtab_metatable),   FIELD(GCtab_node),
		FIELD(GCudata_env),       FIELD(GCudata_len),
		FIELD(GCudata_metatable), FIELD(GCupval_closed),
		FIELD(GCupval_v),         FIELD(L_env),
		FIELD(Node_next),
	};

	(void)state;
	kept_try_unknown(SELFTEST_OBJECTS, fields, sizeof(fields) / sizeof(fields[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_field_of_no_known_offset_fails),
		cmocka_unit_test(what_is_kept_passes),
		cmocka_unit_test(each_field_of_an_object_that_lies_is_found_out),
		cmocka_unit_test(what_can_just_be_passes),
		cmocka_unit_test(the_object_that_was_made_last_may_not_be_complete),
		cmocka_unit_test(a_function_in_c_begins_with_an_instruction_in_g),
		cmocka_unit_test(the_code_of_the_library_is_near_the_vm),
		cmocka_unit_test(a_name_of_a_metamethod_is_told_by_each_character),
		cmocka_unit_test(a_dead_object_is_not_looked_at),
		cmocka_unit_test(the_list_of_objects_has_objects_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * Self-tests read each field with the size that it has: what lies next to it may be anything. In a kept heap.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/kept_fields.h"
#include "tests/unit/kept_lies.h"
#include "unwind/lua/luajit.h"

enum {
	READS_MAX = 256,
	HEADER_BYTES = 16, /* of an object, read at once */
	HASH_BEHIND_GCT = 3,
	C_FRAME = 0x10000100, /* on a page of which nothing is kept */
};

/* lj_obj.h, lj_jit.h and lj_frame.h. 0: a reference. */
static const struct {
	const char *name;
	unsigned size;
} sizes[] = {
	{ "L.status", 1 },
	{ "L.glref", 0 },
	{ "L.base", 0 },
	{ "L.top", 0 },
	{ "L.maxstack", 0 },
	{ "L.stack", 0 },
	{ "L.openupval", 0 },
	{ "L.env", 0 },
	{ "L.cframe", 8 },
	{ "L.stacksize", 4 },
	{ "GChead.marked", 1 },
	{ "GChead.gct", 1 },
	{ "GCfunc.ffid", 1 },
	{ "GCfunc.nupvalues", 1 },
	{ "GCfunc.env", 0 },
	{ "GCfunc.pc", 0 },
	{ "GCfuncC.f", 8 },
	{ "GCfuncL.uvptr", 0 },
	{ "GCproto.numparams", 1 },
	{ "GCproto.framesize", 1 },
	{ "GCproto.sizebc", 4 },
	{ "GCproto.k", 0 },
	{ "GCproto.uv", 0 },
	{ "GCproto.sizekgc", 4 },
	{ "GCproto.sizekn", 4 },
	{ "GCproto.sizept", 4 },
	{ "GCproto.sizeuv", 1 },
	{ "GCproto.flags", 1 },
	{ "GCproto.trace", 2 },
	{ "GCproto.chunkname", 0 },
	{ "GCproto.firstline", 4 },
	{ "GCproto.numline", 4 },
	{ "GCproto.lineinfo", 0 },
	{ "GCproto.uvinfo", 0 },
	{ "GCproto.varinfo", 0 },
	{ "GCtab.colo", 1 },
	{ "GCtab.array", 0 },
	{ "GCtab.metatable", 0 },
	{ "GCtab.node", 0 },
	{ "GCtab.asize", 4 },
	{ "GCtab.hmask", 4 },
	{ "Node.val", 8 },
	{ "Node.key", 8 },
	{ "Node.next", 0 },
	{ "GCudata.env", 0 },
	{ "GCudata.len", 4 },
	{ "GCudata.metatable", 0 },
	{ "GCupval.closed", 1 },
	{ "GCupval.v", 0 },
	{ "GCstr.len", 4 },
	{ "g.gc_total", 0 },
	{ "g.gc_state", 1 },
	{ "g.gc_root", 0 },
	{ "g.strhash", 0 },
	{ "g.strmask", 4 },
	{ "g.strnum", 4 },
	{ "g.vmstate", 4 },
	{ "g.mainthref", 0 },
	{ "g.registrytv", 8 },
	{ "g.bc_cfunc_int", 4 },
	{ "g.cur_L", 0 },
	{ "g.jit_base", 0 },
	{ "g.ctype_state", 0 },
	{ "g.gcroot", 0 },
	{ "GG.dispatch", 8 },
	{ "J.L", 8 },
	{ "J.pt", 8 },
	{ "J.state", 4 },
	{ "J.trace", 8 },
	{ "J.sizetrace", 4 },
	{ "J.exitstubgroup", 8 },
	{ "J.parent", 4 },
	{ "J.exitno", 4 },
	{ "J.mcarea", 8 },
	{ "J.szmcarea", 8 },
	{ "GCtrace.nsnap", 2 },
	{ "GCtrace.nins", 4 },
	{ "GCtrace.ir", 8 },
	{ "GCtrace.nk", 4 },
	{ "GCtrace.snap", 8 },
	{ "GCtrace.snapmap", 8 },
	{ "GCtrace.startpt", 0 },
	{ "GCtrace.startpc", 0 },
	{ "GCtrace.startins", 4 },
	{ "GCtrace.szmcode", 4 },
	{ "GCtrace.mcode", 8 },
	{ "GCtrace.mcloop", 4 },
	{ "GCtrace.nchild", 2 },
	{ "GCtrace.spadjust", 2 },
	{ "GCtrace.traceno", 2 },
	{ "GCtrace.link", 2 },
	{ "GCtrace.root", 2 },
	{ "GCtrace.nextroot", 2 },
	{ "GCtrace.nextside", 2 },
	{ "GCtrace.topslot", 1 },
	{ "GCtrace.linktype", 1 },
	{ "SnapShot.ref", 2 },
	{ "SnapShot.mcofs", 2 },
	{ "SnapShot.nslots", 1 },
	{ "SnapShot.topslot", 1 },
	{ "SnapShot.nent", 1 },
	{ "CFRAME.NRES", 4 },
	{ "CFRAME.ERRF", 4 },
	{ "CFRAME.L", 0 },
	{ "CFRAME.PREV", 8 },
};

enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

/* Places at which fields are, and whether they were read. */
static struct read {
	char name[32];
	uint64_t address;
	unsigned size;
	bool is_done;
} reads[READS_MAX];
static size_t read_count;

static void add_read(const char *name, uint64_t address, unsigned size)
{
	struct read *read = &reads[read_count];

	assert_in_range(read_count++, 0, READS_MAX - 1);
	*read = (struct read){ .address = address, .size = size ? size : layout_ref_size(layout) };
	snprintf(read->name, sizeof(read->name), "%s", name);
}

/* All fields of an object, as far as the build has them. */
static void add_object(const char *structure, uint64_t address)
{
	assert_int_not_equal(address, 0);
	for (size_t i = 0; i < layout_field_count; i++) {
		const struct layout_field *field = &layout_fields[i];

		for (size_t j = 0; j < SIZES; j++)
			if (strcmp(field->structure, structure) == 0 &&
			    strcmp(field->name, sizes[j].name) == 0 && layout_offset(layout, field) >= 0)
				add_read(field->name, address + (uint64_t)layout_offset(layout, field),
					 sizes[j].size);
	}
}

static void read_sized(struct memory *memory, struct memory_range *ranges, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < read_count; j++) {
			if (reads[j].address != ranges[i].address || ranges[i].length == HEADER_BYTES)
				continue;
			if (reads[j].size != ranges[i].length)
				fail_msg("%s is read with %zu bytes", reads[j].name, ranges[i].length);
			reads[j].is_done = true;
		}
	kept_pages_read(memory, ranges, count);
}

/* The first Lua function with an upvalue, and the first function in C, among all objects. */
static uint64_t find_function(bool is_lua)
{
	uint64_t at = kept_newest[GCT_FUNCTION];

	for (; at; at = kept_reference(at + (uint64_t)layout->GChead_nextgc))
		if (kept_number(at + (uint64_t)layout->GChead_gct, 1) == GCT_FUNCTION &&
		    (kept_number(at + (uint64_t)layout->GCfunc_ffid, 1) == 0) == is_lua &&
		    (!is_lua || kept_number(at + (uint64_t)layout->GCfunc_nupvalues, 1) > 0))
			return at;
	fail_msg("no function is kept");
	return 0;
}

static void put_c_frame(void)
{
	put_of(OF_MAIN, layout->L_cframe, C_FRAME, 8);
	kept_pages_put(&kept_state, C_FRAME + (uint64_t)layout->CFRAME_L, kept_newest[OF_MAIN],
		       layout_ref_size(layout));
	kept_pages_put(&kept_state, C_FRAME + (uint64_t)layout->CFRAME_NRES, (uint64_t)-8, 4);
	kept_pages_put(&kept_state, C_FRAME + (uint64_t)layout->CFRAME_ERRF, 0, 4);
	kept_pages_put(&kept_state, C_FRAME + (uint64_t)layout->CFRAME_PREV, 0, 8);
}

static void add_objects(void)
{
	const uint64_t trace = kept_newest[GCT_TRACE], lua = find_function(true), J = kept_newest[OF_J],
		       registry = get_of(OF_G, layout->g_registrytv, 8) &
				  ((UINT64_C(1) << (layout->gc64 ? 47 : 32)) - 1);

	read_count = 0;
	add_object("L", kept_newest[OF_MAIN]);
	add_object("GChead", kept_newest[OF_MAIN]);
	add_object("GCfunc", lua);
	add_object("GCfuncL", lua);
	add_object("GCfuncC", find_function(false));
	add_object("GCproto", kept_newest[GCT_PROTO]);
	add_object("GCtab", kept_newest[GCT_TABLE]);
	add_object("Node", kept_reference(registry + (uint64_t)layout->GCtab_node));
	add_object("GCudata", kept_newest[GCT_USERDATA]);
	add_object("GCupval", kept_newest[GCT_UPVALUE]);
	add_object("GCstr", get_of(OF_G, layout->g_gcroot, 0));
	add_object("g", kept_state.g);
	add_object("GG", kept_state.g);
	add_object("J", J);
	add_object("GCtrace", trace);
	add_object("SnapShot", kept_number(trace + (uint64_t)layout->GCtrace_snap, 8));
	add_object("CFRAME", C_FRAME);
	/* What is next to fields of the layout, and what has two sizes. */
	add_read("userdata.udtype", kept_newest[GCT_USERDATA] + (uint64_t)layout->GCfunc_ffid, 1);
	add_read("gc.currentwhite", kept_state.g + (uint64_t)layout->g_gc_state - 1, 1);
	add_read("J.freetrace", J + (uint64_t)layout->J_sizetrace - 4, 4);
	add_read("J.mctop", J + (uint64_t)layout->J_mcarea + 8, 8);
	add_read("J.mcbot", J + (uint64_t)layout->J_mcarea + 16, 8);
	add_read("GCtrace.nsnapmap", trace + (uint64_t)layout->GCtrace_nsnapmap,
		 layout->SnapShot_ref - layout->SnapShot_mapofs == 2 ? 2 : 4);
	add_read("SnapShot.mapofs",
		 kept_number(trace + (uint64_t)layout->GCtrace_snap, 8) + (uint64_t)layout->SnapShot_mapofs,
		 layout->SnapShot_ref - layout->SnapShot_mapofs == 2 ? 2 : 4);
	add_read("the first trace", kept_number(J + (uint64_t)layout->J_trace, 8) + layout_ref_size(layout),
		 0);
}

static void read_all(void)
{
	put_c_frame();
	/* What was recorded last is looked at while something is. */
	put_of(OF_J, layout->J_state, 0x11, 4);
	put_of(OF_J, layout->J_L, kept_newest[OF_MAIN], 8);
	put_of(OF_J, layout->J_pt, kept_newest[GCT_PROTO], 8);
	add_objects();
	kept_state.memory.read_ranges = read_sized;
	for (enum selftest test = 0; test < SELFTEST_COUNT; test++)
		kept_expect(test, SELFTEST_PASSED, "");
	for (size_t i = 0; i < read_count; i++)
		if (!reads[i].is_done)
			fail_msg("%s is not read", reads[i].name);
	kept_state.memory.read_ranges = kept_pages_read;
}

static void each_field_is_read_with_its_size(void **state)
{
	(void)state;
	in_each(read_all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_field_is_read_with_its_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

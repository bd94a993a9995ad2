/* SPDX-License-Identifier: MIT */
/* Tables that cannot be as they are, and what is kept in the registry: in a kept heap (test_heap_read.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/kept_fields.h"
#include "tests/unit/kept_lies.h"
#include "unwind/lua/luajit.h"

enum {
	TABLE = 0x20000000, /* on pages of which nothing is kept */
	NODES = 0x20010000,
	SLOTS = 0x20020000,
	STRING = 0x20030000,
	FILE_DATA = 0x20040000,
	PAGE = 4096,
	SLOT = 8,
	NODE_COUNT = 8,
	LOOKED_AT_MAX = 1024, /* nodes of one table */
	ARRAY_MAX = 1 << 27,
	IO_FILE = 1, /* udtype */
	IO_FILE_BYTES = 16,
	HASH_BEHIND_GCT = 3,
};

static void put(uint64_t at, uint64_t value, size_t size)
{
	kept_pages_put(&kept_state, at, value, size);
}

static void put_reference(uint64_t at, uint64_t value)
{
	put(at, value, layout_ref_size(layout));
}

static void put_field(int32_t field, uint64_t value, unsigned size)
{
	put(TABLE + (uint64_t)field, value, size ? size : layout_ref_size(layout));
}

static void expect(bool passes, const char *reason)
{
	kept_expect(SELFTEST_OBJECTS, passes ? SELFTEST_PASSED : SELFTEST_FAILED, passes ? "" : reason);
}

/* A slot with an object, and one with nil. */
static uint64_t tagged(uint8_t gct, uint64_t object)
{
	return ~(uint64_t)gct << (layout->gc64 ? 47 : 32) | object;
}

static const uint64_t nil = UINT64_MAX;

static uint64_t node_at(uint64_t index)
{
	return NODES + index * (uint64_t)layout->Node_size;
}

static void put_node(uint64_t index, uint64_t key, uint64_t value, uint64_t next)
{
	put(node_at(index) + (uint64_t)layout->Node_key, key, SLOT);
	put(node_at(index) + (uint64_t)layout->Node_val, value, SLOT);
	put_reference(node_at(index) + (uint64_t)layout->Node_next, next);
}

/* Put an object where the newest one of its type is looked for: behind the object that was made last. */
static void put_newest(uint64_t object, uint8_t gct)
{
	const uint64_t next = (uint64_t)layout->GChead_nextgc;

	put(object + (uint64_t)layout->GChead_gct, gct, 1);
	put(object + (uint64_t)layout->GChead_marked, get_of(gct, layout->GChead_marked, 1), 1);
	put_reference(object + next, kept_reference(kept_last + next));
	put_reference(kept_last + next, object);
}

/* A table of nothing. */
static void make_table(void)
{
	put_newest(TABLE, GCT_TABLE);
	put_field(layout->GCtab_node, NODES, 0);
	put_field(layout->GCtab_hmask, NODE_COUNT - 1, 4);
	for (uint64_t i = 0; i < NODE_COUNT; i++)
		put_node(i, nil, nil, 0);
	expect(true, "");
}

static void put_array(uint64_t array, uint64_t asize)
{
	put_field(layout->GCtab_array, array, 0);
	put_field(layout->GCtab_asize, asize, 4);
}

/*---- Arrays ----*/

static void vary_arrays(void)
{
	const char *const absurd = "GCtab.asize or GCtab.array is beyond belief";
	const char *const short_of = "GCtab.asize is more than there is";

	make_table();
	put(SLOTS, 0, SLOT);
	put_array(SLOTS, PAGE / SLOT);
	expect(true, "");
	put_array(SLOTS, PAGE / SLOT + 1);
	expect(false, short_of);
	put_array(SLOTS, 0);
	expect(true, "");
	put_array(SLOTS + 4, 1);
	expect(false, absurd);
	/* Where there is none it has no slots, even if something could be read there. */
	put_array(0, SLOTS / SLOT + 1);
	expect(false, absurd);
	put(SLOTS + (ARRAY_MAX - 1) * (uint64_t)SLOT, 0, SLOT);
	put(SLOTS + ARRAY_MAX * (uint64_t)SLOT, 0, SLOT);
	put_array(SLOTS, ARRAY_MAX);
	expect(true, "");
	put_array(SLOTS, ARRAY_MAX + 1);
	expect(false, absurd);
}

static void an_array_has_as_many_slots_as_it_says(void **state)
{
	(void)state;
	in_each(vary_arrays);
}

static void expect_colo(uint64_t array, uint8_t colo, bool passes)
{
	put_array(array, 1);
	put_field(layout->GCtab_colo, colo, 1);
	expect(passes, "GCtab.array is not colocated as GCtab.colo says");
}

static void vary_places_of_arrays(void)
{
	const uint64_t own = TABLE + (uint64_t)layout->GCtab_size;

	make_table();
	put(SLOTS, 0, SLOT);
	expect_colo(own, 1, true);
	expect_colo(own, 0x7f, true);
	expect_colo(own, 0, true); /* an allocator without headers put it there */
	expect_colo(own, 0x81, false);
	expect_colo(SLOTS, 1, false);
	expect_colo(SLOTS, 0x7f, false);
	expect_colo(SLOTS, 0, true);
	expect_colo(SLOTS, 0x81, true); /* it has left them */
}

static void an_array_is_made_with_its_table_or_apart(void **state)
{
	(void)state;
	in_each(vary_places_of_arrays);
}

/*---- Nodes ----*/

static void vary_masks(void)
{
	make_table();
	for (uint64_t hmask = 0; hmask < NODE_COUNT; hmask++) {
		put_field(layout->GCtab_hmask, hmask, 4);
		expect((hmask & (hmask + 1)) == 0, "GCtab.hmask is no mask");
	}
	/* Only the first nodes are looked at. */
	for (uint64_t i = 0; i < LOOKED_AT_MAX; i++)
		put_node(i, nil, nil, 0);
	put_node(LOOKED_AT_MAX, nil, nil, 1);
	put_field(layout->GCtab_hmask, ARRAY_MAX - 1, 4);
	expect(true, "");
	put_field(layout->GCtab_hmask, 2 * ARRAY_MAX - 1, 4);
	expect(false, "GCtab.hmask is no mask");
	put_field(layout->GCtab_hmask, ARRAY_MAX - 1, 4);
	put_node(LOOKED_AT_MAX - 1, nil, nil, 1);
	expect(false, "Node.next leads out of the table");
	kept_pages_forget(&kept_state, node_at(LOOKED_AT_MAX / 2));
	expect(false, "Node_next cannot be read");
}

static void a_table_has_a_power_of_two_of_nodes(void **state)
{
	(void)state;
	in_each(vary_masks);
}

static void expect_next(uint64_t next, bool passes)
{
	put_node(3, nil, nil, next);
	expect(passes, "Node.next leads out of the table");
}

static void vary_chains(void)
{
	make_table();
	expect_next(node_at(0), true);
	expect_next(node_at(1), true);
	expect_next(node_at(NODE_COUNT - 1), true);
	expect_next(node_at(NODE_COUNT), false);
	expect_next(node_at(0) - (uint64_t)layout->Node_size, false);
	expect_next(node_at(1) + SLOT, false);
	expect_next(node_at(1) + 1, false);
}

static void a_node_leads_to_another_of_its_table(void **state)
{
	(void)state;
	in_each(vary_chains);
}

/* A string with a hash of a test's choice. */
static uint64_t make_string(uint32_t hash)
{
	put(STRING + (uint64_t)layout->GChead_gct, GCT_STRING, 1);
	put(STRING + (uint64_t)layout->GChead_gct + HASH_BEHIND_GCT, hash, 4);
	return tagged(GCT_STRING, STRING);
}

static void vary_strings(void)
{
	const char *const lost = "Node.key is not where the hash of a string leads";
	const uint64_t value = tagged(GCT_TABLE, TABLE);

	make_table();
	for (uint32_t hash = 0; hash < 2 * NODE_COUNT; hash++) {
		const uint64_t place = hash % NODE_COUNT, other = (place + 3) % NODE_COUNT;

		put_node(place, make_string(hash), value, 0);
		expect(true, "");
		/* It may be further along the chain of that node. */
		put_node(place, nil, nil, 0);
		put_node(other, make_string(hash), value, 0);
		expect(false, lost);
		put_node(place, nil, nil, node_at(other));
		expect(true, "");
		put_node(place, nil, nil, node_at((place + 1) % NODE_COUNT));
		expect(false, lost);
		put_node((place + 1) % NODE_COUNT, nil, nil, node_at(other));
		expect(true, "");
		/* A chain that goes in a circle never comes to it. */
		put_node((place + 1) % NODE_COUNT, nil, nil, node_at(place));
		expect(false, lost);
		/* Without a value, its key may be anything. */
		put_node((place + 1) % NODE_COUNT, nil, nil, 0);
		put_node(other, make_string(hash), nil, 0);
		expect(true, "");
		put_node(place, nil, nil, 0);
		put_node(other, nil, nil, 0);
	}
}

static void a_string_is_on_the_chain_of_its_hash(void **state)
{
	(void)state;
	in_each(vary_strings);
}

static void vary_keys(void)
{
	const uint64_t value = tagged(GCT_TABLE, TABLE);

	make_table();
	put_node(2, tagged(GCT_TABLE, TABLE), value, 0);
	expect(true, "");
	put_node(2, tagged(GCT_FUNCTION, TABLE), value, 0);
	expect(false, "Node.key leads to an object of type");
	put_node(2, tagged(GCT_STRING, PAGE), value, 0);
	expect(false, "Node.key leads nowhere");
	put_node(2, tagged(GCT_USERDATA, TABLE), value, 0);
	expect(false, "Node.key leads to an object of type");
	/* Beside the tags of objects are those of a light userdata and of an integer. */
	put_node(2, tagged(GCT_STRING - 1, TABLE), value, 0);
	expect(true, "");
	put_node(2, tagged(GCT_USERDATA + 1, TABLE), value, 0);
	expect(true, "");
	/* Numbers and booleans are no objects, false is a value. */
	put_node(2, UINT64_C(0x3ff0000000000000), tagged(1, 0), 0);
	expect(true, "");
	put_node(2, tagged(GCT_FUNCTION, TABLE), tagged(1, 0), 0);
	expect(false, "Node.key leads to an object of type");
}

static void a_key_is_of_the_type_that_its_slot_says(void **state)
{
	(void)state;
	in_each(vary_keys);
}

/*---- Globals ----*/

static void vary_globals(void)
{
	make_table();
	put_of(OF_MAIN, layout->L_env, TABLE, 0);
	expect(true, "");
	put_node(2, UINT64_C(0x3ff0000000000000), tagged(1, 0), 0);
	expect(false, "Node.key of no global is a name");
	put_node(3, make_string(3), tagged(1, 0), 0);
	expect(true, "");
	put_node(3, make_string(3), nil, 0);
	expect(false, "Node.key of no global is a name");
	put_node(2, UINT64_C(0x3ff0000000000000), nil, 0);
	expect(true, "");
}

static void globals_have_names(void **state)
{
	(void)state;
	in_each(vary_globals);
}

/*---- The registry ----*/

static uint64_t registry(void)
{
	return get_of(OF_G, layout->g_registrytv, SLOT) & ((UINT64_C(1) << (layout->gc64 ? 47 : 32)) - 1);
}

/* The slot of the value with this name. */
static uint64_t registered(const char *name)
{
	const uint64_t nodes = kept_reference(registry() + (uint64_t)layout->GCtab_node),
		       hmask = kept_number(registry() + (uint64_t)layout->GCtab_hmask, 4);

	for (uint64_t i = 0; i <= hmask; i++) {
		const uint64_t node = nodes + i * (uint64_t)layout->Node_size,
			       key = kept_number(node + (uint64_t)layout->Node_key, SLOT);
		char text[16] = "";

		if (key >> (layout->gc64 ? 47 : 32) != tagged(GCT_STRING, 0) >> (layout->gc64 ? 47 : 32))
			continue;
		memory_read(&kept_state.memory,
			    (key & ((UINT64_C(1) << (layout->gc64 ? 47 : 32)) - 1)) +
				    (uint64_t)layout->GCstr_size,
			    text, strlen(name) + 1);
		if (strcmp(text, name) == 0)
			return node + (uint64_t)layout->Node_val;
	}
	fail_msg("the registry has no %s", name);
	return 0;
}

static void vary_the_registry(void)
{
	const uint64_t loaded = registered("_LOADED"), before = kept_number(loaded, SLOT);
	const uint64_t older = registry() + (uint64_t)layout->GChead_nextgc;

	put(loaded, nil, SLOT);
	expect(true, "");
	put(loaded, tagged(1, 0), SLOT);
	expect(false, "Node.val of registry._LOADED is no table");
	put(loaded, tagged(GCT_FUNCTION, kept_newest[GCT_FUNCTION]), SLOT);
	expect(false, "Node.val of registry._LOADED is no table");
	put(loaded, tagged(GCT_TABLE, kept_newest[GCT_FUNCTION]), SLOT);
	expect(false, "registry._LOADED leads to an object of type");
	put(loaded, before, SLOT);
	expect(true, "");
	/* The globals may be gone, which only are older. */
	put_reference(older, kept_newest[OF_MAIN]);
	expect(true, "");
	put_reference(older, kept_newest[GCT_TABLE]);
	expect(false, "g.registrytv holds a table that is not the state's second object");
	put_reference(older, kept_newest[GCT_FUNCTION]);
	expect(false, "GChead.nextgc of the registry leads to an object of type");
}

static void the_registry_is_older_than_all_but_the_globals(void **state)
{
	(void)state;
	in_each(vary_the_registry);
}

/* Behind its nodes, or behind those of many that are looked at, lies what would be wrong in the registry. */
static void vary_what_lies_behind_the_registry(void)
{
	const uint64_t loaded = registered("_LOADED") - (uint64_t)layout->Node_val;
	const uint64_t name = kept_number(loaded + (uint64_t)layout->Node_key, SLOT);
	static const uint64_t counts[] = { NODE_COUNT, LOOKED_AT_MAX, 2 * LOOKED_AT_MAX };

	put_reference(registry() + (uint64_t)layout->GCtab_node, NODES);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		put(registry() + (uint64_t)layout->GCtab_hmask, counts[i] - 1, 4);
		for (uint64_t j = 0; j < counts[i]; j++)
			put_node(j, nil, nil, 0);
		put_node(counts[i] < LOOKED_AT_MAX ? counts[i] : LOOKED_AT_MAX, name, tagged(1, 0), 0);
		expect(true, "");
	}
}

static void the_registry_ends_with_its_nodes(void **state)
{
	(void)state;
	in_each(vary_what_lies_behind_the_registry);
}

/*---- Userdata ----*/

static void put_data(int32_t field, uint64_t value, unsigned size)
{
	put(FILE_DATA + (uint64_t)field, value, size ? size : layout_ref_size(layout));
}

/* All files that there are, and one that is made up, get another metatable. */
static void vary_files(void)
{
	const uint64_t slot = registered("FILE*"), own = kept_number(slot, SLOT);
	const uint64_t metatable = own & ((UINT64_C(1) << (layout->gc64 ? 47 : 32)) - 1);
	const char *const foreign = "GCudata.metatable of no file is that of files";

	put_newest(FILE_DATA, GCT_USERDATA);
	put_data(layout->GCfunc_ffid, IO_FILE, 1);
	put_data(layout->GCudata_env, kept_newest[GCT_TABLE], 0);
	put_data(layout->GCudata_metatable, metatable, 0);
	put_data(layout->GCudata_len, IO_FILE_BYTES, 4);
	expect(true, "");
	for (uint32_t length = IO_FILE_BYTES - 1; length <= IO_FILE_BYTES + 1; length += 2) {
		put_data(layout->GCudata_len, length, 4);
		expect(false, "GCudata.len is beyond belief");
		put_data(layout->GCfunc_ffid, 0, 1);
		expect(true, "");
		put_data(layout->GCfunc_ffid, IO_FILE, 1);
	}
	put_data(layout->GCudata_len, IO_FILE_BYTES, 4);
	/* One of them that has it is enough. */
	put(slot, tagged(GCT_TABLE, kept_newest[GCT_TABLE]), SLOT);
	expect(false, foreign);
	put_data(layout->GCudata_metatable, kept_newest[GCT_TABLE], 0);
	expect(true, "");
	put_data(layout->GCfunc_ffid, 0, 1);
	expect(false, foreign);
	/* Without a name for their metatable, or without files, nothing is told. */
	put(slot, nil, SLOT);
	expect(true, "");
}

static void some_file_has_the_metatable_of_files(void **state)
{
	(void)state;
	in_each(vary_files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_array_has_as_many_slots_as_it_says),
		cmocka_unit_test(an_array_is_made_with_its_table_or_apart),
		cmocka_unit_test(a_table_has_a_power_of_two_of_nodes),
		cmocka_unit_test(a_node_leads_to_another_of_its_table),
		cmocka_unit_test(a_string_is_on_the_chain_of_its_hash),
		cmocka_unit_test(a_key_is_of_the_type_that_its_slot_says),
		cmocka_unit_test(globals_have_names),
		cmocka_unit_test(the_registry_is_older_than_all_but_the_globals),
		cmocka_unit_test(the_registry_ends_with_its_nodes),
		cmocka_unit_test(some_file_has_the_metatable_of_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* How much is copied of what values lead to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_memory.h"
#include "unwind/lua/luajit.h"
#include "unwind/lua/value_capture.h"

enum {
	FUNCTION = MADE_UP_AT + 0x100,
	PROTO = MADE_UP_AT + 0x300,
	UPVALUES = MADE_UP_AT + 0x400, /* each UPVALUE_BYTES further */
	UPVALUE_BYTES = 0x40,
	SLOT = MADE_UP_AT + 0x600, /* of a stack: an upvalue's value */
	TABLE = MADE_UP_AT + 0x700,
	ARRAY = MADE_UP_AT + 0x800,
	NODES = MADE_UP_AT + 0xc00,
	OTHER = MADE_UP_AT + 0x1c00, /* another table */
	STRINGS = MADE_UP_AT + 0x2000,
	STRING_BYTES = 0x400,
	NODE_SIZE = 24,
	HEADER_SIZE = 40, /* of a table */
	PROTO_SIZE = 64,
};

static const struct layout layout = {
	.gc64 = true,
	.GChead_gct = 9,
	.GCstr_len = 20,
	.GCstr_size = 24,
	.GCtab_array = 16,
	.GCtab_node = 24,
	.GCtab_asize = 32,
	.GCtab_hmask = 36,
	.GCtab_size = HEADER_SIZE,
	.Node_val = 0,
	.Node_key = 8,
	.Node_size = NODE_SIZE,
	.GCfunc_ffid = 10,
	.GCfunc_nupvalues = 11,
	.GCfunc_pc = 32,
	.GCfuncC_f = 40,
	.GCfuncL_uvptr = 40,
	.GCupval_v = 24,
	.GCupval_size = 40,
	.GCproto_chunkname = 40,
	.GCproto_size = PROTO_SIZE,
};

static struct snapshot *snapshot;
static struct value_capture *values;

/* The bytes that were asked for: what lies near them is copied with them. */
static bool asked[MADE_UP_BYTES];

INSTEAD_OF(snapshot_capture);
void __wrap_snapshot_capture(struct snapshot *of, struct memory_range *ranges, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (size_t at = 0; at < ranges[i].length; at++)
			if (ranges[i].address + at - MADE_UP_AT < MADE_UP_BYTES)
				asked[ranges[i].address + at - MADE_UP_AT] = true;
	__real_snapshot_capture(of, ranges, count);
}

static int begin(void **state)
{
	(void)state;
	memset(asked, 0, sizeof(asked));
	snapshot = snapshot_new(made_up_memory_begin());
	values = value_capture_new();
	if (!snapshot || !values)
		return -1;
	value_capture_begin(values, snapshot, &layout);
	return 0;
}

static int end(void **state)
{
	(void)state;
	value_capture_free(values);
	snapshot_free(snapshot);
	return 0;
}

static uint64_t tagged(int32_t tag, uint64_t object)
{
	return (uint64_t)(int64_t)tag << 47 | object;
}

static uint64_t put_string(size_t i, uint32_t length)
{
	const uint64_t at = STRINGS + i * STRING_BYTES;

	put(at + 9, GCT_STRING, 1);
	put(at + 20, length, 4);
	return at;
}

static void put_table(uint64_t at, uint64_t array, uint32_t elements, uint64_t nodes, uint32_t node_count)
{
	put(at + 9, GCT_TABLE, 1);
	put(at + 16, array, 8);
	put(at + 24, nodes, 8);
	put(at + 32, elements, 4);
	put(at + 36, node_count - 1, 4);
}

static void put_function(uint8_t upvalues)
{
	put(FUNCTION + 9, GCT_FUNCTION, 1);
	put(FUNCTION + 10, FF_LUA, 1);
	put(FUNCTION + 11, upvalues, 1);
	put(FUNCTION + 32, PROTO + PROTO_SIZE, 8);
	put(PROTO + 9, GCT_PROTO, 1);
}

/* An upvalue of the function, whose value is in this place. */
static void put_upvalue(size_t i, uint64_t place)
{
	const uint64_t at = UPVALUES + i * UPVALUE_BYTES;

	put(FUNCTION + 40 + i * 8, at, 8);
	put(at + 24, place, 8);
}

/* Its value is in itself. */
static void put_closed_upvalue(size_t i, uint64_t value)
{
	put_upvalue(i, UPVALUES + i * UPVALUE_BYTES + 16);
	put(UPVALUES + i * UPVALUE_BYTES + 16, value, 8);
}

/* Copy what one value leads to. */
static void copy(int32_t tag, uint64_t object)
{
	assert_true(value_capture_add(values, tagged(tag, object)));
	value_capture_copy(values);
}

static bool is_copied(uint64_t address, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!asked[address - MADE_UP_AT + i])
			return false;
	return true;
}

/* So much of this is copied, and no byte more. */
static void assert_copied(uint64_t address, size_t length)
{
	assert_true(is_copied(address, length));
	assert_false(is_copied(address, length + 1));
}

/* All bytes of a string. */
static bool has_string(uint64_t string, uint32_t length)
{
	return is_copied(string, 24 + (size_t)length);
}

static void a_string_is_copied_as_far_as_it_is_shown(void **state)
{
	(void)state;
	copy(TAG_STR, put_string(0, 5));
	assert_copied(STRINGS, 24 + 5);
	copy(TAG_STR, put_string(1, VALUE_STRING_BYTES + 1));
	assert_copied(STRINGS + STRING_BYTES, 24 + VALUE_STRING_BYTES);
}

static void a_table_is_copied_as_far_as_it_is_shown(void **state)
{
	(void)state;
	put_table(TABLE, ARRAY, VALUE_TABLE_SLOTS + 1, NODES, 2 * VALUE_TABLE_NODES);
	copy(TAG_TAB, TABLE);
	assert_copied(TABLE, HEADER_SIZE);
	assert_copied(ARRAY, VALUE_TABLE_SLOTS * SLOT_SIZE);
	assert_copied(NODES, VALUE_TABLE_NODES * NODE_SIZE);
}

static void a_small_table_is_copied_whole(void **state)
{
	(void)state;
	put_table(TABLE, ARRAY, 3, NODES, 2);
	copy(TAG_TAB, TABLE);
	assert_copied(ARRAY, 3 * SLOT_SIZE);
	assert_copied(NODES, 2 * NODE_SIZE);
}

static void of_what_a_table_holds_only_strings_are_copied(void **state)
{
	(void)state;
	put_table(TABLE, ARRAY, 3, NODES, 2);
	put(ARRAY + 8, tagged(TAG_STR, put_string(0, 10)), 8);
	put(ARRAY + 16, tagged(TAG_TAB, OTHER), 8);
	put(NODES + 8, tagged(TAG_STR, put_string(1, 20)), 8);
	put(NODES + NODE_SIZE, tagged(TAG_STR, put_string(2, 30)), 8);
	put_table(OTHER, ARRAY, 1, NODES, 1);
	copy(TAG_TAB, TABLE);
	assert_true(has_string(STRINGS, 10));
	assert_true(has_string(STRINGS + STRING_BYTES, 20));
	assert_true(has_string(STRINGS + 2 * STRING_BYTES, 30));
	assert_false(is_copied(OTHER, 16));
}

static void a_function_leads_to_its_prototype_and_the_chunks_name(void **state)
{
	(void)state;
	put_function(0);
	put(PROTO + 40, put_string(0, 12), 8);
	copy(TAG_FUNC, FUNCTION);
	assert_copied(PROTO, PROTO_SIZE);
	assert_true(has_string(STRINGS, 12));
}

static void each_upvalue_leads_to_its_value(void **state)
{
	(void)state;
	put_function(3);
	put_closed_upvalue(0, tagged(TAG_STR, put_string(0, 10)));
	put_upvalue(1, SLOT);
	put(SLOT, tagged(TAG_STR, put_string(1, 20)), 8);
	put_closed_upvalue(2, tagged(TAG_STR, put_string(2, 30)));
	copy(TAG_FUNC, FUNCTION);
	assert_true(has_string(STRINGS, 10));
	assert_true(is_copied(SLOT, SLOT_SIZE));
	assert_true(has_string(STRINGS + STRING_BYTES, 20));
	assert_true(has_string(STRINGS + 2 * STRING_BYTES, 30));
}

static void a_table_in_an_upvalue_leads_to_its_strings(void **state)
{
	(void)state;
	put_function(1);
	put_closed_upvalue(0, tagged(TAG_TAB, TABLE));
	put_table(TABLE, ARRAY, 2, NODES, 1);
	put(ARRAY + 8, tagged(TAG_STR, put_string(0, 10)), 8);
	copy(TAG_FUNC, FUNCTION);
	assert_true(is_copied(ARRAY, 2 * SLOT_SIZE));
	assert_true(has_string(STRINGS, 10));
}

/* A function that no stack has does not run. */
static void upvalues_of_a_function_in_a_table_are_not_followed(void **state)
{
	(void)state;
	put_function(1);
	put_closed_upvalue(0, tagged(TAG_STR, put_string(0, 10)));
	put_table(TABLE, ARRAY, 1, NODES, 1);
	put(ARRAY, tagged(TAG_FUNC, FUNCTION), 8);
	copy(TAG_TAB, TABLE);
	assert_false(is_copied(FUNCTION, 16));
	assert_false(has_string(STRINGS, 10));
}

/* Nor does one that only an upvalue holds. */
static void upvalues_of_a_function_in_an_upvalue_are_not_followed(void **state)
{
	const uint64_t outer = OTHER;

	(void)state;
	put_function(1);
	put_closed_upvalue(0, tagged(TAG_STR, put_string(0, 10)));
	put(PROTO + 40, put_string(1, 20), 8);
	put(outer + 9, GCT_FUNCTION, 1);
	put(outer + 10, FF_LUA, 1);
	put(outer + 11, 1, 1);
	put(outer + 40, SLOT, 8);
	put(SLOT + 24, SLOT + 16, 8);
	put(SLOT + 16, tagged(TAG_FUNC, FUNCTION), 8);
	copy(TAG_FUNC, outer);
	assert_true(is_copied(PROTO, PROTO_SIZE));
	assert_true(has_string(STRINGS + STRING_BYTES, 20));
	assert_false(is_copied(UPVALUES, 1));
	assert_false(has_string(STRINGS, 10));
}

static void a_c_function_has_no_prototype(void **state)
{
	(void)state;
	put_function(1);
	put_closed_upvalue(0, tagged(TAG_STR, put_string(0, 10)));
	put(FUNCTION + 10, FF_C, 1);
	copy(TAG_FUNC, FUNCTION);
	assert_true(is_copied(FUNCTION, 48)); /* with the C function's address */
	assert_false(is_copied(PROTO, 1));
	assert_false(is_copied(UPVALUES, 1));
}

static void so_many_objects_are_taken_and_no_more(void **state)
{
	(void)state;
	for (size_t i = 0; i < VALUE_OBJECTS_MAX; i++)
		assert_true(value_capture_add_object(values, 0x100000 + i * 8));
	assert_false(value_capture_add_object(values, FUNCTION));
	assert_true(value_capture_add_object(values, 0x100000)); /* it is known */
	assert_true(value_capture_add(values, tagged(TAG_NIL, 0)));
	value_capture_begin(values, snapshot, &layout);
	assert_true(value_capture_add_object(values, FUNCTION));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_string_is_copied_as_far_as_it_is_shown),
		TEST(a_table_is_copied_as_far_as_it_is_shown),
		TEST(a_small_table_is_copied_whole),
		TEST(of_what_a_table_holds_only_strings_are_copied),
		TEST(a_function_leads_to_its_prototype_and_the_chunks_name),
		TEST(each_upvalue_leads_to_its_value),
		TEST(a_table_in_an_upvalue_leads_to_its_strings),
		TEST(upvalues_of_a_function_in_a_table_are_not_followed),
		TEST(upvalues_of_a_function_in_an_upvalue_are_not_followed),
		TEST(a_c_function_has_no_prototype),
		TEST(so_many_objects_are_taken_and_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* The table of C types in a process that runs on, in made-up memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_memory.h"
#include "unwind/lua/luajit.h"
#include "unwind/values/live_ctypes.h"

enum {
	G = MADE_UP_AT,
	STATE = MADE_UP_AT + 0x100, /* CTState */
	TABLE = MADE_UP_AT + 0x200,
	NAME = MADE_UP_AT + 0x800,
	TYPES = 3,
};

static struct layout layout;
static struct live_ctypes types;
static bool moves, is_no_type; /* while its text is made */

INSTEAD_OF(ctype_text);
bool __wrap_ctype_text(const struct ctypes *of, uint32_t id, char ret_text[static CTYPE_TEXT_SIZE])
{
	struct ctype type = { .info = 0 };

	assert_true(of->get(of->context, id, &type));
	snprintf(ret_text, CTYPE_TEXT_SIZE, "type %s", type.name);
	if (moves)
		put(STATE, TABLE + 8, 8);
	return !is_no_type;
}

static void put_type(uint32_t id, uint32_t info, uint32_t size, uint64_t name)
{
	const uint64_t step = layout.gc64 ? 24 : 16, ref = layout.gc64 ? 8 : 4;

	put(TABLE + id * step, info, 4);
	put(TABLE + id * step + 4, size, 4);
	put(TABLE + (id + 1) * step - ref, name, ref);
}

static void put_name(const char *name, size_t length)
{
	put(NAME + (uint64_t)layout.GChead_gct, GCT_STRING, 1);
	put(NAME + (uint64_t)layout.GCstr_len, length, 4);
	put_bytes(NAME + (uint64_t)layout.GCstr_size, name, length);
}

static void begin_with(bool gc64)
{
	layout = (struct layout){
		.gc64 = gc64, .g_ctype_state = 0x10, .GChead_gct = 9, .GCstr_len = 16, .GCstr_size = 24
	};
	types = (struct live_ctypes){ .memory = made_up_memory_begin(), .layout = &layout, .g = G };
	moves = is_no_type = false;
	put(G + 0x10, STATE, gc64 ? 8 : 4);
	put(STATE, TABLE, 8);
	put(STATE + 8, TYPES, 4);
	put(STATE + 12, 100, 4); /* room */
	put(STATE + 24, G, 8);
	for (uint32_t id = 0; id < TYPES; id++)
		put_type(id, 0x1000 + id, 4 * id, id == 2 ? NAME : 0);
	put_name("point", 5);
}

static int begin(void **state)
{
	(void)state;
	begin_with(true);
	return 0;
}

static void a_type_is_read_by_its_number(void **state)
{
	struct ctype type;

	(void)state;
	for (int gc64 = 0; gc64 < 2; gc64++) {
		begin_with(gc64);
		assert_true(live_ctypes_load(&types));
		assert_int_equal(types.table, TABLE);
		assert_int_equal(types.count, TYPES);
		assert_true(live_ctypes_get(&types, 1, &type));
		assert_int_equal(type.info, 0x1001);
		assert_int_equal(type.size, 4);
		assert_string_equal(type.name, "");
		assert_true(live_ctypes_get(&types, 2, &type));
		assert_int_equal(type.info, 0x1002);
		assert_string_equal(type.name, "point");
		assert_false(live_ctypes_get(&types, TYPES, &type));
	}
}

/* An int of 4 bytes and an attribute of it, a function, and an array whose object tells how long it is. */
static void c_objects_tell_their_bytes(void **state)
{
	enum { OBJECT = MADE_UP_AT + 0x900, LJ_GC_CDATA_VAR = 0x80 };

	(void)state;
	for (int gc64 = 0; gc64 < 2; gc64++) {
		begin_with(gc64);
		layout.GChead_marked = 8;
		put_type(0, (uint32_t)CT_ATTRIB << 28 | 1, 0, 0);
		put_type(1, (uint32_t)CT_NUM << 28, 4, 0);
		put_type(2, (uint32_t)CT_FUNC << 28, 4, 0);
		assert_true(live_ctypes_load(&types));
		assert_int_equal(live_ctypes_object_bytes(&types, OBJECT, 1), gc64 ? 20 : 12);
		assert_int_equal(live_ctypes_object_bytes(&types, OBJECT, 0), gc64 ? 20 : 12);
		assert_int_equal(live_ctypes_object_bytes(&types, OBJECT, 2), 0);
		assert_int_equal(live_ctypes_object_bytes(&types, OBJECT, TYPES), 0);
		put(OBJECT + 8, LJ_GC_CDATA_VAR | 1, 1);
		put(OBJECT - 6, 24, 2);
		put(OBJECT - 4, 300000, 4);
		assert_int_equal(live_ctypes_object_bytes(&types, OBJECT, 2), 300024);
		assert_int_equal(live_ctypes_object_bytes(&types, 8, 1), 0);
		put(OBJECT + 8, 0, 1);
	}
	/* The sizes are before what can be read. */
	put(MADE_UP_AT + 8, LJ_GC_CDATA_VAR, 1);
	assert_int_equal(live_ctypes_object_bytes(&types, MADE_UP_AT, 1), 0);
}

static void a_name_that_is_no_string_is_left_out(void **state)
{
	static char text[CTYPE_NAME_SIZE + 8];
	struct ctype type;

	(void)state;
	assert_true(live_ctypes_load(&types));
	memset(text, 'n', sizeof(text));
	put_name(text, sizeof(text));
	assert_true(live_ctypes_get(&types, 2, &type));
	assert_int_equal(strlen(type.name), CTYPE_NAME_SIZE - 1);
	put_name(text, CTYPE_NAME_SIZE - 1);
	assert_true(live_ctypes_get(&types, 2, &type));
	assert_int_equal(strlen(type.name), CTYPE_NAME_SIZE - 1);
	put(NAME + 9, GCT_STRING + 1, 1);
	assert_true(live_ctypes_get(&types, 2, &type));
	assert_string_equal(type.name, "");
	/* Its bytes cannot be read. */
	put_type(1, 1, 1, MADE_UP_AT + MADE_UP_BYTES - 24);
	put(MADE_UP_AT + MADE_UP_BYTES - 24 + 9, GCT_STRING, 1);
	put(MADE_UP_AT + MADE_UP_BYTES - 24 + 16, 5, 4);
	assert_true(live_ctypes_get(&types, 1, &type));
	assert_string_equal(type.name, "");
	/* Nor can the table. */
	types.table = MADE_UP_AT - 24;
	assert_false(live_ctypes_get(&types, 0, &type));
}

static void a_table_is_one_that_leads_back_to_its_state(void **state)
{
	(void)state;
	put(STATE + 24, G + 8, 8);
	assert_false(live_ctypes_load(&types));
	assert_int_equal(types.count, 0);
	put(STATE + 24, G, 8);
	put(G + 0x10, 0, 8); /* FFI is not loaded */
	assert_false(live_ctypes_load(&types));
	put(G + 0x10, STATE, 8);
	assert_true(live_ctypes_load(&types));
	layout.g_ctype_state = LAYOUT_ABSENT; /* there is none */
	assert_false(live_ctypes_load(&types));
}

static void a_table_that_has_moved_does_not_stay(void **state)
{
	(void)state;
	assert_true(live_ctypes_load(&types));
	put(STATE + 8, TYPES + 1, 4); /* it grows in its place */
	assert_true(live_ctypes_stay(&types));
	put(STATE, TABLE + 8, 8);
	assert_false(live_ctypes_stay(&types));
	assert_int_equal(types.table, TABLE);
	put(STATE, TABLE, 8);
	put(STATE + 24, 0, 8);
	assert_false(live_ctypes_stay(&types));
}

static void a_text_is_of_a_table_that_stays(void **state)
{
	char text[CTYPE_TEXT_SIZE] = "before";

	(void)state;
	moves = true;
	assert_false(live_ctypes_text(types.memory, &layout, G, 2, text));
	moves = false;
	put(STATE, TABLE, 8);
	is_no_type = true;
	assert_false(live_ctypes_text(types.memory, &layout, G, 2, text));
	is_no_type = false;
	put(STATE + 24, 0, 8);
	assert_false(live_ctypes_text(types.memory, &layout, G, 2, text));
	assert_string_equal(text, "before");
	put(STATE + 24, G, 8);
	assert_true(live_ctypes_text(types.memory, &layout, G, 2, text));
	assert_string_equal(text, "type point");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, begin)
	const struct CMUnitTest tests[] = {
		TEST(a_type_is_read_by_its_number),         TEST(c_objects_tell_their_bytes),
		TEST(a_name_that_is_no_string_is_left_out), TEST(a_table_is_one_that_leads_back_to_its_state),
		TEST(a_table_that_has_moved_does_not_stay), TEST(a_text_is_of_a_table_that_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

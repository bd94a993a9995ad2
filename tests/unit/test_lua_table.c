/* SPDX-License-Identifier: MIT */
/* The pairs of Lua tables, in made-up memory with wide and with narrow references. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/unit/made_up_lua.h"
#include "unwind/lua/lua_table.h"

static const struct layout narrow = { .gc64 = false, MADE_UP_LAYOUT };
static const struct layout *const layouts[] = { &made_up_gc64, &narrow };

#define EACH_LAYOUT(layout) \
	for (const struct layout *const *each = layouts, *layout = *each; \
	     each < layouts + 2 && (layout = *each); each++)

/* Words of the target: a table of two elements and four nodes, another one, and the strings of keys. */
enum {
	TABLE = 8,
	ELEMENTS = 16,
	NODES = 24,
	INNER = 48,
	INNER_NODES = 56,
	KEYS = 80,
	KEY_WORDS = 12,
	UNMAPPED = WORDS
};

static const char long_key[] = "a key of as many bytes as the longest that count"; /* LUA_TABLE_KEY_SIZE */

static size_t key_word(size_t index)
{
	return KEYS + index * KEY_WORDS;
}

static size_t node_word(size_t index)
{
	return NODES + index * NODE_WORDS;
}

/* { [0] = nil, inner, one = 1, inner = inner, [7] = inner, gone = nil } */
static struct made_up target(const struct layout *layout)
{
	struct made_up made_up = { .memory = { .read_ranges = read_ranges } };
	uint64_t inner = put_table(&made_up, layout, INNER, INNER, 0, INNER_NODES, 1);
	uint64_t seven = tagged(layout, layout->gc64 ? TAG_NUMBER : TAG_INTEGER_GC32, 7);

	put_table(&made_up, layout, TABLE, ELEMENTS, 2, NODES, 4);
	made_up.words[ELEMENTS + 1] = inner;
	put_node(&made_up, node_word(0), put_string(&made_up, layout, key_word(0), "one"), 1);
	put_node(&made_up, node_word(1), put_string(&made_up, layout, key_word(1), "inner"), inner);
	put_node(&made_up, node_word(2), seven, inner);
	put_node(&made_up, node_word(3), put_string(&made_up, layout, key_word(2), "gone"), UINT64_MAX);
	return made_up;
}

/*---- All pairs ----*/

static void note(void *context, const char *key, uint64_t value)
{
	char *text = context;

	sprintf(text + strlen(text), "%s=%s ", key, value == UINT64_MAX ? "nil" : value == 1 ? "1" : "table");
}

static void assert_pairs(struct made_up *made_up, const struct layout *layout, const char *expected)
{
	char text[256] = "";

	lua_table_each(&made_up->memory, layout, at(TABLE), note, text);
	assert_string_equal(text, expected);
}

static void pairs_with_texts_as_keys_are_visited(void **state)
{
	(void)state;
	EACH_LAYOUT(layout)
	{
		struct made_up made_up = target(layout);

		assert_pairs(&made_up, layout, "one=1 inner=table gone=nil ");
		/* No text: empty, with a NUL in it, too long; none at all. */
		put_string(&made_up, layout, key_word(0), "");
		assert_pairs(&made_up, layout, "inner=table gone=nil ");
		put_string(&made_up, layout, key_word(0), "one");
		made_up.words[key_word(0) + 2] = 4;
		assert_pairs(&made_up, layout, "inner=table gone=nil ");
		put_string(&made_up, layout, key_word(0), long_key);
		assert_pairs(&made_up, layout, "inner=table gone=nil ");
		put_string(&made_up, layout, key_word(0), long_key + 1);
		assert_pairs(&made_up, layout,
			     " key of as many bytes as the longest that count=1 inner=table gone=nil ");
		made_up.words[node_word(0) + 1] = tagged(layout, TAG_STR, at(UNMAPPED));
		assert_pairs(&made_up, layout, "inner=table gone=nil ");
	}
}

static void what_is_no_table_has_no_pairs(void **state)
{
	(void)state;
	EACH_LAYOUT(layout)
	{
		struct made_up made_up = target(layout);

		made_up.words[TABLE + 5] = 0;
		assert_pairs(&made_up, layout, "one=1 ");
		made_up.words[TABLE + 5] = 65536;
		assert_pairs(&made_up, layout, "");
		made_up.words[TABLE + 5] = UINT32_MAX;
		assert_pairs(&made_up, layout, "");
		made_up = target(layout);
		made_up.words[TABLE + 4] = at(UNMAPPED);
		assert_pairs(&made_up, layout, "");
		made_up = target(layout);
		put_head(&made_up, TABLE, GCT_USERDATA);
		assert_pairs(&made_up, layout, "");
	}
}

/*---- Searches ----*/

static void a_table_is_found_by_its_key(void **state)
{
	(void)state;
	EACH_LAYOUT(layout)
	{
		struct made_up made_up = target(layout);
		uint64_t found = 0;

		assert_true(lua_table_find_table(&made_up.memory, layout, at(TABLE), "inner", &found));
		assert_int_equal(found, at(INNER));
		found = 0;
		assert_false(lua_table_find_table(&made_up.memory, layout, at(TABLE), "one", &found));
		assert_false(lua_table_find_table(&made_up.memory, layout, at(TABLE), "none", &found));
		assert_false(lua_table_find_table(&made_up.memory, layout, at(INNER), "inner", &found));
		assert_int_equal(found, 0);
	}
}

static void a_value_is_found_by_its_key(void **state)
{
	(void)state;
	EACH_LAYOUT(layout)
	{
		struct made_up made_up = target(layout);
		uint64_t known = 0, value = 0;

		assert_false(lua_table_find(&made_up.memory, layout, at(TABLE), "gone", &known, &value));
		assert_false(lua_table_find(&made_up.memory, layout, at(TABLE), "on", &known, &value));
		assert_false(lua_table_find(&made_up.memory, layout, at(TABLE), "ones", &known, &value));
		assert_int_equal(known, 0);
		assert_true(lua_table_find(&made_up.memory, layout, at(TABLE), "one", &known, &value));
		assert_int_equal(known, at(key_word(0)));
		assert_int_equal(value, 1);
		/* What is known is looked at once more: the string may have gone. */
		made_up.words[node_word(0)] = 3;
		assert_true(lua_table_find(&made_up.memory, layout, at(TABLE), "one", &known, &value));
		assert_int_equal(value, 3);
		known = at(key_word(1));
		assert_true(lua_table_find(&made_up.memory, layout, at(TABLE), "one", &known, &value));
		assert_int_equal(known, at(key_word(0)));
		known = at(UNMAPPED);
		assert_true(lua_table_find(&made_up.memory, layout, at(TABLE), "one", &known, &value));
		assert_int_equal(known, at(key_word(0)));
		/* Each string is there once: another one of the same text is not the key's. */
		put_string(&made_up, layout, key_word(3), "one");
		known = at(key_word(3));
		assert_false(lua_table_find(&made_up.memory, layout, at(TABLE), "one", &known, &value));
		known = 0;
		put_head(&made_up, key_word(0), GCT_UPVALUE);
		assert_false(lua_table_find(&made_up.memory, layout, at(TABLE), "one", &known, &value));
	}
}

/* The last of so many nodes has the key. */
static struct large {
	struct memory memory; /* first: what is read */
	uint64_t words[WORDS + 1024 * NODE_WORDS];
} large;

static void read_large(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	range_bytes(ranges, count, BASE, large.words, sizeof(large.words));
}

static void large_tables_are_not_searched(void **state)
{
	(void)state;
	EACH_LAYOUT(layout)
	{
		struct made_up made_up = target(layout);

		for (uint64_t nodes = 256; nodes <= 1024; nodes *= 2) {
			uint64_t known = 0, value = 0, table = 0;
			uint64_t *last = &large.words[WORDS + (nodes - 1) * NODE_WORDS];

			large.memory.read_ranges = read_large;
			memset(large.words, 0xff, sizeof(large.words));
			memcpy(large.words, made_up.words, sizeof(made_up.words));
			large.words[TABLE + 4] = at(WORDS);
			large.words[TABLE + 5] = nodes - 1;
			last[0] = tagged(layout, TAG_TAB, at(INNER));
			last[1] = tagged(layout, TAG_STR, at(key_word(0)));
			assert_int_equal(
				lua_table_find(&large.memory, layout, at(TABLE), "one", &known, &value),
				nodes <= 512);
			last[1] = tagged(layout, layout->gc64 ? TAG_NUMBER : TAG_INTEGER_GC32, 9);
			assert_int_equal(lua_table_element(&large.memory, layout, at(TABLE), 9, &table),
					 nodes <= 512);
		}
	}
}

static void elements_are_in_either_part(void **state)
{
	(void)state;
	EACH_LAYOUT(layout)
	{
		struct made_up made_up = target(layout);
		double seven = 7;
		uint64_t found = 0;

		assert_true(lua_table_element(&made_up.memory, layout, at(TABLE), 1, &found));
		assert_int_equal(found, at(INNER));
		found = 0;
		assert_true(lua_table_element(&made_up.memory, layout, at(TABLE), 7, &found));
		assert_int_equal(found, at(INNER));
		found = 0;
		for (uint32_t index = 0; index < 10; index++)
			if (index != 1 && index != 7)
				assert_false(
					lua_table_element(&made_up.memory, layout, at(TABLE), index, &found));
		/* Integers may be kept as doubles. */
		memcpy(&made_up.words[node_word(2) + 1], &seven, sizeof(seven));
		assert_true(lua_table_element(&made_up.memory, layout, at(TABLE), 7, &found));
		/* The array comes first; it is not looked for elsewhere. */
		made_up.words[TABLE + 3] = 8;
		assert_false(lua_table_element(&made_up.memory, layout, at(TABLE), 7, &found));
		made_up.words[TABLE + 2] = at(UNMAPPED);
		assert_false(lua_table_element(&made_up.memory, layout, at(TABLE), 1, &found));
		put_head(&made_up, TABLE, GCT_STRING);
		assert_false(lua_table_element(&made_up.memory, layout, at(TABLE), 7, &found));
	}
}

static void the_registry_is_a_table(void **state)
{
	(void)state;
	EACH_LAYOUT(layout)
	{
		struct made_up made_up = target(layout);
		uint64_t found = 0;

		made_up.words[1] = tagged(layout, TAG_TAB, at(TABLE));
		assert_true(lua_table_registry(&made_up.memory, layout, at(0), &found));
		assert_int_equal(found, at(TABLE));
		made_up.words[1] = tagged(layout, TAG_UDATA, at(TABLE));
		assert_false(lua_table_registry(&made_up.memory, layout, at(0), &found));
		assert_false(lua_table_registry(&made_up.memory, layout, at(UNMAPPED), &found));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pairs_with_texts_as_keys_are_visited),
		cmocka_unit_test(what_is_no_table_has_no_pairs),
		cmocka_unit_test(a_table_is_found_by_its_key),
		cmocka_unit_test(a_value_is_found_by_its_key),
		cmocka_unit_test(large_tables_are_not_searched),
		cmocka_unit_test(elements_are_in_either_part),
		cmocka_unit_test(the_registry_is_a_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

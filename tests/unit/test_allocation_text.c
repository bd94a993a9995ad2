/* SPDX-License-Identifier: MIT */
/* What is allocated, in words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "luajit-layouts/field.h"
#include "tests/unit/made_up_memory.h"
#include "unwind/allocation/allocation_text.h"
#include "unwind/lua/luajit.h"

enum { PROTO = MADE_UP_AT + 0x100, CHUNK = MADE_UP_AT + 0x1000, TABLE = 0x7000, NODE_BYTES = 24 };

static const struct vm_code vm = { .layout = { .gc64 = true,
					       .GChead_gct = 9,
					       .GCproto_sizebc = 12,
					       .GCproto_sizept = 16,
					       .GCproto_firstline = 20,
					       .GCproto_numline = 24,
					       .GCproto_chunkname = 32,
					       .GCproto_size = 64,
					       .GCstr_len = 12,
					       .GCstr_size = 24,
					       .Node_size = NODE_BYTES } };
static const struct global_state global = { .vm = &vm };
static const struct allocation_counters none;

/* A prototype whose chunk has this name, of so many bytes. */
static void put_proto_of(uint32_t firstline, const char *chunkname, size_t length)
{
	made_up_memory_begin();
	put(PROTO + 9, GCT_PROTO, 1);
	put(PROTO + 12, 1, 4);
	put(PROTO + 16, 68, 4);
	put(PROTO + 20, firstline, 4);
	put(PROTO + 32, CHUNK, 8);
	put(CHUNK + 12, length, 4);
	put_bytes(CHUNK + 24, chunkname, length);
}

static void put_proto(uint32_t firstline, const char *chunkname)
{
	put_proto_of(firstline, chunkname, strlen(chunkname));
}

static void assert_text_of(struct allocation allocation, const struct allocation_counters *held,
			   const char *ctype, const char *wanted)
{
	char text[ALLOCATION_TEXT_SIZE];

	allocation.global = &global;
	allocation_text(&made_up_memory.memory, &allocation, held, ctype, text);
	assert_string_equal(text, wanted);
}

static void assert_function(const char *wanted)
{
	assert_text_of((struct allocation){ .kind = ALLOCATION_FUNCTION, .bytes = 40, .prototype = PROTO },
		       &none, "", wanted);
}

static void each_kind_has_its_word(void **state)
{
	static const char *const words[] = { "string",
					     "upvalue",
					     "thread",
					     "prototype",
					     "function",
					     "trace",
					     "cdata",
					     "table",
					     "userdata",
					     "growth of a table",
					     "growth of a table",
					     "stack of a coroutine",
					     "table of strings",
					     "growth of a buffer" };

	(void)state;
	made_up_memory_begin();
	assert_int_equal(sizeof(words) / sizeof(words[0]), ALLOCATION_KINDS);
	for (unsigned int kind = 0; kind < ALLOCATION_KINDS; kind++)
		assert_text_of((struct allocation){ .kind = (enum allocation_kind)kind, .bytes = 40 }, &none,
			       "", words[kind]);
}

static void a_function_has_its_place(void **state)
{
	(void)state;
	put_proto(12, "@x.lua");
	assert_function("function <x.lua:12>");
	put_proto(0, "=main");
	assert_function("function <main:0>");
	put_proto(3, "return 5");
	assert_function("function <[string \"return 5\"]:3>");
	/* A function of LuaJIT's library has its name there. */
	put_proto(FIRSTLINE_BUILTIN, "table.foreach");
	assert_function("function table.foreach");
}

static void a_long_place_is_cut(void **state)
{
	enum { LONG = 300, SHOWN = 200 };
	char name[LONG + 1] = "@", wanted[ALLOCATION_TEXT_SIZE];

	(void)state;
	memset(name + 1, 'x', LONG - 1);
	put_proto(4000000000, name);
	snprintf(wanted, sizeof(wanted), "function <%.*s:4000000000>", SHOWN, name + 1);
	assert_function(wanted);
	put_proto(FIRSTLINE_BUILTIN, name);
	snprintf(wanted, sizeof(wanted), "function %.*s", SHOWN, name);
	assert_function(wanted);
}

static void a_place_that_cannot_be_read_is_left_out(void **state)
{
	static char longest[CHUNKNAME_MAX + 1];

	(void)state;
	put_proto(12, "@x.lua");
	put(PROTO + 9, GCT_TABLE, 1); /* another object is there now */
	assert_function("function");
	put_proto(12, "@x.lua");
	put(PROTO + 12, 0, 4);
	assert_function("function");
	put_proto(12, "@x.lua");
	put(PROTO + 32, MADE_UP_AT + MADE_UP_BYTES, 8);
	assert_function("function");
	put_proto(12, "@x.lua");
	put(PROTO + 32, MADE_UP_AT + MADE_UP_BYTES - 24, 8); /* of its name, nothing is mapped */
	put(MADE_UP_AT + MADE_UP_BYTES - 12, 6, 4);
	assert_function("function");
	memset(longest, 'x', sizeof(longest));
	longest[0] = '@';
	put_proto_of(12, longest, CHUNKNAME_MAX + 1);
	assert_function("function");
	/* Nothing is mapped there. */
	assert_text_of((struct allocation){ .kind = ALLOCATION_FUNCTION, .prototype = MADE_UP_AT - 8 }, &none,
		       "", "function");
	/* Of C functions, there is none. */
	put_proto(12, "@x.lua");
	assert_text_of((struct allocation){ .kind = ALLOCATION_FUNCTION, .bytes = 40 }, &none, "",
		       "function");
}

static void the_longest_names_are_read(void **state)
{
	static char longest[CHUNKNAME_MAX];
	char wanted[ALLOCATION_TEXT_SIZE];

	(void)state;
	memset(longest, 'y', sizeof(longest));
	longest[0] = '=';
	put_proto_of(1, longest, sizeof(longest));
	snprintf(wanted, sizeof(wanted), "function <%.200s:1>", longest + 1);
	assert_function(wanted);
}

static void c_data_has_its_type(void **state)
{
	const struct allocation cdata = { .kind = ALLOCATION_CDATA, .bytes = 16 };

	(void)state;
	made_up_memory_begin();
	assert_text_of(cdata, &none, "struct point", "cdata struct point");
	assert_text_of(cdata, &none, "", "cdata");
}

/* Its first part is what makes it large. */
static void a_part_of_a_new_table_is_a_table(void **state)
{
	const struct allocation_counters held = { .root = TABLE },
					 grown = { .root = TABLE, .newest_nodes = 2, .newest_slots = 2 };
	const struct allocation hash = { .kind = ALLOCATION_HASH, .bytes = 4 * NODE_BYTES, .table = TABLE },
				array = { .kind = ALLOCATION_ARRAY, .bytes = 64, .table = TABLE };

	(void)state;
	made_up_memory_begin();
	assert_text_of(hash, &held, "", "table");
	assert_text_of(array, &held, "", "table");
	assert_text_of(hash, &grown, "", "growth of a table");
	assert_text_of(array, &grown, "", "growth of a table");
	assert_text_of(hash, &none, "", "growth of a table");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_has_its_word),
		cmocka_unit_test(a_function_has_its_place),
		cmocka_unit_test(a_long_place_is_cut),
		cmocka_unit_test(a_place_that_cannot_be_read_is_left_out),
		cmocka_unit_test(the_longest_names_are_read),
		cmocka_unit_test(c_data_has_its_type),
		cmocka_unit_test(a_part_of_a_new_table_is_a_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Tables of nginx's variables, in a made-up program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/range_bytes.h"
#include "unwind/nginx/variables.h"

enum {
	WORD = 8,
	CODE = 0x10000,
	DATA = 0x400000,
	DATA_WORDS = 2400, /* more than are searched at once */
	NAMES = 2048,      /* a word of the data */
	NAME_WORDS = 5,
	ENTRY_WORDS = 7,
	HANDLER = CODE + 0x100,
};

/* A program's data, with tables and names. */
struct program {
	struct memory memory; /* first */
	uint64_t words[DATA_WORDS];
	size_t name_count;
	struct elf_image image;
};

/* ngx_http_variable_t */
struct entry {
	uint64_t length, name, set, get, data, flags, index;
};

static void read_data(struct memory *memory, struct memory_range *ranges, size_t count)
{
	const struct program *program = (const struct program *)memory;

	range_bytes(ranges, count, DATA, program->words, sizeof(program->words));
}

static void begin(struct program *program)
{
	*program = (struct program){
		.memory = { .read_ranges = read_data },
		.image = { .segments = { { CODE, CODE + 0x1000, PF_R | PF_X },
					 { DATA, DATA + DATA_WORDS * WORD, PF_R | PF_W } },
			   .segment_count = 2 },
	};
}

static struct entry entry_of(struct program *program, const char *name, uint64_t data)
{
	const size_t at = NAMES + NAME_WORDS * program->name_count++;

	assert_in_range(at + NAME_WORDS, NAMES, DATA_WORDS);
	snprintf((char *)&program->words[at], (size_t)NAME_WORDS * WORD, "%s", name);
	return (struct entry){ strlen(name), DATA + at * WORD, 0, HANDLER, data, 0, 0 };
}

static void put_entry(struct program *program, size_t at, struct entry entry)
{
	memcpy(&program->words[at], &entry, sizeof(entry));
}

/* A table of three variables. */
static void put_table(struct program *program, size_t at)
{
	static const char *const names[] = { "http_host", "uri", "request_time" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		put_entry(program, at + i * ENTRY_WORDS, entry_of(program, names[i], 0x100 + i));
}

static bool finds(struct program *program, struct variables *ret_table)
{
	return variables_find(&program->memory, &program->image, "http_host", "request_time", ret_table);
}

static void a_table_has_names_functions_and_data(void **state)
{
	struct variables table;
	struct program program;

	(void)state;
	begin(&program);
	put_table(&program, 10);
	assert_true(finds(&program, &table));
	assert_int_equal(table.count, 3);
	assert_string_equal(table.table[0].name, "http_host");
	assert_string_equal(table.table[2].name, "request_time");
	for (size_t i = 0; i < table.count; i++) {
		assert_int_equal(table.table[i].get, HANDLER);
		assert_int_equal(table.table[i].data, 0x100 + i);
		assert_ptr_equal(variables_named(&table, table.table[i].name), &table.table[i]);
	}
	assert_null(variables_named(&table, "request_tim"));
	/* What lies behind the last one is none. */
	snprintf(table.table[table.count].name, VARIABLE_NAME_BYTES, "left");
	assert_null(variables_named(&table, "left"));
}

/* The data is searched in pieces of 1024 words. */
static void a_table_may_begin_at_each_word(void **state)
{
	static const size_t places[] = { 0, 1, 1021, 1022, 1023, 1024, 1025, 2000 };
	struct variables table;
	struct program program;

	(void)state;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		begin(&program);
		put_table(&program, places[i]);
		assert_true(finds(&program, &table));
		assert_int_equal(table.count, 3);
		/* The segment need not begin at a word, and does not end before the table's first name. */
		program.image.segments[1].begin += places[i] * WORD - 3;
		program.image.segments[1].end -= 5;
		assert_int_equal(finds(&program, &table), true);
		program.image.segments[1].begin += 4;
		assert_false(finds(&program, &table));
	}
}

static void only_writable_data_has_tables(void **state)
{
	struct variables table;
	struct program program;

	(void)state;
	begin(&program);
	assert_false(finds(&program, &table));
	put_table(&program, 10);
	program.image.segments[1].flags = PF_R;
	assert_false(finds(&program, &table));
	program.image.segments[1].flags = PF_W;
	assert_true(finds(&program, &table));
	program.image.segment_count = 1;
	assert_false(finds(&program, &table));
}

/* Another table may begin with the same name, and text may look like a table. */
static void a_table_without_the_other_name_is_passed_over(void **state)
{
	struct variables table;
	struct program program;

	(void)state;
	begin(&program);
	put_entry(&program, 10, entry_of(&program, "http_host", 1));
	put_entry(&program, 10 + ENTRY_WORDS, entry_of(&program, "uri", 2));
	program.words[30] = strlen("http_host");
	program.words[40] = strlen("http_host");
	program.words[41] = DATA + NAMES * WORD + 1;
	assert_false(finds(&program, &table));
	put_table(&program, 50);
	assert_true(finds(&program, &table));
	assert_int_equal(table.table[0].data, 0x100);
}

/* Returns how many variables there are if this one follows two. */
static size_t count_with(struct program *program, struct entry entry)
{
	const size_t at = 10 + 2 * ENTRY_WORDS;
	struct variables table;

	put_entry(program, 10, entry_of(program, "http_host", 1));
	put_entry(program, 10 + ENTRY_WORDS, entry_of(program, "request_time", 2));
	put_entry(program, at, entry);
	put_entry(program, at + ENTRY_WORDS, entry_of(program, "uri", 3));
	assert_true(finds(program, &table));
	return table.count;
}

static void a_table_ends_with_what_is_no_variable(void **state)
{
	enum { ALL = 4, CUT = 2 };
	struct program program;
	struct entry whole, entry;

	(void)state;
#define WITH(change) \
	(begin(&program), whole = entry_of(&program, "a_name_of_not_quite_too_many_bytes", 5), \
	 whole.length = VARIABLE_NAME_BYTES - 1, entry = whole, change, count_with(&program, entry))
	assert_int_equal(WITH(entry.data = 6), ALL);
	assert_int_equal(WITH(entry.set = HANDLER), ALL);
	assert_int_equal(WITH(entry.get = 0), ALL);
	assert_int_equal(WITH(entry.length = 0), CUT);
	assert_int_equal(WITH(entry.length = VARIABLE_NAME_BYTES), CUT);
	assert_int_equal(WITH(entry.set = DATA), CUT);
	assert_int_equal(WITH(entry.set = 1), CUT);
	assert_int_equal(WITH(entry.get = DATA), CUT);
	assert_int_equal(WITH(entry.get = CODE - 1), CUT);
	assert_int_equal(WITH(entry.name = 1), CUT);
#undef WITH
}

static void a_table_has_a_bound(void **state)
{
	struct variables table;
	struct program program;
	struct entry other;

	(void)state;
	begin(&program);
	put_table(&program, 10);
	other = entry_of(&program, "uri", 7);
	for (size_t i = 3; i < VARIABLES_MAX + 2; i++)
		put_entry(&program, 10 + i * ENTRY_WORDS, other);
	assert_true(finds(&program, &table));
	assert_int_equal(table.count, VARIABLES_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_table_has_names_functions_and_data),
		cmocka_unit_test(a_table_may_begin_at_each_word),
		cmocka_unit_test(only_writable_data_has_tables),
		cmocka_unit_test(a_table_without_the_other_name_is_passed_over),
		cmocka_unit_test(a_table_ends_with_what_is_no_variable),
		cmocka_unit_test(a_table_has_a_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

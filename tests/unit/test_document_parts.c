/* SPDX-License-Identifier: MIT */
/* What documents and texts are put together from: JSON's values and streams, numbered texts, titles. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/labels/json_stream.h"
#include "output/labels/json_values.h"
#include "output/labels/session_title.h"
#include "output/labels/string_index.h"

/*---- JSON ----*/

struct written {
	FILE *out;
	char *text;
	size_t length;
};

static void begin(struct written *written)
{
	*written = (struct written){ 0 };
	written->out = open_memstream(&written->text, &written->length);
	assert_non_null(written->out);
}

static void assert_written(struct written *written, const char *expected)
{
	assert_int_equal(fclose(written->out), 0);
	assert_string_equal(written->text, expected);
	free(written->text);
}

static void a_stream_has_outlines_numbers_and_values(void **state)
{
	struct written written;
	struct json_stream stream;

	(void)state;
	begin(&written);
	stream = (struct json_stream){ .out = written.out };
	json_stream_outline(&stream, "{\"%s\":[", "a");
	json_stream_number(&stream, 0);
	json_stream_mark(&stream, ",%d,"); /* no format */
	json_stream_number(&stream, 10);
	json_stream_mark(&stream, ",");
	json_stream_number(&stream, UINT64_MAX);
	json_stream_mark(&stream, ",");
	json_stream_text(&stream, "a\"\n\xff");
	json_stream_mark(&stream, ",");
	json_stream_text(&stream, NULL);
	json_stream_mark(&stream, ",");
	json_stream_value(&stream, json_pack("{s:[i, f]}", "k", 1, 0.25));
	json_stream_mark(&stream, "]}");
	assert_int_equal(json_stream_end(&stream), 0);
	assert_written(&written,
		       "{\"a\":[0,%d,10,18446744073709551615,\"a\\\"\\\\n\\\\xff\",null,{\"k\":[1,0.25]}]}");
}

static void errors_of_a_stream_are_told_at_its_end(void **state)
{
	struct json_stream stream = { .out = fopen("/dev/full", "w") };

	(void)state;
	assert_non_null(stream.out);
	setvbuf(stream.out, NULL, _IONBF, 0);
	json_stream_text(&stream, "x");
	assert_int_equal(json_stream_end(&stream), -EIO);
	json_stream_value(&stream, NULL);
	assert_int_equal(json_stream_end(&stream), -ENOMEM);
	json_stream_text(&stream, "x");
	assert_int_equal(json_stream_end(&stream), -ENOMEM);
	fclose(stream.out);
}

static void assert_value(json_t *value, const char *expected)
{
	char *text = json_dumps(value, JSON_ENCODE_ANY);

	assert_non_null(text);
	assert_string_equal(text, expected);
	free(text);
	json_decref(value);
}

static void what_is_unknown_is_null(void **state)
{
	(void)state;
	assert_value(json_value_number(0), "null");
	assert_value(json_value_number(1), "1");
	assert_value(json_value_address(0), "\"0x0\"");
	assert_value(json_value_address(UINT64_MAX), "\"0xffffffffffffffff\"");
	assert_value(json_value_text(NULL), "null");
	assert_value(json_value_text(""), "\"\"");
	assert_value(json_value_text("\x1b"), "\"\\\\x1b\"");
}

static void a_list_that_misses_a_value_is_none(void **state)
{
	(void)state;
	assert_value(json_value_append(json_value_append(json_array(), json_integer(1)), json_null()),
		     "[1, null]");
	assert_null(json_value_append(json_array(), NULL));
	assert_null(json_value_append(NULL, json_null()));
}

static void a_document_has_its_version_and_processes(void **state)
{
	json_t *processes = json_pack("[i]", 7);
	FILE *full = fopen("/dev/full", "w");
	struct written written;

	(void)state;
	begin(&written);
	assert_true(json_write_processes(written.out, 3, processes));
	assert_written(&written, "{\n \"version\": 3,\n \"processes\": [\n  7\n ]\n}\n");
	begin(&written);
	assert_false(json_write_document(written.out, NULL));
	assert_written(&written, "");
	/* A stream tells its own errors. */
	assert_non_null(full);
	setvbuf(full, NULL, _IONBF, 0);
	assert_true(json_write_document(full, processes));
	assert_true(ferror(full) != 0);
	fclose(full);
	json_decref(processes);
}

/*---- Numbered texts ----*/

static void each_text_has_one_number(void **state)
{
	static const char *const texts[] = { "", "a", "ab", "b" };
	enum { COUNT = sizeof(texts) / sizeof(texts[0]) };
	struct string_index *index = string_index_new();
	const char *next = NULL;
	char changing[] = "ab";

	(void)state;
	assert_non_null(index);
	assert_null(string_index_next(index, NULL));
	for (int64_t round = 0; round < 2; round++)
		for (int64_t i = 0; i < COUNT; i++)
			assert_int_equal(string_index_add(index, i == 2 ? changing : texts[i]), i);
	changing[0] = 'x'; /* texts are copied */
	for (size_t i = 0; i < COUNT; i++) {
		next = string_index_next(index, next);
		assert_non_null(next);
		assert_string_equal(next, texts[i]);
	}
	assert_null(string_index_next(index, next));
	string_index_free(index);
	string_index_free(NULL);
}

/*---- Titles ----*/

static void titles_leave_out_the_directory_of_the_program_only(void **state)
{
	static const struct {
		const char *target, *title;
	} known[] = {
		{ "/usr/bin/luajit /srv/a.lua", "CPU time of luajit /srv/a.lua" },
		{ "/usr/bin/luajit", "CPU time of luajit" },
		{ "./bin/luajit", "CPU time of ./bin/luajit" },
		{ "/ x/y", "CPU time of  x/y" },
		{ "", "CPU time of " },
		{ NULL, "CPU time of LuaJIT" },
	};
	char title[SESSION_TITLE_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		session_title(&(struct session){ .target = known[i].target }, title);
		assert_string_equal(title, known[i].title);
	}
	session_title(&(struct session){ .target = "x", .pid = 1, .clock = WEIGHT_WALL_TIME }, title);
	assert_string_equal(title, "Wall-clock time of x (pid 1)");
}

static void a_head_has_what_is_known(void **state)
{
	const struct figures figures = { .samples = 12,
					 .lost = { [LOST_ASLEEP] = 2, [LOST_TOO_DEEP] = 1 },
					 .sampled_cpu_ns = 1500000000,
					 .lost_cpu_ns = 600000000 };
	struct session session = { .target = "/bin/luajit \x1b",
				   .pid = 42,
				   .cause = "cpu>90%\n",
				   .start_unix_ns = UINT64_C(1700000000999000000),
				   .duration_ns = 2500000000 };
	struct written written;

	(void)state;
	begin(&written);
	session_title_write_head(written.out, &session, &figures, 12, 1500000000);
	session = (struct session){ .clock = WEIGHT_ALLOC_BYTES };
	session_title_write_head(written.out, &session, &(struct figures){ 0 }, 1, 2000);
	assert_written(&written,
		       "CPU time of /bin/luajit \\x1b (pid 42)\n"
		       "2023-11-14 22:13:20 UTC, 2.5 s, 12 samples of 1500.0 ms, 3 with a lost part "
		       "(25.00 %, but 40.00 % of the CPU time)\n"
		       "recorded because of cpu>90%\\n\n"
		       "Allocated bytes of LuaJIT\n"
		       "0.0 s, 1 samples of 2.0 kB, 0 with a lost part\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stream_has_outlines_numbers_and_values),
		cmocka_unit_test(errors_of_a_stream_are_told_at_its_end),
		cmocka_unit_test(what_is_unknown_is_null),
		cmocka_unit_test(a_list_that_misses_a_value_is_none),
		cmocka_unit_test(a_document_has_its_version_and_processes),
		cmocka_unit_test(each_text_has_one_number),
		cmocka_unit_test(titles_leave_out_the_directory_of_the_program_only),
		cmocka_unit_test(a_head_has_what_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

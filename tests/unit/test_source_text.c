/* SPDX-License-Identifier: MIT */
/* Lines of source files, their time, and how a picture has them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/source/source_data.h"
#include "output/source/source_lines.h"
#include "output/source/source_text.h"
#include "tests/unit/made_up_source.h"

static int split(const char *text, size_t length, struct source_text *ret_text)
{
	char *bytes = malloc(length + 1);

	assert_non_null(bytes);
	memcpy(bytes, text, length);
	bytes[length] = '\0';
	return source_text_split(bytes, length, ret_text);
}

static void test_lines_end_in_any_way(void **state)
{
	static const char *const texts[] = { "a\n\tb\n\nc\n", "a\n\tb\n\nc", "a\r\n\tb\r\n\r\nc\r\n" };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct source_text text;

		assert_int_equal(split(texts[i], strlen(texts[i]), &text), 0);
		assert_int_equal(text.line_count, 4);
		assert_string_equal(text.lines[0], "a");
		assert_string_equal(text.lines[1], "\tb");
		assert_string_equal(text.lines[2], "");
		assert_string_equal(text.lines[3], "c");
		source_text_clear(&text);
	}
}

static void test_empty_file_has_no_lines(void **state)
{
	struct source_text text;

	(void)state;
	assert_int_equal(split("", 0, &text), 0);
	assert_int_equal(text.line_count, 0);
	source_text_clear(&text);
}

static void test_what_is_no_text_is_refused(void **state)
{
	struct source_text text = { 0 };
	char *many = malloc(SOURCE_LINES_MAX + 2), *enough = calloc(1, SOURCE_LINES_MAX + 1);

	(void)state;
	assert_int_equal(split("a\0b\n", 4, &text), -EILSEQ);
	assert_non_null(many);
	memset(many, '\n', SOURCE_LINES_MAX + 1);
	many[SOURCE_LINES_MAX + 1] = '\0';
	assert_int_equal(source_text_split(many, SOURCE_LINES_MAX + 1, &text), -EFBIG);
	assert_null(text.lines);
	assert_non_null(enough);
	memset(enough, '\n', SOURCE_LINES_MAX);
	assert_int_equal(source_text_split(enough, SOURCE_LINES_MAX, &text), 0);
	assert_int_equal(text.line_count, SOURCE_LINES_MAX);
	source_text_clear(&text);
}

static void test_lines_are_written_as_character_data(void **state)
{
	char *written = NULL;
	size_t length;
	FILE *out = open_memstream(&written, &length);

	(void)state;
	assert_non_null(out);
	source_data_write_line(out, "\tif a<b then\t-- \x1b[31m & ]]> \xe2\x80\xae\xff\r");
	fclose(out);
	assert_string_equal(written, "\tif a&lt;b then\t-- \\x1b[31m &amp; ]]&gt; \\u202e\\xff\\r");
	free(written);
}

/*---- In a picture ----*/

static const struct function in_a = { .kind = FRAME_LUA, .name = "f", .file = "@a.lua" };
static const struct function more_in_a = { .kind = FRAME_LUA, .name = "more", .file = "@a.lua" };
static const struct function in_b = { .kind = FRAME_LUA, .name = "g", .file = "@<b>.lua" };
static const struct function in_c = { .kind = FRAME_LUA, .name = "h", .file = "@c.lua" };
static const struct function in_d = { .kind = FRAME_LUA, .name = "i", .file = "@d.lua" };
static const struct function nowhere = { .kind = FRAME_LUA, .name = "nowhere" };
static const struct function builtin = { .kind = FRAME_BUILTIN, .name = "pairs", .file = "@a.lua" };

struct made_up_files {
	struct source_reader reader; /* first: what is asked */
	const char *texts[3];        /* of a, b and c; NULL: none */
	int error;                   /* of c */
};

static int read_made_up(struct source_reader *reader, const char *file, struct source_text *ret_text)
{
	const struct made_up_files *files = (const struct made_up_files *)reader;
	const size_t index = file == in_a.file ? 0 : file == in_b.file ? 1 : 2;

	*ret_text = (struct source_text){ 0 };
	if (index == 2 && files->error)
		return files->error;
	if (files->texts[index])
		return split(files->texts[index], strlen(files->texts[index]), ret_text);
	snprintf(ret_text->note, sizeof(ret_text->note), "<none>");
	return 0;
}

/* What a picture has of these files. */
static char *in_picture(struct made_up_files *files, int wanted)
{
	const struct function *const functions[] = { &in_a,      &builtin, NULL,  &in_b,
						     &more_in_a, &in_c,    &in_a, &nowhere };
	char *written = NULL;
	size_t length;
	FILE *out = open_memstream(&written, &length);

	files->reader.read = read_made_up;
	assert_non_null(out);
	assert_int_equal(
		source_data_write(out, functions, sizeof(functions) / sizeof(functions[0]), &files->reader),
		wanted);
	fclose(out);
	return written;
}

static void test_a_picture_has_each_file_once_with_its_functions(void **state)
{
	struct made_up_files files = { .texts = { "one\n\ttwo\n", NULL, "three" } };
	char *written = in_picture(&files, 0);

	(void)state;
	assert_string_equal(written, "<metadata id=\"files\">a.lua\t\t0 4 6\n"
				     "&lt;b&gt;.lua\t&lt;none&gt;\t3\n"
				     "c.lua\t\t5\n</metadata>\n"
				     "<metadata id=\"source-0\">one\n\ttwo\n</metadata>\n"
				     "<metadata id=\"source-2\">three\n</metadata>\n");
	free(written);
	files.error = -ENOMEM;
	written = in_picture(&files, -ENOMEM);
	assert_string_equal(written, "");
	free(written);
}

/* Small ones after a large one still come in. */
static void test_a_picture_has_only_so_much_text(void **state)
{
	char *large = malloc(SOURCE_ALL_BYTES_MAX);

	(void)state;
	assert_non_null(large);
	memset(large, 'x', SOURCE_ALL_BYTES_MAX);
	large[10] = '\n';
	/* With one more byte for the end of each line, all of it together with b. */
	large[SOURCE_ALL_BYTES_MAX - 3] = '\0';
	for (size_t more = 0; more < 2; more++) {
		struct made_up_files files = { .texts = { large, more ? "bb" : "b", more ? "c" : NULL } };
		char *written = in_picture(&files, 0);

		assert_non_null(strstr(written, ">a.lua\t\t"));
		if (more)
			assert_non_null(strstr(
				written,
				".lua\tleft out, because the files are too large together\t3\nc.lua\t\t5\n"));
		else
			assert_non_null(strstr(written, "<metadata id=\"source-1\">b\n</metadata>\n"));
		assert_int_equal(strstr(written, "id=\"source-1\"") != NULL, !more);
		assert_int_equal(strstr(written, "id=\"source-2\"") != NULL, more);
		free(written);
	}
	free(large);
}

/*---- Time ----*/

static struct sample sample_of(const struct frame *frames, size_t count, enum vm_state vm_state,
			       uint64_t cpu_ns)
{
	return (struct sample){ .cpu_ns = cpu_ns,
				.wall_ns = 2 * cpu_ns,
				.vm_state = vm_state,
				.frames = frames,
				.frame_count = count };
}

static void assert_time(const struct source_time *time, uint64_t own_ns, uint64_t total_ns)
{
	assert_int_equal(time->own_ns, own_ns);
	assert_int_equal(time->total_ns, total_ns);
}

static const struct source_line *assert_line(const struct source_line *line, uint32_t number, uint64_t own_ns,
					     uint64_t total_ns)
{
	assert_non_null(line);
	assert_int_equal(line->number, number);
	assert_time(&line->time, own_ns, total_ns);
	return line->hh.next;
}

static const struct source_file *assert_file(const struct source_file *file, const char *name,
					     uint64_t own_ns, uint64_t total_ns)
{
	assert_non_null(file);
	assert_string_equal(file->name, name);
	assert_time(&file->time, own_ns, total_ns);
	return file->hh.next;
}

static void test_a_line_has_what_it_takes_and_each_sample_once(void **state)
{
	static const struct frame recursive[] = {
		{ .function = &builtin },         { .function = &in_a, .line = 9 },
		{ .function = &in_a, .line = 7 }, { .function = &in_a, .line = 9 },
		{ .function = &in_b, .line = 2 },
	};
	static const struct frame called[] = { { .function = &in_b, .line = 1 },
					       { .function = &more_in_a, .line = 7 } };
	static const struct frame unknown[] = { { .function = &nowhere, .line = 5 },
						{ .function = &in_a, .line = 9 } };
	static const struct frame of_d = { .function = &in_d }, of_c = { .function = &in_c };
	const struct sample samples[] = {
		sample_of(&of_d, 1, VM_STATE_EXIT, 7),          sample_of(recursive, 5, VM_STATE_C, 10),
		sample_of(recursive + 4, 1, VM_STATE_GC, 3),    sample_of(called, 2, VM_STATE_COMPILED, 4),
		sample_of(unknown, 2, VM_STATE_INTERPRETED, 1), sample_of(recursive, 1, VM_STATE_C, 100),
		sample_of(&of_c, 1, VM_STATE_EXIT, 7),
	};

	(void)state;
	for (unsigned int times = 1; times <= 2; times++) {
		struct made_up_source source = made_up_source(samples, 7);
		struct source_lines lines;
		const struct source_file *file;
		const struct source_line *line;

		assert_int_equal(source_lines_read(&source.source,
						   times == 2 ? WEIGHT_WALL_TIME : WEIGHT_CPU_TIME, &lines),
				 0);
		assert_int_equal(lines.samples, 7);
		assert_int_equal(lines.all_ns, 132 * times);
		/* By own time, then by total, then by name. */
		file = assert_file(lines.files, "@a.lua", 11 * times, 15 * times);
		file = assert_file(file, "@<b>.lua", 7 * times, 17 * times);
		file = assert_file(file, "@c.lua", 7 * times, 7 * times);
		assert_null(assert_file(file, "@d.lua", 7 * times, 7 * times));
		line = assert_line(lines.files->lines, 7, 0, 14 * times);
		assert_int_equal(line->time.state_ns[VM_STATE_C], 10 * times);
		assert_int_equal(line->time.state_ns[VM_STATE_INTERPRETED], 1 * times);
		assert_null(assert_line(line, 9, 11 * times, 11 * times));
		file = lines.files->hh.next;
		line = assert_line(file->lines, 1, 4 * times, 4 * times);
		assert_null(assert_line(line, 2, 3 * times, 13 * times));
		assert_int_equal(file->time.state_ns[VM_STATE_COMPILED], 4 * times);
		assert_int_equal(file->time.state_ns[VM_STATE_GC], 3 * times);
		source_lines_clear(&lines);
		assert_null(lines.files);
	}
}

static void test_an_error_of_the_samples_is_passed_on(void **state)
{
	static const struct frame of_a = { .function = &in_a, .line = 1 };
	const struct sample sample = sample_of(&of_a, 1, VM_STATE_C, 1);
	struct made_up_source source = made_up_source(&sample, 1);
	struct source_lines lines = { .samples = 77 };

	(void)state;
	source.end = -EBADMSG;
	assert_int_equal(source_lines_read(&source.source, WEIGHT_CPU_TIME, &lines), -EBADMSG);
	assert_int_equal(lines.samples, 77);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines_end_in_any_way),
		cmocka_unit_test(test_empty_file_has_no_lines),
		cmocka_unit_test(test_what_is_no_text_is_refused),
		cmocka_unit_test(test_lines_are_written_as_character_data),
		cmocka_unit_test(test_a_picture_has_each_file_once_with_its_functions),
		cmocka_unit_test(test_a_picture_has_only_so_much_text),
		cmocka_unit_test(test_a_line_has_what_it_takes_and_each_sample_once),
		cmocka_unit_test(test_an_error_of_the_samples_is_passed_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

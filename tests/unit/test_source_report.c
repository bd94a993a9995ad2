/* SPDX-License-Identifier: MIT */
/* Source files as text: which files and lines are shown, and what stands in a line. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/source/source_report.h"
#include "tests/unit/made_up_source.h"

enum { SAMPLES_MAX = 8 };

static const struct function in_a = { .kind = FRAME_LUA, .name = "f", .file = "@a.lua" };
static const struct function in_b = { .kind = FRAME_LUA, .name = "g", .file = "@b.lua" };

/* What each file has, and why none can be read. */
struct made_up_files {
	struct source_reader reader; /* first: what is asked */
	const char *text;
	int error;
};

static int read_made_up(struct source_reader *reader, const char *file, struct source_text *ret_text)
{
	const struct made_up_files *files = (const struct made_up_files *)reader;

	(void)file;
	*ret_text = (struct source_text){ 0 };
	if (files->error || !files->text)
		return files->error;
	return source_text_split(strdup(files->text), strlen(files->text), ret_text);
}

/* Samples in lines of functions, by their CPU time in ms. */
struct seen {
	const struct function *function;
	uint32_t line;
	uint64_t ms;
};

/* The report; the caller frees it. */
static char *report_of(const struct seen *seen, size_t count, const char *text, double min_percent)
{
	struct made_up_files files = { .reader = { read_made_up }, .text = text };
	struct frame frames[SAMPLES_MAX];
	struct sample samples[SAMPLES_MAX];
	struct made_up_source source;
	char *report = NULL;
	size_t length;
	FILE *out = open_memstream(&report, &length);

	assert_true(count <= SAMPLES_MAX);
	for (size_t i = 0; i < count; i++) {
		frames[i] = (struct frame){ .function = seen[i].function, .line = seen[i].line };
		samples[i] = (struct sample){
			.cpu_ns = seen[i].ms * 1000000,
			.vm_state = VM_STATE_C,
			.frames = &frames[i],
			.frame_count = 1,
		};
	}
	source = made_up_source(samples, count);
	assert_int_equal(
		source_report_write(out, &source.source, &(struct session){ 0 }, &(struct figures){ 0 },
				    &(struct view){ .source = &files.reader, .min_percent = min_percent }),
		0);
	assert_int_equal(fclose(out), 0);
	return report;
}

/* The rows of a file, from that of all its lines on; cuts the report. */
static const char *rows_of(char *report, const char *file)
{
	char *begin = strstr(report, file), *end;

	assert_non_null(begin);
	begin = strstr(begin, "line\n") + 5;
	end = strstr(begin, "\n\n");
	if (end)
		end[1] = '\0';
	return begin;
}

static void assert_rows(const struct seen *seen, size_t count, const char *text, const char *wanted)
{
	char *report = report_of(seen, count, text, 0);

	assert_string_equal(rows_of(report, "\na.lua\n"), wanted);
	free(report);
}

/* Spaces as wide as that many columns of shares. */
#define NO_SHARES "                                                               "
#define ALL " 100.00   100.00                     100.00                    "

static void a_line_with_time_has_its_neighbours(void **state)
{
	static const struct seen first = { &in_a, 1, 5 }, middle = { &in_a, 4, 5 }, last = { &in_a, 6, 5 };

	(void)state;
	assert_rows(&first, 1, "one\ntwo\nthree\nfour\nfive\nsix\n",
		    ALL "   all\n" ALL "     1  one\n" NO_SHARES "     2  two\n" NO_SHARES
			"     3  three\n   ...\n");
	assert_rows(&middle, 1, "one\ntwo\nthree\nfour\nfive\nsix\n",
		    ALL "   all\n" NO_SHARES "     2  two\n" NO_SHARES "     3  three\n" ALL
			"     4  four\n" NO_SHARES "     5  five\n" NO_SHARES "     6  six\n");
	assert_rows(&last, 1, "one\ntwo\nthree\nfour\nfive\nsix\n",
		    ALL "   all\n" NO_SHARES "     4  four\n" NO_SHARES "     5  five\n" ALL "     6  six\n");
}

/* A file may have been changed since it was run. */
static void lines_may_be_empty_or_beyond_the_text_or_unknown(void **state)
{
	static const struct seen empty = { &in_a, 2, 5 }, beyond = { &in_a, 4, 5 }, unknown = { &in_a, 0, 5 };

	(void)state;
	assert_rows(&empty, 1, "one\n\nthree\n",
		    ALL "   all\n" NO_SHARES "     1  one\n" ALL "     2\n" NO_SHARES "     3  three\n");
	assert_rows(&beyond, 1, "one\ntwo\nthree\n",
		    ALL "   all\n" NO_SHARES "     2  two\n" NO_SHARES "     3  three\n" ALL "     4\n");
	assert_rows(&unknown, 1, "one\ntwo\nthree\n", ALL "   all\n" ALL "     ?\n");
	assert_rows(&beyond, 1, NULL, ALL "   all\n" ALL "     4\n");
}

/* All lines between two with time, unless there are more than those next to them. */
static void lines_between_others_are_left_out_if_they_are_many(void **state)
{
	(void)state;
	for (uint32_t between = 0; between <= 6; between++) {
		const struct seen seen[] = { { &in_a, 1, 5 }, { &in_a, 2 + between, 5 } };
		char text[] = "1\n2\n3\n4\n5\n6\n7\n8\n", number[32], *report;

		text[2 * (2 + between)] = '\0';
		report = report_of(seen, 2, text, 0);
		for (uint32_t line = 1; line <= 2 + between; line++) {
			const bool shown = line <= 3 || line >= between || between <= 4;

			snprintf(number, sizeof(number), "%6u  %u\n", line, line);
			assert_int_equal(strstr(report, number) != NULL, shown);
		}
		assert_int_equal(strstr(report, "   ...\n") != NULL, between > 4);
		free(report);
	}
}

static void tabs_go_to_columns_of_eight(void **state)
{
	static const struct seen seen = { &in_a, 1, 5 };
	char wanted[2200];

	(void)state;
	assert_rows(&seen, 1, "\ta\t\tb", ALL "   all\n" ALL "     1          a               b\n");
	assert_rows(&seen, 1, "1234567\t8\x1b\n", ALL "   all\n" ALL "     1  1234567 8\\x1b\n");
	assert_rows(&seen, 1, "\u00e4\u20ac\t9\n", ALL "   all\n" ALL "     1  \u00e4\u20ac      9\n");
	assert_rows(&seen, 1, "12345678\t9", ALL "   all\n" ALL "     1  12345678        9\n");
	/* However long a line is, it is there as it is: no character is taken apart. */
	for (size_t shift = 0; shift < 2; shift++) {
		char longer[2001] = "";

		memset(longer, 'x', shift);
		for (size_t i = shift; i + 2 < sizeof(longer); i += 2)
			memcpy(longer + i, "\u00e4", 2);
		snprintf(wanted, sizeof(wanted), "%s   all\n%s     1  %s\n", ALL, ALL, longer);
		assert_rows(&seen, 1, longer, wanted);
	}
}

static void files_and_lines_below_a_share_are_left_out_and_counted(void **state)
{
	static const struct seen seen[] = { { &in_a, 1, 70 }, { &in_a, 5, 20 }, { &in_b, 3, 10 } };
	char *report;

	(void)state;
	report = report_of(seen, 3, NULL, 10);
	assert_non_null(strstr(report, "\na.lua\n"));
	assert_non_null(strstr(report, "\nb.lua\n"));
	assert_null(strstr(report, "left out"));
	assert_null(strstr(report, "without their time"));
	free(report);
	report = report_of(seen, 3, NULL, 21);
	assert_non_null(strstr(report, "\na.lua\n"));
	assert_null(strstr(report, "\nb.lua\n"));
	assert_null(strstr(report, "     5\n"));
	assert_non_null(strstr(report, "\n1 lines with a total below 21 % are shown without their time.\n"));
	assert_non_null(strstr(report, "\n1 files with a total below 21 % are left out.\n"));
	free(report);
	/* Where nobody says how much, a file with any time has to have its share, too. */
	report = report_of((const struct seen[]){ { &in_a, 1, 100000 }, { &in_b, 3, 1 } }, 2, NULL, 0);
	assert_non_null(strstr(report, "\na.lua\n"));
	assert_null(strstr(report, "\nb.lua\n"));
	free(report);
}

static void without_time_no_file_is_shown(void **state)
{
	static const struct seen seen = { &in_a, 1, 0 };
	char *report = report_of(&seen, 1, "one\n", 0);

	(void)state;
	assert_null(strstr(report, "a.lua"));
	assert_null(strstr(report, "nan"));
	assert_non_null(strstr(report, "\n1 files with a total below "));
	free(report);
}

static void why_a_file_cannot_be_read_is_passed_on(void **state)
{
	static const struct frame frame = { .function = &in_a, .line = 1 };
	const struct sample sample = { .cpu_ns = 1, .frames = &frame, .frame_count = 1 };
	struct made_up_source source = made_up_source(&sample, 1);
	struct made_up_files files = { .reader = { read_made_up }, .error = -ENOMEM };
	const struct view view = { .source = &files.reader };
	FILE *out = fopen("/dev/null", "we"), *full = fopen("/dev/full", "we");

	(void)state;
	assert_non_null(out);
	assert_non_null(full);
	assert_int_equal(source_report_write(out, &source.source, &(struct session){ 0 },
					     &(struct figures){ 0 }, &view),
			 -ENOMEM);
	files.error = 0;
	setbuf(full, NULL);
	made_up_rewind(&source.source);
	assert_int_equal(source_report_write(full, &source.source, &(struct session){ 0 },
					     &(struct figures){ 0 }, &view),
			 -EIO);
	made_up_rewind(&source.source);
	source.end = -EBADMSG;
	assert_int_equal(source_report_write(out, &source.source, &(struct session){ 0 },
					     &(struct figures){ 0 }, &view),
			 -EBADMSG);
	fclose(out);
	fclose(full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_with_time_has_its_neighbours),
		cmocka_unit_test(lines_may_be_empty_or_beyond_the_text_or_unknown),
		cmocka_unit_test(lines_between_others_are_left_out_if_they_are_many),
		cmocka_unit_test(tabs_go_to_columns_of_eight),
		cmocka_unit_test(files_and_lines_below_a_share_are_left_out_and_counted),
		cmocka_unit_test(without_time_no_file_is_shown),
		cmocka_unit_test(why_a_file_cannot_be_read_is_passed_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

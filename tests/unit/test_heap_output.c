/* SPDX-License-Identifier: MIT */
/*
 * A comparison of heaps has only VMs that could be read on both sides; of a series, what cannot be written is
 * told.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "output/heap/heap_builder.h"
#include "src/program/output_file.h"
#include "src/rendering/heap_output.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_heap.h"
#include "tests/unit/told.h"

static int open_error; /* with which no file can be opened; 0: it can */

INSTEAD_OF(output_file_open);
int __wrap_output_file_open(const char *path, struct output_file *ret_file)
{
	return open_error ? open_error : __real_output_file_open(path, ret_file);
}

static void add(struct heap_output *output, uint64_t g, uint32_t entries, bool is_missing)
{
	struct heap_graph graph = is_missing ? made_up_root_alone() : made_up_leak(entries, 2, 2);
	struct heap_account account = made_up_account(&graph);

	account.g = g;
	account.vm = (unsigned int)g;
	if (is_missing)
		account.method = HEAP_MISSING;
	assert_int_equal(heap_output_add(output, &graph, &account), 0);
}

/* An output as text, to a file of its own. */
struct shown {
	char path[sizeof("/tmp/ljspy-heap-output-XXXXXX")];
	struct options options;
	struct heap_output output;
};

static void begin(struct shown *shown)
{
	int file;

	*shown = (struct shown){ .path = "/tmp/ljspy-heap-output-XXXXXX",
				 .options = { .heap_format = heap_format_by_name("text") } };
	shown->options.output = shown->path;
	shown->output.options = &shown->options;
	file = mkstemp(shown->path);
	assert_true(file >= 0);
	close(file);
}

/* Read what it has written, and end it. */
static void end(struct shown *shown, char *text, size_t size)
{
	FILE *file = fopen(shown->path, "r");
	size_t length;

	assert_non_null(file);
	length = fread(text, 1, size - 1, file);
	text[length] = '\0';
	fclose(file);
	heap_output_clear(&shown->output);
	unlink(shown->path);
}

static void a_vm_that_is_missing_on_one_side_has_not_shrunk(void **state)
{
	char text[1 << 16];
	struct shown shown;

	(void)state;
	begin(&shown);
	assert_int_equal(heap_output_begin_moment(&shown.output, "before.heap"), 0);
	add(&shown.output, 1, 9000, false);
	add(&shown.output, 2, 500, false);
	assert_int_equal(heap_output_begin_moment(&shown.output, "after.heap"), 0);
	add(&shown.output, 1, 0, true);
	add(&shown.output, 2, 500, false);
	assert_true(shown.output.is_partial);
	assert_true(heap_output_compare(&shown.output));
	end(&shown, text, sizeof(text));
	assert_null(strstr(text, "Shrank"));
	assert_non_null(strstr(text, "VM 1: could not be read"));
}

/* One coroutine and a function as files have them now; the coroutines of add() are as in old files. */
static void add_waiting(struct heap_output *output)
{
	static const struct made_up_node nodes[] = {
		{ .kind = HEAP_KIND_THREAD, .bytes = 1000, .text = "serve a.lua:1", .place = "wait a.lua:3" },
		{ .kind = HEAP_KIND_FUNCTION, .bytes = 48, .text = "next [builtin]" },
	};
	static const struct made_up_edge edges[] = {
		{ .to = 1, .hold = HEAP_HOLDS_ROOT, .text = "held" },
		{ .to = 2, .hold = HEAP_HOLDS_ROOT, .text = "held" },
	};
	struct heap_graph graph = made_up_heap(nodes, 2, edges, 2);
	struct heap_account account = made_up_account(&graph);

	assert_int_equal(heap_output_add(output, &graph, &account), 0);
}

/* As a file of before functions in C had names. */
static void add_unnamed(struct heap_output *output)
{
	struct heap_graph graph = made_up_leak(5, 2, 2);
	struct heap_account account = made_up_account(&graph);

	account.c_unnamed = true;
	assert_int_equal(heap_output_add(output, &graph, &account), 0);
}

/* A text says it, of what else compares a message. */
static void paths_in_other_words_are_told_in_each_format(void **state)
{
	static const char *const names[] = { "text", "svg", "folded" };
	static const char *const words[] = { "Paths through coroutines do not compare",
					     "Paths through functions in C do not compare" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (int mixed = 0; mixed < 2; mixed++) {
			static char text[1 << 20];
			struct shown shown;

			begin(&shown);
			shown.options.heap_format = heap_format_by_name(names[i]);
			assert_int_equal(heap_output_begin_moment(&shown.output, "before.heap"), 0);
			add_unnamed(&shown.output);
			assert_int_equal(heap_output_begin_moment(&shown.output, "after.heap"), 0);
			if (mixed)
				add_waiting(&shown.output);
			else
				add_unnamed(&shown.output);
			told_begin();
			assert_true(heap_output_compare(&shown.output));
			told_end();
			end(&shown, text, sizeof(text));
			for (size_t k = 0; k < 2; k++) {
				assert_int_equal(told_times(words[k]), mixed && i > 0);
				assert_int_equal(strstr(text, words[k]) != NULL, mixed && i == 0);
			}
		}
}

enum { MOMENTS = 11 };

/* What a series says, in which both VMs grow, and VM 1 is missing at so many moments, the first ones. */
static void write_series(unsigned int missing, char *text, size_t size)
{
	struct shown shown;

	begin(&shown);
	for (unsigned int i = 0; i < MOMENTS; i++) {
		assert_int_equal(heap_output_begin_moment(&shown.output, NULL), 0);
		add(&shown.output, 1, 700 + i, i < missing);
		add(&shown.output, 2, 1000 * (i + 1), false);
	}
	assert_true(heap_output_write_series(&shown.output));
	end(&shown, text, size);
}

/* Without names of keys, since at the last moment they are not told apart. */
static void keys_that_become_many_grow_in_every_interval(void **state)
{
	static const uint32_t entries[] = { HEAP_KEYS_MAX - 20, HEAP_KEYS_MAX, HEAP_KEYS_MAX + 20 };
	static char text[1 << 16];
	struct shown shown;

	(void)state;
	begin(&shown);
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		assert_int_equal(heap_output_begin_moment(&shown.output, NULL), 0);
		add(&shown.output, 1, entries[i], false);
	}
	assert_true(heap_output_write_series(&shown.output));
	end(&shown, text, sizeof(text));
	assert_null(strstr(text, "No path grew"));
	assert_non_null(strstr(text, "[\"*\"]"));
	assert_null(strstr(text, "user:"));
}

static size_t occurrences(const char *text, const char *of)
{
	size_t count = 0;

	while ((text = strstr(text, of)) != NULL) {
		count++;
		text++;
	}
	return count;
}

static void a_vm_that_is_mostly_missing_leaves_the_others_a_comparison(void **state)
{
	char text[1 << 16];

	(void)state;
	for (unsigned int read = 0; read < 2; read++) {
		char left_out[100];

		write_series(MOMENTS - read, text, sizeof(text));
		snprintf(left_out, sizeof(left_out),
			 "VM 1 is left out of the comparison: not read at %u of %u moments.\n",
			 MOMENTS - read, MOMENTS);
		assert_non_null(strstr(text, left_out));
		assert_int_equal(occurrences(text, "VM 1: could not be read"), MOMENTS - read);
		assert_non_null(strstr(text, "Grew in every interval"));
		assert_null(strstr(text, "Compared are"));
	}
}

/* "12.3 kB in 456 objects" of the last moment. */
static const char *last_total(char *text)
{
	char *change = strstr(text, "\nchange"), *end = NULL, *begin;

	assert_non_null(change);
	*change = '\0';
	for (char *at = text; (at = strstr(at, " objects")); at++)
		end = at;
	assert_non_null(end);
	*end = '\0';
	begin = strrchr(text, '\n');
	assert_non_null(begin);
	return begin;
}

/* Whatever is compared, the totals have all that was read. */
static void the_totals_have_a_vm_that_is_left_out(void **state)
{
	char without[1 << 16], with[1 << 16];

	(void)state;
	write_series(MOMENTS, without, sizeof(without));
	write_series(MOMENTS - 1, with, sizeof(with));
	assert_non_null(strstr(with, "is left out"));
	assert_string_not_equal(last_total(with), last_total(without));
}

static void a_vm_that_is_read_at_two_moments_is_compared(void **state)
{
	char text[1 << 16];

	(void)state;
	write_series(1, text, sizeof(text));
	assert_non_null(strstr(text, "VM 1: could not be read"));
	assert_non_null(strstr(text, "Compared are the 10 of 11 moments"));
	assert_non_null(strstr(text, "Grew in every interval"));
	assert_null(strstr(text, "left out"));
	write_series(MOMENTS - 2, text, sizeof(text));
	assert_non_null(strstr(text, "Compared are the 2 of 11 moments"));
	assert_non_null(strstr(text, "Grew in every interval"));
	assert_null(strstr(text, "left out"));
}

/* A VM that is never missing is compared, and so is one that is missing less often than others. */
static void those_that_are_missing_most_often_are_left_out(void **state)
{
	char text[1 << 16];
	struct shown shown;

	(void)state;
	begin(&shown);
	for (unsigned int i = 0; i < MOMENTS; i++) {
		assert_int_equal(heap_output_begin_moment(&shown.output, NULL), 0);
		add(&shown.output, 1, 700, i % 3 == 0);
		add(&shown.output, 2, 100, i % 3 != 0);
		add(&shown.output, 3, 100, i != 1);
		add(&shown.output, 4, 1000 * (i + 1), false);
	}
	assert_true(heap_output_write_series(&shown.output));
	end(&shown, text, sizeof(text));
	assert_non_null(strstr(text, "VM 3 is left out of the comparison: not read at 10 of 11 moments.\n"));
	assert_non_null(strstr(text, "VM 2 is left out of the comparison: not read at 7 of 11 moments.\n"));
	assert_null(strstr(text, "VM 1 is left out"));
	assert_non_null(strstr(text, "Compared are the 7 of 11 moments"));
	assert_non_null(strstr(text, "Grew in every interval"));
}

/* Where nothing is left to compare, none is left out. */
static void moments_without_any_vm_are_not_compared(void **state)
{
	char text[1 << 16];
	struct shown shown;

	(void)state;
	begin(&shown);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(heap_output_begin_moment(&shown.output, NULL), 0);
		add(&shown.output, 1, 700, i > 0);
	}
	assert_true(heap_output_write_series(&shown.output));
	end(&shown, text, sizeof(text));
	assert_non_null(strstr(text, "There are no suspects"));
	assert_null(strstr(text, "left out"));
}

/*---- Files of a series that cannot be written ----*/

/* One look of a series that keeps its moments. */
static bool write_moment(struct shown *shown, int error)
{
	bool good;

	open_error = error;
	assert_int_equal(heap_output_begin_moment(&shown->output, NULL), 0);
	add(&shown->output, 1, 700, false);
	told_begin();
	good = heap_output_write_moment(&shown->output);
	told_end();
	open_error = 0;
	return good;
}

static void begin_kept(struct shown *shown)
{
	begin(shown);
	unlink(shown->path);
	shown->options.heap_format = heap_format_by_path("x.heap");
	assert_non_null(shown->options.heap_format);
	assert_true(shown->options.heap_format->needs_graph);
}

static void remove_moment(const struct shown *shown, size_t number)
{
	char path[sizeof(shown->path) + 16];

	snprintf(path, sizeof(path), "%s-%zu", shown->path, number);
	assert_int_equal(unlink(path), 0);
}

static void what_cannot_be_written_is_told_once_for_each_reason(void **state)
{
	struct shown shown;

	(void)state;
	begin_kept(&shown);
	assert_false(write_moment(&shown, -ENOSPC));
	assert_int_equal(told_times("No space left"), 1);
	assert_int_equal(told_times("The series goes on"), 1);
	assert_int_equal(told_times("stays"), 0); /* nothing is written yet */
	assert_false(write_moment(&shown, -ENOSPC));
	assert_string_equal(told, "");
	assert_false(write_moment(&shown, -EDQUOT));
	assert_int_equal(told_times("quota"), 1);
	assert_int_equal(told_times("The series goes on"), 0);
	assert_true(write_moment(&shown, 0));
	assert_false(write_moment(&shown, -EDQUOT));
	assert_int_equal(told_times("quota"), 1);
	assert_int_equal(shown.output.unwritten, 4);
	remove_moment(&shown, 4);
	heap_output_clear(&shown.output);
}

static void what_was_written_before_is_told_to_stay(void **state)
{
	struct shown shown;

	(void)state;
	begin_kept(&shown);
	assert_true(write_moment(&shown, 0));
	assert_false(write_moment(&shown, -ENOSPC));
	assert_int_equal(told_times("What was written before stays."), 1);
	remove_moment(&shown, 1);
	heap_output_clear(&shown.output);
}

static void moments_are_said_to_be_in_a_text_that_is_there(void **state)
{
	struct shown shown;

	(void)state;
	for (int error = 0; error >= -ENOSPC; error -= ENOSPC) {
		begin(&shown);
		for (size_t i = 0; i < 2; i++)
			assert_true(write_moment(&shown, 0)); /* it has no file */
		shown.output.unwritten = 2;
		open_error = error;
		told_begin();
		assert_int_equal(heap_output_write_series(&shown.output), !error);
		told_end();
		open_error = 0;
		assert_int_equal(told_times("2 of the 2 moments in the text could not be written"), !error);
		assert_int_equal(told_times("2 of the 2 moments could not be written"), !!error);
		heap_output_clear(&shown.output);
		unlink(shown.path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_vm_that_is_missing_on_one_side_has_not_shrunk),
		cmocka_unit_test(paths_in_other_words_are_told_in_each_format),
		cmocka_unit_test(keys_that_become_many_grow_in_every_interval),
		cmocka_unit_test(a_vm_that_is_mostly_missing_leaves_the_others_a_comparison),
		cmocka_unit_test(the_totals_have_a_vm_that_is_left_out),
		cmocka_unit_test(a_vm_that_is_read_at_two_moments_is_compared),
		cmocka_unit_test(those_that_are_missing_most_often_are_left_out),
		cmocka_unit_test(moments_without_any_vm_are_not_compared),
		cmocka_unit_test(what_cannot_be_written_is_told_once_for_each_reason),
		cmocka_unit_test(what_was_written_before_is_told_to_stay),
		cmocka_unit_test(moments_are_said_to_be_in_a_text_that_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

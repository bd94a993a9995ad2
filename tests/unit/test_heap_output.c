/* SPDX-License-Identifier: MIT */
/* A comparison of heaps has only VMs that could be read on both sides. */
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
#include "src/rendering/heap_output.h"
#include "tests/unit/made_up_heap.h"

/* That of a VM that could not be read. */
static struct heap_graph root_alone(void)
{
	struct heap_builder *builder = heap_builder_new();
	struct heap_graph graph;

	assert_non_null(builder);
	assert_int_equal(heap_builder_finish(builder, &graph), 0);
	heap_builder_free(builder);
	return graph;
}

static void add(struct heap_output *output, uint64_t g, uint32_t entries, bool is_missing)
{
	struct heap_graph graph = is_missing ? root_alone() : made_up_leak(entries, 2, 2);
	struct heap_account account = made_up_account(&graph);

	account.g = g;
	account.vm = (unsigned int)g;
	if (is_missing)
		account.method = HEAP_MISSING;
	assert_int_equal(heap_output_add(output, &graph, &account), 0);
}

static void read_text(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "r");
	size_t length;

	assert_non_null(file);
	length = fread(text, 1, size - 1, file);
	text[length] = '\0';
	fclose(file);
}

static void a_vm_that_is_missing_on_one_side_has_not_shrunk(void **state)
{
	char path[] = "/tmp/ljspy-heap-output-XXXXXX", text[1 << 16];
	const int file = mkstemp(path);
	struct options options = { .heap_format = heap_format_by_name("text"), .output = path };
	struct heap_output output = { .options = &options };

	(void)state;
	assert_true(file >= 0);
	assert_int_equal(heap_output_begin_moment(&output, "before.heap"), 0);
	add(&output, 1, 9000, false);
	add(&output, 2, 500, false);
	assert_int_equal(heap_output_begin_moment(&output, "after.heap"), 0);
	add(&output, 1, 0, true);
	add(&output, 2, 500, false);
	assert_true(output.is_partial);
	assert_true(heap_output_compare(&output));
	read_text(path, text, sizeof(text));
	assert_null(strstr(text, "Shrank"));
	assert_non_null(strstr(text, "VM 1: could not be read"));
	heap_output_clear(&output);
	close(file);
	unlink(path);
}

enum { MOMENTS = 11 };

/* What a series says, in which both VMs grow, and VM 1 is missing at so many moments, the first ones. */
static void write_series(unsigned int missing, char *text, size_t size)
{
	char path[] = "/tmp/ljspy-heap-output-XXXXXX";
	const int file = mkstemp(path);
	struct options options = { .heap_format = heap_format_by_name("text"), .output = path };
	struct heap_output output = { .options = &options };

	assert_true(file >= 0);
	for (unsigned int i = 0; i < MOMENTS; i++) {
		assert_int_equal(heap_output_begin_moment(&output, NULL), 0);
		add(&output, 1, 700 + i, i < missing);
		add(&output, 2, 1000 * (i + 1), false);
	}
	assert_true(heap_output_write_series(&output));
	read_text(path, text, size);
	heap_output_clear(&output);
	close(file);
	unlink(path);
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
	char path[] = "/tmp/ljspy-heap-output-XXXXXX", text[1 << 16];
	const int file = mkstemp(path);
	struct options options = { .heap_format = heap_format_by_name("text"), .output = path };
	struct heap_output output = { .options = &options };

	(void)state;
	assert_true(file >= 0);
	for (unsigned int i = 0; i < MOMENTS; i++) {
		assert_int_equal(heap_output_begin_moment(&output, NULL), 0);
		add(&output, 1, 700, i % 3 == 0);
		add(&output, 2, 100, i % 3 != 0);
		add(&output, 3, 100, i != 1);
		add(&output, 4, 1000 * (i + 1), false);
	}
	assert_true(heap_output_write_series(&output));
	read_text(path, text, sizeof(text));
	assert_non_null(strstr(text, "VM 3 is left out of the comparison: not read at 10 of 11 moments.\n"));
	assert_non_null(strstr(text, "VM 2 is left out of the comparison: not read at 7 of 11 moments.\n"));
	assert_null(strstr(text, "VM 1 is left out"));
	assert_non_null(strstr(text, "Compared are the 7 of 11 moments"));
	assert_non_null(strstr(text, "Grew in every interval"));
	heap_output_clear(&output);
	close(file);
	unlink(path);
}

/* Where nothing is left to compare, none is left out. */
static void moments_without_any_vm_are_not_compared(void **state)
{
	char path[] = "/tmp/ljspy-heap-output-XXXXXX", text[1 << 16];
	const int file = mkstemp(path);
	struct options options = { .heap_format = heap_format_by_name("text"), .output = path };
	struct heap_output output = { .options = &options };

	(void)state;
	assert_true(file >= 0);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(heap_output_begin_moment(&output, NULL), 0);
		add(&output, 1, 700, i > 0);
	}
	assert_true(heap_output_write_series(&output));
	read_text(path, text, sizeof(text));
	assert_non_null(strstr(text, "There are no suspects"));
	assert_null(strstr(text, "left out"));
	heap_output_clear(&output);
	close(file);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_vm_that_is_missing_on_one_side_has_not_shrunk),
		cmocka_unit_test(a_vm_that_is_mostly_missing_leaves_the_others_a_comparison),
		cmocka_unit_test(the_totals_have_a_vm_that_is_left_out),
		cmocka_unit_test(a_vm_that_is_read_at_two_moments_is_compared),
		cmocka_unit_test(those_that_are_missing_most_often_are_left_out),
		cmocka_unit_test(moments_without_any_vm_are_not_compared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

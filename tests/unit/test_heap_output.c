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

#include "src/rendering/heap_output.h"
#include "tests/unit/made_up_heap.h"

static void add(struct heap_output *output, uint64_t g, uint32_t entries, bool is_missing)
{
	struct heap_graph graph = made_up_leak(entries, 2, 2);
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

enum { MOMENTS = 5 };

/* What a series says, in which VM 1 is missing at so many moments, and VM 2 grows. */
static void write_series(unsigned int missing, char *text, size_t size)
{
	char path[] = "/tmp/ljspy-heap-output-XXXXXX";
	const int file = mkstemp(path);
	struct options options = { .heap_format = heap_format_by_name("text"), .output = path };
	struct heap_output output = { .options = &options };

	assert_true(file >= 0);
	for (unsigned int i = 0; i < MOMENTS; i++) {
		assert_int_equal(heap_output_begin_moment(&output, NULL), 0);
		add(&output, 1, 700, i < missing);
		add(&output, 2, 1000 * (i + 1), false);
	}
	assert_true(heap_output_write_series(&output));
	read_text(path, text, size);
	heap_output_clear(&output);
	close(file);
	unlink(path);
}

static void a_vm_that_is_mostly_missing_leaves_the_others_a_series(void **state)
{
	char text[1 << 16];

	(void)state;
	write_series(MOMENTS, text, sizeof(text));
	assert_non_null(strstr(text, "Grew in every interval"));
	assert_null(strstr(text, "VM 1: could not be read"));
	write_series(MOMENTS - 1, text, sizeof(text));
	assert_non_null(strstr(text, "Grew in every interval"));
	assert_null(strstr(text, "Compared are"));
}

static void a_vm_that_is_seldom_missing_is_in_the_series(void **state)
{
	char text[1 << 16];

	(void)state;
	write_series(1, text, sizeof(text));
	assert_non_null(strstr(text, "VM 1: could not be read"));
	assert_non_null(strstr(text, "Compared are the 4 of 5 moments"));
	assert_non_null(strstr(text, "Grew in every interval"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_vm_that_is_missing_on_one_side_has_not_shrunk),
		cmocka_unit_test(a_vm_that_is_mostly_missing_leaves_the_others_a_series),
		cmocka_unit_test(a_vm_that_is_seldom_missing_is_in_the_series),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

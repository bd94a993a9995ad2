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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_vm_that_is_missing_on_one_side_has_not_shrunk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

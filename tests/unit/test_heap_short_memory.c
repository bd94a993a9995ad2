/* SPDX-License-Identifier: MIT */
/*
 * What happens to files of heaps when memory is short: they are written whole, or the error is told. Each
 * allocation fails once.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/heap_reports/heap_report.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_heap.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
INSTEAD_OF(reallocarray);
#define FAILING_REALLOCARRAY
#include "tests/unit/failing_allocation.h"

enum { ALLOCATIONS_MAX = 20000, NONE_FAILS = ALLOCATIONS_MAX };

struct written {
	char *text;
	size_t length;
	int error;
	bool has_failed; /* an allocation */
};

static struct heap_subject smaller, larger;

static int make_subjects(void **state)
{
	(void)state;
	smaller = made_up_subject(made_up_leak(4, 2, 2));
	larger = made_up_subject(made_up_leak(6, 3, 2));
	return 0;
}

static int clear_subjects(void **state)
{
	(void)state;
	heap_subject_clear(&smaller);
	heap_subject_clear(&larger);
	return 0;
}

/* A heap, or how it differs from a smaller one, written while the allocation after so many others fails. */
static struct written write_heap(const struct heap_format *format, bool compares, size_t failed)
{
	const struct heap_side before = { .subjects = &smaller, .count = 1 },
			       after = { .subjects = &larger, .count = 1 };
	const struct heap_view view = { 0 };
	struct written written = { .text = NULL };
	FILE *out = open_memstream(&written.text, &written.length);

	allocation_fails_after(failed);
	written.error = compares ? format->compare(out, &before, &after, &view)
				 : format->write(out, &after, &view);
	written.has_failed = allocation_failed();
	assert_int_equal(fclose(out), 0);
	return written;
}

static void write_short_of_memory(const struct heap_format *format, bool compares)
{
	const struct written whole = write_heap(format, compares, NONE_FAILS);
	struct written written = { .has_failed = true };
	size_t failed = 0;

	assert_int_equal(whole.error, 0);
	for (; written.has_failed && failed < ALLOCATIONS_MAX; failed++) {
		written = write_heap(format, compares, failed);
		if (written.error) {
			assert_int_equal(written.error, -ENOMEM);
		} else {
			assert_int_equal(written.length, whole.length);
			assert_memory_equal(written.text, whole.text, whole.length);
		}
		free(written.text);
	}
	assert_in_range(failed, 2, ALLOCATIONS_MAX - 1);
	free(whole.text);
}

static void a_heap_is_written_whole_or_not(void **state)
{
	(void)state;
	for (size_t i = 0; i < heap_format_count; i++)
		write_short_of_memory(&heap_formats[i], false);
}

static void a_comparison_is_written_whole_or_not(void **state)
{
	(void)state;
	for (size_t i = 0; i < heap_format_count; i++)
		if (heap_formats[i].compare)
			write_short_of_memory(&heap_formats[i], true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_heap_is_written_whole_or_not),
		cmocka_unit_test(a_comparison_is_written_whole_or_not),
	};

	return cmocka_run_group_tests(tests, make_subjects, clear_subjects);
}

/* SPDX-License-Identifier: MIT */
/* How much a listing holds, and what it counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/instead_of.h"
#include "unwind/listing/listing.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
INSTEAD_OF(reallocarray);

#define FAILING_REALLOCARRAY
#include "tests/unit/failing_allocation.h"

static struct listing listing;

static int end(void **state)
{
	(void)state;
	listing_clear(&listing);
	return 0;
}

static char *text_of(size_t length)
{
	char *text = malloc(length + 1);

	assert_non_null(text);
	memset(text, 'x', length);
	text[length] = '\0';
	return text;
}

static void a_line_has_its_kind_and_text(void **state)
{
	const struct listing_line *line = listing_add(&listing, LISTING_IR, text_of(3));

	(void)state;
	assert_non_null(line);
	assert_int_equal(line->kind, LISTING_IR);
	assert_string_equal(line->text, "xxx");
	assert_string_equal(line->place, "");
	assert_int_equal(line->address + line->ref + line->samples + line->cpu_ns, 0);
	line = listing_add_format(&listing, LISTING_HEAD, "%d %s", 7, "seven");
	assert_non_null(line);
	assert_ptr_equal(line, &listing.lines[1]);
	assert_int_equal(line->kind, LISTING_HEAD);
	assert_string_equal(line->text, "7 seven");
	assert_int_equal(listing.count, 2);
	assert_int_equal(listing.bytes, 3 + 7);
	assert_false(listing.cut || listing.failed);
	listing_clear(&listing);
	assert_null(listing.lines);
	assert_int_equal(listing.count + listing.bytes, 0);
}

static void a_listing_has_so_many_lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < LISTING_LINES_MAX; i++)
		assert_non_null(listing_add(&listing, LISTING_CODE, text_of(0)));
	assert_false(listing.cut);
	assert_null(listing_add(&listing, LISTING_CODE, text_of(0)));
	assert_true(listing.cut);
	assert_int_equal(listing.count, LISTING_LINES_MAX);
	assert_false(listing.failed);
}

static void a_listing_has_so_many_bytes_of_text(void **state)
{
	(void)state;
	assert_non_null(listing_add(&listing, LISTING_CODE, text_of(LISTING_BYTES_MAX - 2)));
	assert_null(listing_add(&listing, LISTING_CODE, text_of(3)));
	assert_true(listing.cut);
	/* A shorter one still fits. */
	assert_non_null(listing_add(&listing, LISTING_CODE, text_of(2)));
	assert_int_equal(listing.bytes, LISTING_BYTES_MAX);
	assert_non_null(listing_add(&listing, LISTING_CODE, text_of(0)));
	assert_null(listing_add(&listing, LISTING_CODE, text_of(1)));
	assert_int_equal(listing.count, 3);
}

static void a_line_that_memory_is_short_for_is_told(void **state)
{
	char *text = text_of(1);

	(void)state;
	assert_null(listing_add(&listing, LISTING_IR, NULL));
	assert_true(listing.failed);
	listing_clear(&listing);
	assert_false(listing.failed);
	allocation_fails_after(0);
	assert_null(listing_add(&listing, LISTING_IR, text));
	assert_true(allocation_failed());
	assert_true(listing.failed);
	assert_false(listing.cut);
	assert_int_equal(listing.count, 0);
}

/* A sample at each byte of the first sixteen, of three nanoseconds. */
static void of_bytes(void *context, uint64_t begin, uint64_t end_of, uint64_t *ret_samples,
		     uint64_t *ret_cpu_ns)
{
	assert_ptr_equal(context, &listing);
	assert_in_range(end_of, begin, 16);
	*ret_samples = end_of - begin;
	*ret_cpu_ns = 3 * *ret_samples;
}

static void samples_of_more_code_are_added(void **state)
{
	const struct listing_samples samples = { of_bytes, &listing };
	struct listing_line line = { .samples = 1, .cpu_ns = 2 };

	(void)state;
	listing_count(&line, NULL, 0, 16);
	assert_int_equal(line.samples, 1);
	assert_int_equal(line.cpu_ns, 2);
	listing_count(&line, &samples, 4, 8);
	listing_count(&line, &samples, 8, 10);
	assert_int_equal(line.samples, 1 + 4 + 2);
	assert_int_equal(line.cpu_ns, 2 + 3 * 6);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, end)
	const struct CMUnitTest tests[] = {
		TEST(a_line_has_its_kind_and_text),        TEST(a_listing_has_so_many_lines),
		TEST(a_listing_has_so_many_bytes_of_text), TEST(a_line_that_memory_is_short_for_is_told),
		TEST(samples_of_more_code_are_added),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

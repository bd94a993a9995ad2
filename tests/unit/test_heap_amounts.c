/* SPDX-License-Identifier: MIT */
/* Changes, shares and names in the tables of reports on heaps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "output/heap/heap_account.h"
#include "output/heap_reports/heap_amounts.h"

static void a_change_has_a_sign_unless_there_is_none(void **state)
{
	static const struct {
		int64_t bytes;
		const char *text;
	} known[] = {
		{ 0, "0 B" },        { 1, "+1 B" },        { -1, "-1 B" },
		{ 1200, "+1.2 kB" }, { -1200, "-1.2 kB" }, { INT64_MIN, "-9.2 EB" },
	};
	char text[AMOUNT_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		assert_string_equal(heap_amount_change(known[i].bytes, text), known[i].text);
}

static void objects_are_counted(void **state)
{
	char text[AMOUNT_SIZE];

	(void)state;
	assert_string_equal(heap_amount_objects(0, text), "0 objects");
	assert_string_equal(heap_amount_objects(1, text), "1 object");
	assert_string_equal(heap_amount_objects(12345, text), "12,345 objects");
	assert_string_equal(heap_amount_objects(UINT64_MAX, text), "18,446,744,073,709,551,615 objects");
}

static void of_nothing_there_is_no_share(void **state)
{
	(void)state;
	assert_true(heap_percent(1, 4) == 25);
	assert_true(heap_percent(4, 4) == 100);
	assert_true(heap_percent(1, 0) == 0);
}

static void assert_name(const char *name, size_t columns, const char *wanted)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	heap_name_write(out, name, columns);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text, wanted);
	free(text);
}

/* A third of what stays is from its beginning. */
static void of_a_long_name_the_middle_is_left_out(void **state)
{
	(void)state;
	assert_name("0123456789abcdefghij", 20, "0123456789abcdefghij");
	assert_name("0123456789abcdefghijk", 20, "012345\u202689abcdefghijk");
	assert_name("0123456789abcdefghijklmnopqrstuvwxyz", 12, "0123\u2026tuvwxyz");
	assert_name("a\nb", 4, "a\\nb");
	assert_name("a\nb", 3, "a\u2026b");
}

/* Each of these is two or three bytes. */
static void a_name_is_as_long_as_its_characters(void **state)
{
	(void)state;
	assert_name("äöüÄÖÜß", 7, "äöüÄÖÜß");
	assert_name("äöüÄÖÜß", 6, "äö\u2026ÖÜß");
	assert_name("€€€€€", 4, "€\u2026€€");
	assert_name("a€€€€€", 5, "a\u2026€€€");
}

static void assert_place(const struct heap_account *account, const char *wanted)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	heap_place_write(out, account);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text, wanted);
	free(text);
}

static void a_vm_is_told_by_what_is_known_of_its_place(void **state)
{
	char process[] = "ng\ninx", module[] = "/lib/libluajit.so";

	(void)state;
	assert_place(&(struct heap_account){ .vm = 2 }, "process, VM 2");
	assert_place(&(struct heap_account){ .vm = 2, .pid = 1 }, "process (pid 1), VM 2");
	assert_place(&(struct heap_account){ .vm = 1, .pid = 4242, .process = process, .module = module },
		     "ng\\ninx (pid 4242), VM 1 of /lib/libluajit.so");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_change_has_a_sign_unless_there_is_none),
		cmocka_unit_test(objects_are_counted),
		cmocka_unit_test(of_nothing_there_is_no_share),
		cmocka_unit_test(of_a_long_name_the_middle_is_left_out),
		cmocka_unit_test(a_name_is_as_long_as_its_characters),
		cmocka_unit_test(a_vm_is_told_by_what_is_known_of_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

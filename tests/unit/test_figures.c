/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/sample/figures.h"

static struct figures example(void)
{
	struct figures figures = {
		.samples = 3000,
		.missed_ticks = 4,
		.undisturbed = 6,
		.duration_ns = 30000000000,
		.self_cpu_ns = 310000000,
		.target_cpu_ns = 29800000000,
		.alloc_estimated = 1300000,
		.alloc_least = 20000,
		.rate_asked_hz = 100,
		.rate_reached_hz = 99.5,
		.frames = { [CERTAINTY_EXACT] = 900, [CERTAINTY_NEAREST] = 90, [CERTAINTY_FUNCTION] = 10 },
	};

	figures.lost[LOST_BROKEN_CHAIN] = 9;
	figures.lost[LOST_TOO_DEEP] = 3;
	for (int i = 0; i < 100; i++)
		histogram_add(&figures.pause_ns, 8000);
	histogram_add(&figures.pause_ns, 140000);
	return figures;
}

static double number(const json_t *object, const char *outer, const char *inner)
{
	const json_t *value = json_object_get(object, outer);

	if (inner)
		value = json_object_get(value, inner);
	assert_true(json_is_number(value));
	return json_number_value(value);
}

static void the_json_has_units_in_its_names(void **state)
{
	struct figures figures = example();
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	json_t *object;

	(void)state;
	assert_non_null(out);
	assert_int_equal(figures_write_json(out, &figures, NULL), 0);
	fclose(out);
	object = json_loads(text, 0, NULL);
	assert_non_null(object);
	assert_true(number(object, "samples", NULL) == 3000);
	assert_true(number(object, "missed_ticks", NULL) == 4);
	assert_true(number(object, "undisturbed", NULL) == 6);
	assert_true(number(object, "lost", "frame chain broken") == 9);
	assert_true(number(object, "lost", "target ended") == 0);
	assert_int_equal(json_object_size(json_object_get(object, "lost")), LOST_COUNT);
	assert_true(number(object, "pause_us", "p50") > 7.7 && number(object, "pause_us", "p50") < 8.3);
	assert_true(number(object, "pause_us", "p90") < 8.3);
	assert_true(number(object, "pause_us", "p99") < 8.3);
	assert_true(number(object, "pause_us", "max") == 140);
	assert_true(number(object, "duration_ms", NULL) == 30000);
	assert_true(number(object, "self_cpu_ms", NULL) == 310);
	assert_true(number(object, "target_cpu_ms", NULL) == 29800);
	assert_true(number(object, "alloc_bytes", "estimated") == 1300000);
	assert_true(number(object, "alloc_bytes", "least") == 20000);
	assert_true(number(object, "rate_hz", "asked") == 100);
	assert_true(number(object, "rate_hz", "reached") == 99.5);
	assert_true(number(object, "frames", "exact") == 900);
	assert_true(number(object, "frames", "nearest") == 90);
	assert_true(number(object, "frames", "function") == 10);
	json_decref(object);
	free(text);
}

static char *printed(const struct figures *figures)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	figures_print(out, figures);
	fclose(out);
	return text;
}

static void people_read_a_few_lines(void **state)
{
	struct figures figures = example();
	char *text = printed(&figures);

	(void)state;
	assert_non_null(
		strstr(text, "samples  3000 in 30.0 s, 99.5 Hz reached of 100 asked, 4 ticks missed\n"));
	assert_non_null(strstr(text, "lost     12 (0.40 %): frame chain broken 9, stack too deep 3\n"));
	assert_non_null(strstr(text, "max 140.0 us\n"));
	assert_non_null(strstr(text, "lines    90.0 % exact, 9.0 % nearest known, 1.0 % function only\n"));
	assert_non_null(strstr(text, "cpu      ljspy 310 ms, target 29800 ms (1.04 %)\n"));
	free(text);
}

static void figures_of_nothing_are_zeros(void **state)
{
	struct figures figures = { 0 };
	char *text = printed(&figures);

	(void)state;
	assert_non_null(strstr(text, "samples  0 in 0.0 s"));
	assert_non_null(strstr(text, "lost     0 (0.00 %)\n"));
	assert_null(strstr(text, "pause"));
	assert_null(strstr(text, "nan"));
	free(text);
}

static void every_reason_has_its_own_text(void **state)
{
	(void)state;
	for (int i = 0; i < LOST_COUNT; i++) {
		assert_non_null(lost_reason_text((enum lost_reason)i));
		for (int j = 0; j < i; j++)
			assert_string_not_equal(lost_reason_text((enum lost_reason)i),
						lost_reason_text((enum lost_reason)j));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_json_has_units_in_its_names),
		cmocka_unit_test(people_read_a_few_lines),
		cmocka_unit_test(figures_of_nothing_are_zeros),
		cmocka_unit_test(every_reason_has_its_own_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

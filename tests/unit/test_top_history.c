/* SPDX-License-Identifier: MIT */
/* What the live view keeps of the last minutes, and the lines that it makes of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/top/charts.h"

static const uint64_t second = 1000000000;

enum { BEGIN = 1000 }; /* in seconds; half of it is over when the history begins */

static void add(struct history *history, uint64_t time_ns, enum vm_state state, uint64_t cpu_ns,
		uint64_t heap_bytes)
{
	const struct sample sample = {
		.time_ns = time_ns,
		.vm_state = state,
		.cpu_ns = cpu_ns,
		.gc = { .heap_bytes = heap_bytes },
	};

	history_add(history, &sample);
}

static struct history *new_history(void)
{
	struct history *history = malloc(sizeof(*history));

	assert_non_null(history);
	history_begin(history, BEGIN * second + second / 2);
	return history;
}

static void only_whole_seconds_count(void **state)
{
	struct history *history = new_history();
	struct history_cell cells[4];
	unsigned int seconds;

	(void)state;
	assert_int_equal(history_read(history, (BEGIN + 1) * second, 4, cells, &seconds), 0);
	add(history, BEGIN * second, VM_STATE_C, 9, 9); /* before the beginning */
	add(history, BEGIN * second + second / 2, VM_STATE_C, 9, 9);
	add(history, (BEGIN + 1) * second, VM_STATE_C, 1, 5);
	add(history, (BEGIN + 2) * second - 1, VM_STATE_GC, 2, 3);
	add(history, (BEGIN + 2) * second, VM_STATE_C, 9, 9);
	assert_int_equal(history_read(history, (BEGIN + 2) * second + 1, 4, cells, &seconds), 1);
	assert_int_equal(seconds, 1);
	assert_int_equal(cells[0].cpu_ns[VM_STATE_C], 1);
	assert_int_equal(cells[0].cpu_ns[VM_STATE_GC], 2);
	assert_int_equal(cells[0].heap_bytes, 5);
	free(history);
}

/* What is missing is not shown as if nothing had run. */
static void what_is_missing_is_left_out(void **state)
{
	struct history *history = new_history();
	struct history_cell cells[8];
	unsigned int seconds;

	(void)state;
	add(history, (BEGIN + 1) * second, VM_STATE_C, 1, 5);
	add(history, (BEGIN + 5) * second, VM_STATE_C, 2, 5);
	history_forget(history, 0);
	assert_int_equal(history_read(history, (BEGIN + 6) * second, 8, cells, &seconds), 5);
	history_forget(history, (BEGIN + 4) * second + second / 2);
	assert_int_equal(history_read(history, (BEGIN + 6) * second, 8, cells, &seconds), 1);
	assert_int_equal(cells[0].cpu_ns[VM_STATE_C], 2);
	free(history);
}

static void cells_grow_with_time_and_end_now(void **state)
{
	struct history *history = new_history();
	struct history_cell cells[4];
	unsigned int seconds;

	(void)state;
	for (uint64_t i = 1; i <= 9; i++)
		add(history, (BEGIN + i) * second, VM_STATE_C, i, 0);
	assert_int_equal(history_read(history, (BEGIN + 10) * second, 4, cells, &seconds), 3);
	assert_int_equal(seconds, 3);
	assert_int_equal(cells[0].cpu_ns[VM_STATE_C], 1 + 2 + 3);
	assert_int_equal(cells[2].cpu_ns[VM_STATE_C], 7 + 8 + 9);
	/* A second without a sample is empty, and is no older one. */
	assert_int_equal(history_read(history, (BEGIN + 9 + HISTORY_SECONDS) * second, 4, cells, &seconds),
			 3);
	assert_int_equal(seconds, (HISTORY_SECONDS - 1 + 3) / 4);
	assert_int_equal(cells[0].cpu_ns[VM_STATE_C], 0);
	assert_int_equal(cells[2].cpu_ns[VM_STATE_C], 0);
	free(history);
}

static void charts_have_cpu_first_and_the_heap_last(void **state)
{
	struct history *history = new_history();
	struct chart charts[CHARTS_MAX];
	unsigned int seconds;

	(void)state;
	assert_int_equal(charts_make(history, (BEGIN + 1) * second, 4, 40, true, charts, &seconds), 0);
	for (uint64_t i = 1; i <= 4; i++) {
		add(history, (BEGIN + i) * second, VM_STATE_COMPILED, i * second / 8, i * 1000000);
		add(history, (BEGIN + i) * second, VM_STATE_GC, second / 1000, 0);
		add(history, (BEGIN + i) * second, VM_STATE_INTERPRETED, second / 4, 0);
	}
	assert_int_equal(charts_make(history, (BEGIN + 5) * second, 4, 40, true, charts, &seconds), 4);
	assert_int_equal(seconds, 4);
	assert_string_equal(charts[0].text, "CPU           75.1% \u2583\u2584\u2585\u2586");
	/* The collector has a line however little it took. */
	assert_string_equal(charts[1].text, "compiled      50.0% \u2581\u2582\u2583\u2584");
	assert_int_equal(charts[1].state, VM_STATE_COMPILED);
	assert_string_equal(charts[2].text, "gc             0.1% \u2581\u2581\u2581\u2581");
	assert_string_equal(charts[3].text, "heap         4.0 MB \u2582\u2584\u2586\u2588");
	assert_true(charts[0].state < 0 && charts[3].state < 0);
	assert_int_equal(charts_make(history, (BEGIN + 5) * second, 1, 40, false, charts, &seconds), 1);
	assert_string_equal(charts[0].text, "CPU           75.1% -=+*");
	assert_int_equal(charts_make(history, (BEGIN + 5) * second, 9, 40, false, charts, &seconds), 5);
	/* Two columns for the line: two seconds each. */
	assert_int_equal(charts_make(history, (BEGIN + 5) * second, 1, 22, false, charts, &seconds), 1);
	assert_string_equal(charts[0].text, "CPU           68.8% =*");
	assert_int_equal(
		charts_make(history, (BEGIN + 5) * second, 4, CHART_HEAD_COLUMNS, true, charts, &seconds), 0);
	free(history);
}

static void what_is_allocated_has_a_line_before_the_heap(void **state)
{
	struct history *history = new_history();
	struct chart charts[CHARTS_MAX];
	struct sample sample = { .vm_state = VM_STATE_C,
				 .cpu_ns = 1,
				 .gc = { .heap_bytes = 1, .allocated_bytes = 3000000, .used_ns = 1 } };
	unsigned int seconds;

	(void)state;
	for (uint64_t i = 1; i <= 8; i++) {
		sample.time_ns = (BEGIN + 1) * second + (i - 1) * second / 4;
		sample.gc.has_marked = i == 8;
		history_add(history, &sample);
	}
	assert_int_equal(charts_make(history, (BEGIN + 3) * second, 4, 40, false, charts, &seconds), 4);
	assert_string_equal(charts[2].text, "alloc/s       12 MB ##");
	/* Half of the second's samples have a marking before them. */
	sample.time_ns = (BEGIN + 3) * second - 1;
	for (int i = 0; i < 2; i++)
		history_add(history, &sample);
	assert_int_equal(charts_make(history, (BEGIN + 3) * second, 4, 40, false, charts, &seconds), 4);
	assert_string_equal(charts[2].text, "alloc/s      >18 MB +#");
	free(history);
}

static void several_cpus_fill_a_cell(void **state)
{
	struct history *history = new_history();
	struct chart charts[CHARTS_MAX];
	unsigned int seconds;

	(void)state;
	add(history, (BEGIN + 1) * second, VM_STATE_C, 4 * second, 0);
	add(history, (BEGIN + 2) * second, VM_STATE_C, 2 * second, 0);
	assert_int_equal(charts_make(history, (BEGIN + 3) * second, 2, 40, true, charts, &seconds), 2);
	assert_string_equal(charts[0].text, "CPU          200.0% \u2588\u2584");
	assert_string_equal(charts[1].text, "c            200.0% \u2588\u2584");
	free(history);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_whole_seconds_count),
		cmocka_unit_test(what_is_missing_is_left_out),
		cmocka_unit_test(cells_grow_with_time_and_end_now),
		cmocka_unit_test(charts_have_cpu_first_and_the_heap_last),
		cmocka_unit_test(what_is_allocated_has_a_line_before_the_heap),
		cmocka_unit_test(several_cpus_fill_a_cell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

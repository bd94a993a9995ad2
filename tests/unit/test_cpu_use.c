/* SPDX-License-Identifier: MIT */
/* CPU use over time, from samples. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/over_time/cpu_picture.h"
#include "output/over_time/cpu_use.h"
#include "output/views/color.h"
#include "tests/unit/kept_text.h"

static const uint64_t start_ns = 7000000000, ms_ns = 1000000;
static const struct time_span whole = { 0 };

static void add(struct cpu_use *use, pid_t pid, uint64_t at_ms, uint64_t cpu_ms, enum vm_state state)
{
	const struct sample sample = {
		.time_ns = start_ns + at_ms * ms_ns,
		.cpu_ns = cpu_ms * ms_ns,
		.pid = pid,
		.tid = pid,
		.process_name = "a&b",
		.vm_state = state,
	};

	assert_int_equal(cpu_use_add(use, &sample), 0);
}

static bool is_about(double value, double wanted)
{
	return fabs(value - wanted) < 1e-6;
}

static double length_ms(const struct cpu_use *use, size_t step)
{
	return (double)(cpu_use_step_begin_ns(use, step + 1) - cpu_use_step_begin_ns(use, step)) /
	       (double)ms_ns;
}

/* CPU time of all processes in all steps, in ms. */
static double sum_ms(const struct cpu_use *use)
{
	double sum = 0;

	for (size_t process = 0; process < cpu_use_processes(use); process++)
		for (int state = 0; state < VM_STATE_COUNT; state++)
			for (size_t step = 0; step < cpu_use_steps(use); step++)
				sum += cpu_use_of(use, process, (enum vm_state)state, step) *
				       length_ms(use, step);
	return sum;
}

static char *written(const struct cpu_use *use)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	cpu_use_write(out, use);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void a_sample_stands_for_the_time_before_it(void **state)
{
	struct cpu_use *use = cpu_use_new(start_ns, whole, 100);
	char *text;

	(void)state;
	assert_non_null(use);
	add(use, 1, 100, 100, VM_STATE_GC);       /* the first: what it used before */
	add(use, 1, 600, 100, VM_STATE_COMPILED); /* a fifth of a core since */
	assert_int_equal(cpu_use_step_begin_ns(use, 1), 200 * ms_ns);
	assert_int_equal(cpu_use_steps(use), 3);
	assert_true(is_about(cpu_use_of(use, 0, VM_STATE_GC, 0), 0.5));
	assert_true(is_about(cpu_use_of(use, 0, VM_STATE_COMPILED, 0), 0.1));
	assert_true(is_about(cpu_use_of(use, 0, VM_STATE_COMPILED, 1), 0.2));
	assert_true(is_about(cpu_use_of(use, 0, VM_STATE_COMPILED, 2), 0.2));
	/* Two samples of 10 ms each have been taken of 200 ms. */
	assert_true(is_about(cpu_use_sampled(use), 0.1));
	text = written(use);
	assert_string_equal(
		text,
		"<metadata id=\"cpu\">200000 3 100 0 600000\n1 a&amp;b\nj 100 200 200\ng 500\n</metadata>\n");
	free(text);
	cpu_use_free(use);
}

static void steps_double_and_nothing_is_lost(void **state)
{
	struct cpu_use *use = cpu_use_new(start_ns, whole, 0);
	double all_ms = 0;

	(void)state;
	for (uint64_t at_ms = 400; at_ms < 4000 * 1000; at_ms += 370) {
		add(use, 1, at_ms, 7 + at_ms % 11, (enum vm_state)(at_ms % VM_STATE_COUNT));
		all_ms += (double)(7 + at_ms % 11);
	}
	assert_int_equal(cpu_use_step_begin_ns(use, 1), 25600 * ms_ns);
	assert_in_range(cpu_use_steps(use), 4000000 / 25600, CPU_USE_STEPS_MAX);
	assert_true(fabs(sum_ms(use) - all_ms) < 0.01);
	assert_true(is_about(cpu_use_sampled(use), 1));
	cpu_use_free(use);
}

static void each_thread_has_a_last_sample_of_its_own(void **state)
{
	static const struct {
		pid_t pid, tid;
		uint64_t at_ms, cpu_ms;
	} known[] = { { 1, 1, 100, 10 }, { 1, 2, 200, 10 }, { 2, 2, 300, 10 }, { 1, 1, 500, 100 } };
	struct cpu_use *use = cpu_use_new(start_ns, whole, 0);

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const struct sample sample = {
			.time_ns = start_ns + known[i].at_ms * ms_ns,
			.cpu_ns = known[i].cpu_ms * ms_ns,
			.pid = known[i].pid,
			.tid = known[i].tid,
			.vm_state = VM_STATE_C,
		};

		assert_int_equal(cpu_use_add(use, &sample), 0);
	}
	/*
	 * A quarter of a core since the first thread's first sample; 10 ms each before that and by the
	 * second. The last step is half as long.
	 */
	assert_int_equal(cpu_use_processes(use), 2);
	assert_true(is_about(cpu_use_of(use, 0, VM_STATE_C, 0), 0.225));
	assert_true(is_about(cpu_use_of(use, 0, VM_STATE_C, 1), 0.25));
	assert_true(is_about(cpu_use_of(use, 0, VM_STATE_C, 2), 0.25));
	assert_true(is_about(cpu_use_of(use, 1, VM_STATE_C, 1), 0.05));
	cpu_use_free(use);
}

/* Of a part of a recording: what was left out before it and after it is no time without CPU use. */
static void steps_are_of_the_chosen_time_only(void **state)
{
	const struct time_span part = { .since_ns = 2500 * ms_ns, .until_ns = 3000 * ms_ns };
	struct cpu_use *use = cpu_use_new(start_ns, part, 0);
	char *text = NULL;
	size_t size;
	FILE *out;

	(void)state;
	for (uint64_t at_ms = 2520; at_ms <= 2960; at_ms += 40) /* three quarters of a core */
		add(use, 1, at_ms, 30, VM_STATE_C);
	assert_int_equal(cpu_use_steps(use), 3);
	assert_int_equal(cpu_use_step_begin_ns(use, 1), 200 * ms_ns);
	assert_int_equal(cpu_use_step_begin_ns(use, 3), 500 * ms_ns);
	assert_true(is_about(cpu_use_of(use, 0, VM_STATE_C, 1), 0.75));
	/* The last 40 ms of 100 have none. */
	assert_true(is_about(cpu_use_of(use, 0, VM_STATE_C, 2), 0.45));
	text = written(use);
	assert_non_null(strstr(text, "<metadata id=\"cpu\">200000 3 1000 2500000 3000000\n"));
	free(text);
	out = open_memstream(&text, &size);
	cpu_picture_write(out, use, 0, 0, 100);
	assert_int_equal(fclose(out), 0);
	/* Of the first sample's 30 ms, 20 are of that time: 350 ms in all. */
	assert_non_null(strstr(text, "CPU use over 0.5 s, up to 100 % of a core: 70 % on average"));
	/* Two steps of 200 ms and one of 100 share the width. */
	assert_non_null(strstr(text, "L80.0,"));
	assert_non_null(strstr(text, "L100.0,"));
	free(text);
	cpu_use_free(use);
}

static void steps_go_on_to_the_end_and_to_the_last_sample(void **state)
{
	static const struct {
		uint64_t until_ms;
		size_t steps;
		double first_cores;
	} known[] = { { 0, 2, 1 },
		      { 399, 2, 1 },
		      { 1000, 5, 1 },
		      { 80000, 200, 0.5 },
		      { UINT64_MAX / 1000000, 2, 1 } };

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct cpu_use *use = cpu_use_new(start_ns,
						  (struct time_span){ 0, known[i].until_ms * ms_ns }, 0);

		add(use, 1, 200, 200, VM_STATE_C);
		add(use, 1, 400, 0, VM_STATE_C);
		assert_int_equal(cpu_use_steps(use), known[i].steps);
		assert_true(is_about(cpu_use_of(use, 0, VM_STATE_C, 0), known[i].first_cores));
		assert_true(is_about(sum_ms(use), 200));
		cpu_use_free(use);
	}
}

static void without_samples_nothing_is_left_out(void **state)
{
	struct cpu_use *use = cpu_use_new(start_ns, whole, 100);

	(void)state;
	assert_true(is_about(cpu_use_sampled(use), 1));
	assert_int_equal(cpu_use_steps(use), 0);
	cpu_use_free(use);
}

static void what_was_used_before_the_session_does_not_count(void **state)
{
	struct cpu_use *use = cpu_use_new(start_ns, whole, 100);

	(void)state;
	add(use, 1, 0, 100, VM_STATE_C);
	assert_int_equal(cpu_use_steps(use), 0);
	assert_true(is_about(cpu_use_sampled(use), 1));
	add(use, 2, 10, 100, VM_STATE_C);
	assert_true(is_about(sum_ms(use), 10));
	assert_true(is_about(cpu_use_sampled(use), 1));
	cpu_use_free(use);
}

/* Of a recording by a later version, or a damaged one. */
static void a_state_that_is_none_has_no_part(void **state)
{
	struct cpu_use *use = cpu_use_new(start_ns, whole, 100);

	(void)state;
	add(use, 1, 100, 50, VM_STATE_COUNT);
	assert_int_equal(cpu_use_steps(use), 0);
	assert_true(is_about(sum_ms(use), 0));
	cpu_use_free(use);
}

static void a_rate_may_be_less_than_one_sample_a_second(void **state)
{
	static const double rates_hz[] = { 1, 0.5 };

	(void)state;
	for (size_t i = 0; i < sizeof(rates_hz) / sizeof(rates_hz[0]); i++) {
		struct cpu_use *use = cpu_use_new(start_ns, whole, rates_hz[i]);

		add(use, 1, 10000, 4000, VM_STATE_C);
		assert_true(is_about(cpu_use_sampled(use), 1 / rates_hz[i] / 4));
		cpu_use_free(use);
	}
}

static void each_state_is_written(void **state)
{
	struct cpu_use *use = cpu_use_new(start_ns, whole, 0);
	char line[16], *text;

	(void)state;
	for (int i = 0; i < VM_STATE_COUNT; i++)
		add(use, i + 1, 400, 100, (enum vm_state)i);
	text = written(use);
	for (int i = 0; i < VM_STATE_COUNT; i++) {
		snprintf(line, sizeof(line), "\n%c 0 500\n", color_state_letter((enum vm_state)i));
		assert_non_null(strstr(text, line));
	}
	free(text);
	cpu_use_free(use);
}

static void later_processes_count_as_one(void **state)
{
	struct cpu_use *use = cpu_use_new(start_ns, whole, 0);
	char *text;

	(void)state;
	for (pid_t pid = 1; pid <= 100; pid++)
		add(use, pid, 1000, 10, VM_STATE_C);
	assert_int_equal(cpu_use_processes(use), CPU_USE_PROCESSES_MAX);
	assert_true(fabs(sum_ms(use) - 1000) < 0.01);
	text = written(use);
	assert_non_null(strstr(text, "\n63 a&amp;b\n"));
	assert_null(strstr(text, "\n64 a&amp;b\n"));
	assert_non_null(strstr(text, "\n0 others\n"));
	free(text);
	cpu_use_free(use);
}

static void add_of_thread(struct cpu_use *use, pid_t tid, uint64_t at_ms)
{
	const struct sample sample = { .time_ns = start_ns + at_ms * ms_ns,
				       .cpu_ns = 10 * ms_ns,
				       .pid = 1,
				       .tid = tid,
				       .vm_state = VM_STATE_C };

	assert_int_equal(cpu_use_add(use, &sample), 0);
}

/* What a thread that is forgotten uses counts right before its sample, as if that were its first one. */
static void of_too_many_threads_the_oldest_is_forgotten(void **state)
{
	(void)state;
	for (pid_t more = 0; more < 2; more++) {
		struct cpu_use *use = cpu_use_new(start_ns, (struct time_span){ 0, 400 * ms_ns }, 0);
		double before;

		for (pid_t tid = 1; tid <= CPU_USE_THREADS_MAX + more; tid++)
			add_of_thread(use, tid, 190);
		/* The second one is known in any case. */
		before = cpu_use_of(use, 0, VM_STATE_C, 0);
		add_of_thread(use, 2, 390);
		assert_true(is_about(cpu_use_of(use, 0, VM_STATE_C, 0) - before, 0.5 / 200));
		before = cpu_use_of(use, 0, VM_STATE_C, 0);
		add_of_thread(use, 1, 390);
		assert_true(is_about(cpu_use_of(use, 0, VM_STATE_C, 0) - before, more ? 0 : 0.5 / 200));
		cpu_use_free(use);
	}
}

/* Whatever a damaged recording says. */
static void strange_samples_do_no_harm(void **state)
{
	static const uint64_t times[] = {
		0, 1, UINT64_MAX, UINT64_C(1) << 63, UINT64_C(1) << 55, 5, UINT64_C(1) << 57
	};
	struct cpu_use *use = cpu_use_new(3, whole, 19);
	char *text;

	(void)state;
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		for (size_t j = 0; j < sizeof(times) / sizeof(times[0]); j++) {
			const struct sample sample = {
				.time_ns = times[i],
				.cpu_ns = times[j],
				.tid = (pid_t)j,
				.vm_state = VM_STATE_INTERPRETED,
			};

			assert_int_equal(cpu_use_add(use, &sample), 0);
		}
	assert_in_range(cpu_use_steps(use), 2, CPU_USE_STEPS_MAX);
	text = written(use);
	assert_non_null(strstr(text, "<metadata id=\"cpu\">"));
	free(text);
	cpu_use_free(use);
}

static void too_little_is_not_shown(void **state)
{
	struct cpu_use *use = cpu_use_new(start_ns, whole, 0);
	char *text;

	(void)state;
	add(use, 1, 100, 50, VM_STATE_C);
	add(use, 1, 150, 0, VM_STATE_C);
	text = written(use);
	assert_string_equal(text, "");
	assert_false(cpu_picture_has(use));
	assert_false(cpu_picture_has(NULL));
	free(text);
	/* Two steps are enough. */
	add(use, 1, 250, 50, VM_STATE_C);
	assert_int_equal(cpu_use_steps(use), 2);
	assert_true(cpu_picture_has(use));
	cpu_use_free(use);
}

/* One process is areas by its states; several are lines. */
static void pictures_are_as_kept(void **state)
{
	static const enum vm_state states[] = { VM_STATE_COMPILED, VM_STATE_GC, VM_STATE_NONE,
						VM_STATE_INTERPRETED };

	(void)state;
	for (pid_t processes = 1; processes <= 2; processes++) {
		struct cpu_use *use = cpu_use_new(start_ns, whole, 10);
		struct kept_text kept;

		assert_non_null(use);
		for (uint64_t i = 0; i < 12; i++)
			for (pid_t pid = 1; pid <= processes; pid++)
				add(use, pid, 100 * (i + 1), i % 4 * 20 * (uint64_t)pid, states[i % 4]);
		assert_true(cpu_picture_has(use));
		kept_text_begin(&kept);
		cpu_picture_write(kept.out, use, 10, 20, 300);
		kept_text_check(&kept, processes == 1 ? "cpu-areas.txt" : "cpu-lines.txt");
		cpu_use_free(use);
	}
}

/* The highest point of all lines, from the top of the picture. */
static double highest_of(const char *picture)
{
	double highest = HUGE_VAL, x, y;

	for (const char *at = picture; *at; at++)
		if ((*at == 'M' || *at == 'L') && sscanf(at + 1, "%lf,%lf", &x, &y) == 2)
			highest = fmin(highest, y);
	return highest;
}

/* The upper edge is a round number, not less than what is used by more than 2 %. */
static void pictures_reach_up_to_a_round_number(void **state)
{
	static const struct {
		uint64_t percent;
		const char *text;
	} known[] = {
		{ 0, "up to 100 % of a core" },   { 100, "up to 100 % of a core" },
		{ 102, "up to 100 % of a core" }, { 103, "up to 150 % of a core" },
		{ 300, "up to 300 % of a core" }, { 510, "up to 500 % of a core" },
		{ 520, "up to 750 % of a core" }, { 800, "up to 1000 % of a core" },
		{ 30, "up to 30 % of a core" },   { 32, "up to 50 % of a core" },
		{ 200, "up to 200 % of a core" }, { 750, "up to 750 % of a core" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct cpu_use *use = cpu_use_new(start_ns, whole, 0);
		char *text = NULL;
		size_t size;
		FILE *out = open_memstream(&text, &size);

		/* Ten threads share it. */
		for (uint64_t at_ms = 100; at_ms <= 2000; at_ms += 100)
			for (pid_t tid = 1; tid <= 10; tid++) {
				const struct sample sample = { .time_ns = start_ns + at_ms * ms_ns,
							       .cpu_ns = known[i].percent * ms_ns / 10,
							       .pid = 1,
							       .tid = tid };

				assert_int_equal(cpu_use_add(use, &sample), 0);
			}
		cpu_picture_write(out, use, 0, 0, 100);
		assert_int_equal(fclose(out), 0);
		assert_non_null(strstr(text, known[i].text));
		/* Within the field, and at its upper edge if all of it is used. */
		assert_non_null(strstr(text, "<rect class=\"field\" x=\"0\" y=\"18\""));
		assert_true(known[i].percent == 0 || highest_of(text) >= 18);
		assert_true(known[i].percent != 102 || is_about(highest_of(text), 18));
		free(text);
		cpu_use_free(use);
	}
	assert_false(cpu_picture_has(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sample_stands_for_the_time_before_it),
		cmocka_unit_test(steps_double_and_nothing_is_lost),
		cmocka_unit_test(each_thread_has_a_last_sample_of_its_own),
		cmocka_unit_test(steps_are_of_the_chosen_time_only),
		cmocka_unit_test(steps_go_on_to_the_end_and_to_the_last_sample),
		cmocka_unit_test(without_samples_nothing_is_left_out),
		cmocka_unit_test(what_was_used_before_the_session_does_not_count),
		cmocka_unit_test(a_state_that_is_none_has_no_part),
		cmocka_unit_test(a_rate_may_be_less_than_one_sample_a_second),
		cmocka_unit_test(each_state_is_written),
		cmocka_unit_test(later_processes_count_as_one),
		cmocka_unit_test(of_too_many_threads_the_oldest_is_forgotten),
		cmocka_unit_test(strange_samples_do_no_harm),
		cmocka_unit_test(too_little_is_not_shown),
		cmocka_unit_test(pictures_are_as_kept),
		cmocka_unit_test(pictures_reach_up_to_a_round_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

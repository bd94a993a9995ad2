/* SPDX-License-Identifier: MIT */
/* What `record --when` waits for, and what it keeps of the time before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/options/condition.h"
#include "src/watch/gauge.h"
#include "src/watch/quota.h"
#include "src/watch/ring.h"

static const uint64_t second_ns = 1000000000u;
static const uint64_t hour_ns = UINT64_C(3600) * 1000000000u;

static struct condition read_good(const char *text)
{
	struct condition condition = { 0 };

	if (!condition_read(text, &condition))
		fail_msg("\"%s\" was refused", text);
	return condition;
}

static void conditions_are_read(void **state)
{
	static const char *const wrong[] = {
		"",
		"cpu",
		"cpu>",
		"cpu>90",
		"cpu>0%",
		"cpu>90% or 10s",
		"cpu<90%",
		"cpu>90%for",
		"rss>1X",
		"rss>",
		"heap+20%",
		"heap+20%/",
		"heap+20%/10ms",
		"heap>1G",
		"blocked>",
		"latency>0s",
		"cpu>200000%",
		"rss>1G x",
		"cpu>9% for 2h",
		"latency>-1s",
		"blocked>0.5ms",
		"heap+1%/2d",
		"memory>1G",
		"cpu>1% for 0s",
	};
	struct condition condition = read_good("cpu>90% for 10s");

	(void)state;
	assert_int_equal(condition.kind, CONDITION_CPU);
	assert_int_equal(condition.limit, 90);
	assert_int_equal(condition.span_ns, 10 * second_ns);
	assert_int_equal(read_good(" cpu > 250 % for 1m ").limit, 250);
	assert_int_equal(read_good("cpu>90%").span_ns, 10 * second_ns);
	condition = read_good("rss>3G");
	assert_int_equal(condition.kind, CONDITION_RSS);
	assert_int_equal(condition.limit, UINT64_C(3) << 30);
	condition = read_good("heap+20%/10m");
	assert_int_equal(condition.kind, CONDITION_HEAP);
	assert_int_equal(condition.limit, 20);
	assert_int_equal(condition.span_ns, 600 * second_ns);
	condition = read_good("blocked>200ms");
	assert_int_equal(condition.kind, CONDITION_BLOCKED);
	assert_int_equal(condition.limit, second_ns / 5);
	condition = read_good("latency>1s");
	assert_int_equal(condition.kind, CONDITION_LATENCY);
	assert_int_equal(condition.limit, second_ns);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (condition_read(wrong[i], &condition))
			fail_msg("\"%s\" was taken", wrong[i]);
}

static void the_shortest_turn_counts(void **state)
{
	struct condition conditions[] = { read_good("blocked>200ms"), read_good("cpu>1%"),
					  read_good("blocked>30ms") };

	(void)state;
	assert_int_equal(conditions_blocked_ns(conditions, 3), 30 * second_ns / 1000);
	assert_int_equal(conditions_blocked_ns(conditions + 1, 1), 0);
}

/* Feed a gauge once a second with a share of a core; how often did the condition begin to hold? */
static unsigned int run_at(struct gauge *gauge, uint64_t *now_s, uint64_t *cpu_ns, unsigned int seconds,
			   unsigned int percent)
{
	unsigned int begins = 0;

	for (unsigned int i = 0; i < seconds; i++) {
		*cpu_ns += percent * second_ns / 100;
		begins += gauge_cpu(gauge, ++*now_s * second_ns, *cpu_ns);
	}
	return begins;
}

static void cpu_time_counts_over_its_span(void **state)
{
	const struct condition condition = read_good("cpu>90% for 10s");
	uint64_t now_s = 1000, cpu_ns = 77 * second_ns;
	struct gauge gauge;

	(void)state;
	gauge_begin(&gauge, &condition, 0);
	assert_int_equal(run_at(&gauge, &now_s, &cpu_ns, 100, 40), 0);
	/* Short peaks are none. */
	assert_int_equal(run_at(&gauge, &now_s, &cpu_ns, 8, 100), 0);
	assert_int_equal(run_at(&gauge, &now_s, &cpu_ns, 20, 10), 0);
	/* Once, for as long as it holds. */
	assert_int_equal(run_at(&gauge, &now_s, &cpu_ns, 100, 97), 1);
	assert_int_equal(gauge.value, 97);
	assert_int_equal(run_at(&gauge, &now_s, &cpu_ns, 20, 10), 0);
	assert_int_equal(run_at(&gauge, &now_s, &cpu_ns, 20, 99), 1);
}

static void a_long_span_needs_no_more_room(void **state)
{
	const struct condition condition = read_good("cpu>50% for 1h");
	uint64_t now_s = 1, cpu_ns = 0;
	struct gauge gauge;

	(void)state;
	gauge_begin(&gauge, &condition, 0);
	assert_int_equal(run_at(&gauge, &now_s, &cpu_ns, 3 * 3600, 49), 0);
	assert_int_equal(run_at(&gauge, &now_s, &cpu_ns, 2 * 3600, 60), 1);
	assert_in_range(gauge.value, 59, 60);
}

/* Cycles of a collector: the heap falls to live bytes, and grows to twice as much. */
static unsigned int collect(struct gauge *gauge, uint64_t *now_ms, unsigned int cycles, double *live,
			    double growth)
{
	unsigned int begins = 0;

	for (unsigned int i = 0; i < cycles; i++) {
		for (unsigned int j = 0; j < 10; j++, *now_ms += 50)
			begins += gauge_heap(gauge, *now_ms * 1000000, (uint64_t)(*live * (1 + j / 10.0)),
					     j == 0);
		*live *= 1 + growth;
	}
	return begins;
}

static void a_heap_counts_as_collections_leave_it(void **state)
{
	const struct condition condition = read_good("heap+20%/1m");
	uint64_t now_ms = 100 * 1000;
	double live = 1 << 20;
	struct gauge gauge;

	(void)state;
	gauge_begin(&gauge, &condition, 160 * second_ns);
	/* What a process builds up at its beginning does not count, nor does the saw of the collector. */
	assert_int_equal(collect(&gauge, &now_ms, 118, &live, 0.01), 0);
	assert_int_equal(collect(&gauge, &now_ms, 1000, &live, 0), 0);
	assert_int_equal(collect(&gauge, &now_ms, 1000, &live, 0.0005), 0);
	assert_int_equal(collect(&gauge, &now_ms, 240, &live, 0.003), 1);
	assert_true(gauge.value > 20);
	assert_int_equal(collect(&gauge, &now_ms, 400, &live, -0.001), 0);
	assert_int_equal(collect(&gauge, &now_ms, 240, &live, 0.003), 1);
}

/* A cycle of a heap: what its marking ends with, and what its sweep leaves. */
static bool sweep(struct gauge *gauge, uint64_t *now_ns, uint64_t length_ns, uint64_t marked, uint64_t left)
{
	bool begins;

	*now_ns += length_ns;
	begins = gauge_heap(gauge, *now_ns, marked, true);
	begins |= gauge_heap(gauge, *now_ns, left, false);
	begins |= gauge_heap(gauge, *now_ns, marked, false);
	return begins;
}

static void a_heap_is_what_its_sweeps_leave(void **state)
{
	const struct condition condition = read_good("heap+50%/10s");
	uint64_t now_ns = 100 * second_ns;
	struct gauge gauge;

	(void)state;
	gauge_begin(&gauge, &condition, 0);
	for (unsigned int i = 0; i < 30; i++)
		assert_false(sweep(&gauge, &now_ns, second_ns, 100 + 100 * i, 100));
	/* Of each tenth of the span, the least counts. */
	for (unsigned int i = 0; i < 60; i++)
		assert_false(sweep(&gauge, &now_ns, second_ns / 2, 1000, i % 2 ? 100 : 900));
	for (unsigned int i = 0; i < 5; i++)
		if (sweep(&gauge, &now_ns, second_ns, 4000, 151))
			return;
	fail();
}

static void the_least_of_a_whole_span_counts(void **state)
{
	const struct condition condition = read_good("heap+50%/10s");
	uint64_t now_ns = 100 * second_ns;
	struct gauge gauge;
	bool begins = false;

	(void)state;
	gauge_begin(&gauge, &condition, 0);
	for (unsigned int i = 0; i < 3; i++)
		assert_false(sweep(&gauge, &now_ns, second_ns, 4000, 300));
	for (unsigned int i = 0; i < 3; i++)
		assert_false(sweep(&gauge, &now_ns, second_ns, 4000, 100));
	for (unsigned int i = 0; i < 3; i++)
		begins |= sweep(&gauge, &now_ns, second_ns, 4000, 200);
	assert_true(begins);
	assert_int_equal(gauge.value, 100);
	/* A span later it is forgotten. */
	for (unsigned int i = 0; i < 20; i++)
		assert_false(sweep(&gauge, &now_ns, second_ns, 4000, 200));
	assert_false(gauge.holds);
}

static void other_values_are_compared(void **state)
{
	const struct condition condition = read_good("rss>1G");
	struct gauge gauge;

	(void)state;
	gauge_begin(&gauge, &condition, 0);
	assert_false(gauge_value(&gauge, 1 << 30));
	assert_true(gauge_value(&gauge, (1 << 30) + 1));
	assert_false(gauge_value(&gauge, UINT64_C(2) << 30));
	assert_false(gauge_value(&gauge, 1 << 29));
	assert_true(gauge_value(&gauge, UINT64_C(2) << 30));
}

static void an_hour_has_so_many(void **state)
{
	struct quota quota = { .most = 2 };

	(void)state;
	assert_true(quota_take(&quota, hour_ns));
	assert_true(quota_take(&quota, hour_ns + 5));
	assert_false(quota_take(&quota, 2 * hour_ns - 1));
	assert_int_equal(quota_next_ns(&quota), 2 * hour_ns);
	assert_true(quota_take(&quota, 2 * hour_ns));
	assert_false(quota_take(&quota, 2 * hour_ns + 4));
	assert_true(quota_take(&quota, 9 * hour_ns));
	assert_true(quota_take(&quota, 9 * hour_ns));
	assert_false(quota_take(&quota, 9 * hour_ns));
}

/*---- The ring ----*/

struct poured {
	uint64_t count, first_ns, last_ns;
	bool is_in_order;
	char function[16], route[16];
};

static int pour(void *context, const struct sample *sample)
{
	struct poured *poured = context;

	if (poured->count++ == 0)
		poured->first_ns = sample->time_ns;
	poured->is_in_order &= sample->time_ns >= poured->last_ns;
	poured->last_ns = sample->time_ns;
	snprintf(poured->function, sizeof(poured->function), "%s", sample->frames[0].function->name);
	snprintf(poured->route, sizeof(poured->route), "%s", sample->request.route);
	return 0;
}

/* Samples of some threads, a hundred a second, with another leaf for each of lines. */
static void fill(struct ring *ring, uint64_t from_s, uint64_t to_s, uint32_t lines)
{
	char name[] = "heavy", route[] = "/a";
	struct function function = { .kind = FRAME_LUA, .name = name };

	for (uint64_t at = from_s * 100; at < to_s * 100; at++) {
		struct frame frame = { .function = &function, .line = 1 + (uint32_t)(at * 7919 % lines) };
		const struct sample sample = {
			.time_ns = at * second_ns / 100,
			.pid = 1,
			.tid = 1 + (pid_t)(at % 3),
			.cpu_ns = second_ns / 100 + at * 7919 % 1000000,
			.request.route = route,
			.frames = &frame,
			.frame_count = 1,
		};

		if (at % 100 == 0) {
			struct figures figures = { .samples = at };

			assert_int_equal(ring_advance(ring, sample.time_ns, &figures), 0);
		}
		assert_int_equal(ring_add(ring, &sample), 0);
	}
	ring_forget_functions(ring);
}

static void a_ring_keeps_its_span(void **state)
{
	const struct ring_options options = { .span_ns = 60 * second_ns,
					      .bytes = 32 << 20,
					      .clock = WEIGHT_CPU_TIME };
	struct ring *ring = ring_new(&options);

	(void)state;
	assert_non_null(ring);
	for (unsigned int round = 1; round < 4; round++) {
		struct poured poured = { .is_in_order = true };

		fill(ring, round * 1000, round * 1000 + 600, 10);
		assert_in_range(ring_begin_ns(ring), (round * 1000 + 530) * second_ns,
				(round * 1000 + 540) * second_ns);
		assert_int_equal(ring_before(ring)->samples * second_ns, ring_begin_ns(ring) * 100);
		assert_int_equal(ring_pour(ring, pour, &poured), 0);
		assert_in_range(poured.count, 6000, 7000);
		assert_true(poured.is_in_order);
		assert_in_range(poured.first_ns, (round * 1000 + 530) * second_ns,
				(round * 1000 + 540) * second_ns);
		assert_int_equal(poured.last_ns, (round * 1000 + 600) * second_ns - second_ns / 100);
		assert_string_equal(poured.function, "heavy");
		assert_string_equal(poured.route, "/a");
		/* It is empty now. */
		poured = (struct poured){ 0 };
		assert_int_equal(ring_pour(ring, pour, &poured), 0);
		assert_int_equal(poured.count, 0);
	}
	ring_free(ring);
}

static void a_ring_keeps_its_bytes(void **state)
{
	const struct ring_options options = { .span_ns = 600 * second_ns,
					      .bytes = 64 << 10,
					      .clock = WEIGHT_CPU_TIME };
	struct ring *ring = ring_new(&options);
	struct poured poured = { .is_in_order = true };

	(void)state;
	assert_non_null(ring);
	fill(ring, 1000, 1600, 1000000);
	assert_int_equal(ring_pour(ring, pour, &poured), 0);
	/* A sample takes some 7 to 14 bytes. */
	assert_in_range(poured.count, (64 << 10) / 20, (64 << 10) / 5);
	assert_true(poured.is_in_order);
	assert_int_equal(poured.last_ns, 1600 * second_ns - second_ns / 100);
	ring_free(ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conditions_are_read),
		cmocka_unit_test(the_shortest_turn_counts),
		cmocka_unit_test(cpu_time_counts_over_its_span),
		cmocka_unit_test(a_long_span_needs_no_more_room),
		cmocka_unit_test(a_heap_counts_as_collections_leave_it),
		cmocka_unit_test(a_heap_is_what_its_sweeps_leave),
		cmocka_unit_test(the_least_of_a_whole_span_counts),
		cmocka_unit_test(other_values_are_compared),
		cmocka_unit_test(an_hour_has_so_many),
		cmocka_unit_test(a_ring_keeps_its_span),
		cmocka_unit_test(a_ring_keeps_its_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

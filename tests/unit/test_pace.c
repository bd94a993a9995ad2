/* SPDX-License-Identifier: MIT */
/* How many looks find a target running, and where in its bursts of work. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "src/linux/clocks/clock.h"
#include "src/sampler/pace.h"

enum {
	PARTS = 4, /* of a burst */
	MS = 1000 * 1000,
};

static const uint64_t period_ns = NS_PER_SECOND / 199;

/* A target that runs for burst_ns of every cycle_ns, and looks at it that find nothing out at times. */
struct target {
	uint64_t burst_ns, cycle_ns;
	double late; /* so many of them */
};

struct seen {
	uint64_t samples, missed, parts[PARTS];
	double periods; /* of CPU time */
};

static uint64_t next_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state >> 16;
}

static struct seen look_at(const struct target *target, uint64_t duration_ns, uint64_t seed)
{
	const uint64_t begin_cpu_ns = 77 * MS;
	struct seen seen = { 0 };
	uint64_t state = seed, cpu_ns = 0;
	struct pace pace;

	pace_begin(&pace, period_ns, begin_cpu_ns);
	for (uint64_t now = next_random(&state) % target->cycle_ns; now < duration_ns;
	     now += pace_gap(&pace, next_random(&state))) {
		uint64_t at = now % target->cycle_ns;
		bool is_late = (double)(next_random(&state) % 1000) < 1000 * target->late;

		cpu_ns = now / target->cycle_ns * target->burst_ns +
			 (at < target->burst_ns ? at : target->burst_ns);
		if (at < target->burst_ns && !is_late) {
			seen.parts[at * PARTS / target->burst_ns]++;
			seen.samples++;
			pace_note_sample(&pace);
		}
		seen.missed += pace_compare(&pace, begin_cpu_ns + cpu_ns);
	}
	seen.missed += pace_conclude(&pace, begin_cpu_ns + cpu_ns);
	seen.periods = (double)cpu_ns / (double)period_ns;
	return seen;
}

static const struct target targets[] = {
	{ 3 * MS, 12 * MS, 0 },
	{ 20 * MS, 100 * MS, 0 },
	{ MS / 2, 2 * MS, 0 },
	{ MS, 50 * MS, 0 },
	{ 1, 1, 0 },
};

enum { TARGETS = sizeof(targets) / sizeof(targets[0]) };

/* Three seconds in which a quarter of the time is a CPU's: chance alone makes for 5 %. */
static void there_is_a_sample_for_each_period(void **state)
{
	(void)state;
	for (size_t i = 0; i < TARGETS; i++) {
		for (uint64_t seed = 1; seed <= 50; seed++) {
			struct seen seen = look_at(&targets[i], UINT64_C(3) * NS_PER_SECOND, seed);

			/* What was compared last is at most some comparisons old. */
			assert_true(fabs((double)seen.samples - seen.periods) < 20);
			assert_true((double)(seen.samples + seen.missed) > seen.periods - 1.5);
		}
	}
}

/* Chance alone makes for 3 at the end of a run, and for 0.2 in the mean of all. */
static void looks_that_keep_coming_too_late_leave_no_samples_missing(void **state)
{
	enum { RUNS = 200 };
	const struct target late[] = { { 3 * MS, 5 * MS, 0.1 },
				       { 3 * MS, 5 * MS, 0.2 },
				       { 3 * MS, 5 * MS, 0.3 } };

	(void)state;
	for (size_t i = 0; i < sizeof(late) / sizeof(late[0]); i++) {
		double missing = 0;

		for (uint64_t seed = 1; seed <= RUNS; seed++) {
			struct seen seen = look_at(&late[i], UINT64_C(6) * NS_PER_SECOND, seed);

			missing += (seen.periods - (double)seen.samples) / RUNS;
		}
		assert_true(fabs(missing) < 1);
	}
}

static void each_part_of_a_burst_is_seen_alike(void **state)
{
	(void)state;
	for (size_t i = 0; i < TARGETS - 1; i++) {
		struct seen seen = look_at(&targets[i], UINT64_C(2000) * NS_PER_SECOND, 7);
		double expected = (double)seen.samples / PARTS;

		for (int part = 0; part < PARTS; part++)
			assert_true(fabs((double)seen.parts[part] - expected) <
				    0.03 * expected + 4 * sqrt(expected));
	}
}

static void what_cannot_be_made_up_for_is_missed(void **state)
{
	const struct target few = { 3 * MS, 12 * MS, 0.2 }, many = { 3 * MS, 12 * MS, 0.7 };
	struct seen seen;

	(void)state;
	seen = look_at(&few, UINT64_C(60) * NS_PER_SECOND, 3);
	assert_true(fabs((double)seen.samples - seen.periods) < 20);
	seen = look_at(&many, UINT64_C(60) * NS_PER_SECOND, 3);
	assert_true((double)seen.samples < 0.6 * seen.periods);
	assert_true(fabs((double)(seen.samples + seen.missed) - seen.periods) < 1.5);
}

/*
 * After a long time without looks, a few periods' worth of denser ones; the rest is said to be missing at
 * once.
 */
static void much_that_is_missing_is_not_made_up_for(void **state)
{
	const uint64_t away = 1000, made_up_max = 40;
	uint64_t cpu_ns = away * period_ns, random = 5, samples = 0;
	struct pace pace;

	(void)state;
	pace_begin(&pace, period_ns, 0);
	assert_in_range(pace_compare(&pace, cpu_ns), away - made_up_max, away - 1);
	/* From here on each look finds it running. */
	for (; cpu_ns < 2 * away * period_ns; samples++) {
		pace_note_sample(&pace);
		cpu_ns += pace_gap(&pace, next_random(&random));
		assert_int_equal(pace_compare(&pace, cpu_ns), 0);
	}
	assert_in_range(samples, away, away + made_up_max + 5);
}

static void gaps_are_as_long_as_half_a_period_at_least(void **state)
{
	const struct target never_seen = { 3 * MS, 12 * MS, 1 };
	struct pace pace;

	(void)state;
	pace_begin(&pace, period_ns, 0);
	assert_int_equal(pace_gap(&pace, 0), period_ns / 2);
	assert_in_range(pace_gap(&pace, UINT64_MAX), period_ns / 2, period_ns / 2 + period_ns);
	for (int i = 0; i < 1000; i++) /* far too many */
		pace_note_sample(&pace);
	assert_int_equal(pace_compare(&pace, UINT64_C(100) * period_ns), 0);
	assert_in_range(pace_gap(&pace, period_ns * 2), 2 * period_ns, 3 * period_ns);
	assert_int_equal(pace_conclude(&pace, UINT64_C(100) * period_ns), 0);
	assert_int_equal(look_at(&never_seen, NS_PER_SECOND, 1).samples, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_is_a_sample_for_each_period),
		cmocka_unit_test(looks_that_keep_coming_too_late_leave_no_samples_missing),
		cmocka_unit_test(each_part_of_a_burst_is_seen_alike),
		cmocka_unit_test(what_cannot_be_made_up_for_is_missed),
		cmocka_unit_test(much_that_is_missing_is_not_made_up_for),
		cmocka_unit_test(gaps_are_as_long_as_half_a_period_at_least),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* What `record --when` waits for, and what it keeps of the time before. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "output/nginx_reports/request_report.h"
#include "output/recording/recording_writer.h"
#include "src/inspect/known_files.h"
#include "src/inspect/lua_process.h"
#include "src/nginx/request_survey.h"
#include "src/options/condition.h"
#include "src/watch/gauge.h"
#include "src/watch/in_flight.h"
#include "src/watch/quota.h"
#include "src/watch/ring.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/open_files.h"

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

/* Cycles of a collector. While it sweeps, nobody knows what is live. */
static unsigned int collect(struct gauge *gauge, uint64_t *now_ms, unsigned int cycles, double *live,
			    double growth)
{
	unsigned int begins = 0;

	for (unsigned int i = 0; i < cycles; i++) {
		for (unsigned int j = 0; j < 10; j++, *now_ms += 50)
			begins += gauge_heap(gauge, *now_ms * 1000000, j ? (uint64_t)*live : 0);
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
	/* What a process builds up at its beginning does not count. */
	assert_int_equal(collect(&gauge, &now_ms, 118, &live, 0.01), 0);
	assert_int_equal(collect(&gauge, &now_ms, 1000, &live, 0), 0);
	assert_int_equal(collect(&gauge, &now_ms, 1000, &live, 0.0005), 0);
	assert_int_equal(collect(&gauge, &now_ms, 240, &live, 0.003), 1);
	assert_true(gauge.value > 20);
	assert_int_equal(collect(&gauge, &now_ms, 400, &live, -0.001), 0);
	assert_int_equal(collect(&gauge, &now_ms, 240, &live, 0.003), 1);
}

/* A cycle, and what its sweep leaves. */
static bool sweep(struct gauge *gauge, uint64_t *now_ns, uint64_t length_ns, uint64_t left)
{
	*now_ns += length_ns;
	return gauge_heap(gauge, *now_ns, left);
}

static void a_heap_is_what_its_sweeps_leave(void **state)
{
	const struct condition condition = read_good("heap+50%/10s");
	uint64_t now_ns = 100 * second_ns;
	struct gauge gauge;

	(void)state;
	gauge_begin(&gauge, &condition, 0);
	for (unsigned int i = 0; i < 30; i++)
		assert_false(sweep(&gauge, &now_ns, second_ns, 100));
	/* Of each tenth of the span, the least counts. */
	for (unsigned int i = 0; i < 60; i++)
		assert_false(sweep(&gauge, &now_ns, second_ns / 2, i % 2 ? 100 : 900));
	for (unsigned int i = 0; i < 5; i++)
		if (sweep(&gauge, &now_ns, second_ns, 151))
			return;
	fail();
}

/* The least of just a span ago counts still, and none from before. */
static void a_heap_is_compared_with_that_of_a_span_ago(void **state)
{
	const struct condition condition = read_good("heap+50%/10s");

	(void)state;
	for (unsigned int later_s = 8; later_s < 12; later_s++) {
		uint64_t now_ns = 100 * second_ns;
		struct gauge gauge;

		gauge_begin(&gauge, &condition, 0);
		assert_false(sweep(&gauge, &now_ns, second_ns, 100));
		for (unsigned int i = 1; i < later_s; i++)
			assert_false(sweep(&gauge, &now_ns, second_ns, 140));
		assert_false(sweep(&gauge, &now_ns, second_ns, 160));
		/* The second that has 160 is over. */
		assert_int_equal(sweep(&gauge, &now_ns, second_ns, 140), later_s + 1 <= 10);
	}
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
		assert_false(sweep(&gauge, &now_ns, second_ns, 300));
	for (unsigned int i = 0; i < 3; i++)
		assert_false(sweep(&gauge, &now_ns, second_ns, 100));
	for (unsigned int i = 0; i < 3; i++)
		begins |= sweep(&gauge, &now_ns, second_ns, 200);
	assert_true(begins);
	assert_int_equal(gauge.value, 100);
	/* A span later it is forgotten. */
	for (unsigned int i = 0; i < 20; i++)
		assert_false(sweep(&gauge, &now_ns, second_ns, 200));
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

static struct {
	bool without_file, without_stream, without_writer, without_room;
	int room_error; /* why there is no room */
} files_fail;

INSTEAD_OF(memfd_create);
int __wrap_memfd_create(const char *name, unsigned int flags)
{
	errno = EMFILE;
	return files_fail.without_file ? -1 : __real_memfd_create(name, flags);
}

INSTEAD_OF(fdopen);
FILE *__wrap_fdopen(int fd, const char *mode)
{
	errno = ENOMEM;
	return files_fail.without_stream ? NULL : __real_fdopen(fd, mode);
}

INSTEAD_OF(recording_writer_new);
int __wrap_recording_writer_new(FILE *out, const struct session *session,
				struct recording_writer **ret_writer)
{
	return files_fail.without_writer ? -ENOMEM : __real_recording_writer_new(out, session, ret_writer);
}

INSTEAD_OF(recording_writer_flush);
int __wrap_recording_writer_flush(struct recording_writer *writer)
{
	if (!files_fail.without_room)
		return __real_recording_writer_flush(writer);
	errno = files_fail.room_error;
	files_fail.room_error = ENOENT; /* later, errno is what something else has left there */
	return -EIO;
}

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
	static const uint64_t spans_s[] = { 600, 1000000 };

	(void)state;
	for (size_t i = 0; i < sizeof(spans_s) / sizeof(spans_s[0]); i++) {
		const struct ring_options options = { .span_ns = spans_s[i] * second_ns,
						      .bytes = 64 << 10,
						      .clock = WEIGHT_CPU_TIME };
		struct ring *ring = ring_new(&options);
		struct poured poured = { .is_in_order = true };

		assert_non_null(ring);
		fill(ring, 1000, 1600, 1000000);
		assert_int_equal(ring_pour(ring, pour, &poured), 0);
		/* A sample takes some 7 to 14 bytes. */
		assert_in_range(poured.count, (64 << 10) / 20, (64 << 10) / 5);
		assert_true(poured.is_in_order);
		assert_int_equal(poured.last_ns, 1600 * second_ns - second_ns / 100);
		ring_free(ring);
	}
}

/* It drops an eighth at a time, whenever it is asked for. */
static void a_full_ring_keeps_most_of_its_bytes(void **state)
{
	const struct ring_options options = { .span_ns = 600 * second_ns,
					      .bytes = 64 << 10,
					      .clock = WEIGHT_CPU_TIME };
	uint64_t least = UINT64_MAX, most = 0;

	(void)state;
	for (uint64_t end_s = 1120; end_s < 1140; end_s += 2) {
		struct ring *ring = ring_new(&options);
		struct poured poured = { .is_in_order = true };

		assert_non_null(ring);
		fill(ring, 1000, end_s, 1000000);
		assert_int_equal(ring_pour(ring, pour, &poured), 0);
		assert_int_equal(poured.last_ns, end_s * second_ns - second_ns / 100);
		least = poured.count < least ? poured.count : least;
		most = poured.count > most ? poured.count : most;
		ring_free(ring);
	}
	assert_true(most < UINT64_C(10000));
	assert_true(least * 10 > most * 7);
}

/* Frames of samples are gone before their recording is: another function may lie where one was. */
static void a_ring_knows_functions_by_what_they_were(void **state)
{
	const struct ring_options options = { .span_ns = 60 * second_ns,
					      .bytes = 1 << 20,
					      .clock = WEIGHT_CPU_TIME };
	char first[] = "first", second[] = "second", route[] = "/a";
	struct function function = { .kind = FRAME_LUA, .name = first };
	struct frame frame = { .function = &function, .line = 1 };
	struct sample sample = { .time_ns = second_ns,
				 .pid = 1,
				 .tid = 1,
				 .cpu_ns = 1000,
				 .request.route = route,
				 .frames = &frame,
				 .frame_count = 1 };
	struct ring *ring = ring_new(&options);
	struct poured poured = { 0 };

	(void)state;
	assert_non_null(ring);
	/* Without a recording there is nothing to add to, nor to forget. */
	assert_int_equal(ring_add(ring, &sample), 0);
	ring_forget_functions(ring);
	assert_int_equal(ring_pour(ring, pour, &poured), 0);
	assert_int_equal(poured.count, 0);

	assert_int_equal(ring_advance(ring, second_ns, &(struct figures){ 0 }), 0);
	assert_int_equal(ring_add(ring, &sample), 0);
	ring_forget_functions(ring);
	function.name = second;
	sample.time_ns++;
	assert_int_equal(ring_add(ring, &sample), 0);
	assert_int_equal(ring_pour(ring, pour, &poured), 0);
	assert_int_equal(poured.count, 2);
	assert_string_equal(poured.function, "second");
	ring_free(ring);
}

/*
 * A recording for each eighth of the span, in whole seconds; the oldest goes once the others hold the whole
 * span.
 */
static void a_ring_forgets_an_eighth_of_its_span_at_a_time(void **state)
{
	static const struct {
		uint64_t span_s, part_s;
	} spans[] = { { 80, 10 }, { 84, 11 } };

	(void)state;
	for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
		const struct ring_options options = { .span_ns = spans[i].span_s * second_ns,
						      .bytes = 32 << 20,
						      .clock = WEIGHT_CPU_TIME };
		struct ring *ring = ring_new(&options);
		struct poured poured = { .is_in_order = true };
		uint64_t begin_s = 0;

		assert_non_null(ring);
		for (uint64_t passed_s = 0; passed_s < 200; passed_s++) {
			fill(ring, 1000 + passed_s, 1000 + passed_s + 1, 10);
			if (passed_s == begin_s + spans[i].part_s + spans[i].span_s)
				begin_s += spans[i].part_s;
			assert_int_equal(ring_begin_ns(ring), (1000 + begin_s) * second_ns);
			assert_int_equal(ring_before(ring)->samples, (1000 + begin_s) * 100);
		}
		assert_true(begin_s > 100);
		assert_int_equal(ring_pour(ring, pour, &poured), 0);
		assert_int_equal(poured.first_ns, (1000 + begin_s) * second_ns);
		assert_int_equal(poured.count, (200 - begin_s) * 100);
		assert_true(poured.is_in_order);
		ring_free(ring);
	}
}

/* Its samples are missing, which is told; those of the time before and after are there. */
static void a_recording_that_could_not_be_written_is_passed_over(void **state)
{
	const struct ring_options options = { .span_ns = 80 * second_ns,
					      .bytes = 32 << 20,
					      .clock = WEIGHT_CPU_TIME };
	struct ring *ring = ring_new(&options);
	struct poured poured = { .is_in_order = true };

	(void)state;
	assert_non_null(ring);
	fill(ring, 1000, 1001, 10);
	fill(ring, 1010, 1011, 10);
	files_fail.without_room = true;
	files_fail.room_error = EFBIG;
	assert_int_equal(ring_advance(ring, 1012 * second_ns, &(struct figures){ .samples = 101200 }),
			 -EFBIG);
	/* This ends the one before. */
	assert_int_equal(ring_advance(ring, 1020 * second_ns, &(struct figures){ .samples = 102000 }),
			 -EFBIG);
	files_fail.without_room = false;
	fill(ring, 1020, 1021, 10);
	assert_int_equal(ring_pour(ring, pour, &poured), 0);
	assert_int_equal(poured.count, 200);
	assert_int_equal(poured.first_ns, 1000 * second_ns);
	assert_int_equal(poured.last_ns, 1021 * second_ns - second_ns / 100);
	/* Of the last one, who takes the samples is told. */
	fill(ring, 1030, 1031, 10);
	files_fail.without_room = true;
	files_fail.room_error = ENOSPC;
	poured = (struct poured){ .is_in_order = true };
	assert_int_equal(ring_pour(ring, pour, &poured), -ENOSPC);
	files_fail.without_room = false;
	assert_int_equal(poured.count, 0);
	ring_free(ring);
}

static void without_a_file_a_ring_goes_on_later(void **state)
{
	const struct ring_options options = { .span_ns = 80 * second_ns,
					      .bytes = 32 << 20,
					      .clock = WEIGHT_CPU_TIME };
	const unsigned int files = open_files_count();
	struct ring *ring = ring_new(&options);
	struct poured poured = { .is_in_order = true };
	struct figures figures = { 0 };

	(void)state;
	assert_non_null(ring);
	files_fail.without_file = true;
	assert_int_equal(ring_advance(ring, 1000 * second_ns, &figures), -EMFILE);
	files_fail.without_file = false;
	files_fail.without_stream = true;
	assert_int_equal(ring_advance(ring, 1000 * second_ns, &figures), -ENOMEM);
	files_fail.without_stream = false;
	files_fail.without_writer = true;
	assert_int_equal(ring_advance(ring, 1000 * second_ns, &figures), -ENOMEM);
	files_fail.without_writer = false;
	assert_int_equal(open_files_count(), files);
	fill(ring, 1001, 1003, 10);
	assert_int_equal(ring_begin_ns(ring), 1001 * second_ns);
	assert_int_equal(ring_pour(ring, pour, &poured), 0);
	assert_int_equal(poured.count, 200);
	ring_free(ring);
}

static int refuse(void *context, const struct sample *sample)
{
	(void)sample;
	++*(unsigned int *)context;
	return -ENOSPC;
}

/* Nothing is kept of what could not be taken, nor any file. */
static void a_ring_that_nobody_takes_is_empty_afterwards(void **state)
{
	const struct ring_options options = { .span_ns = 60 * second_ns,
					      .bytes = 32 << 20,
					      .clock = WEIGHT_CPU_TIME };
	const unsigned int files = open_files_count();
	struct ring *ring = ring_new(&options);
	struct poured poured = { 0 };
	unsigned int refused = 0;

	(void)state;
	assert_non_null(ring);
	fill(ring, 1000, 1060, 10);
	assert_int_equal(ring_pour(ring, refuse, &refused), -ENOSPC);
	/* Each of its recordings was offered. */
	assert_in_range(refused, RING_PARTS, RING_PARTS + 1);
	assert_int_equal(ring_pour(ring, pour, &poured), 0);
	assert_int_equal(poured.count, 0);
	assert_int_equal(open_files_count(), files);
	fill(ring, 2000, 2060, 10);
	assert_true(open_files_count() > files);
	ring_clear(ring);
	assert_int_equal(open_files_count(), files);
	fill(ring, 3000, 3060, 10);
	ring_free(ring);
	assert_int_equal(open_files_count(), files);
}

/*---- Requests in flight ----*/

/* What ljspy finds in a worker of nginx, and what it has open. */
static struct {
	int open_error, refresh_error, survey_error;
	uint64_t ages_ms[3];
	size_t count;
	const struct given_layout *layout;
	unsigned int processes, refreshes, reports;
} worker;
static const pid_t worker_pid = 77;

INSTEAD_OF(lua_process_open);
int __wrap_lua_process_open(pid_t pid, struct functions *functions, struct known_files *files,
			    const struct namer_options *namer, struct lua_process **ret_process)
{
	assert_int_equal(pid, worker_pid);
	assert_non_null(functions);
	assert_non_null(files);
	assert_non_null(namer);
	if (worker.open_error)
		return worker.open_error;
	worker.processes++;
	*ret_process = (struct lua_process *)&worker;
	return 0;
}

INSTEAD_OF(lua_process_close);
void __wrap_lua_process_close(struct lua_process *process)
{
	assert_ptr_equal(process, &worker);
	worker.processes--;
}

INSTEAD_OF(lua_process_give_layout);
void __wrap_lua_process_give_layout(struct lua_process *process, const struct given_layout *given)
{
	assert_ptr_equal(process, &worker);
	assert_int_equal(worker.refreshes, 0);
	worker.layout = given;
}

INSTEAD_OF(lua_process_refresh);
int __wrap_lua_process_refresh(struct lua_process *process, bool thorough)
{
	assert_ptr_equal(process, &worker);
	assert_true(thorough);
	worker.refreshes++;
	return worker.refresh_error;
}

INSTEAD_OF(request_report_new);
struct request_report *__wrap_request_report_new(pid_t pid, const char *name, bool exact_paths)
{
	assert_false(exact_paths);
	worker.reports++;
	return __real_request_report_new(pid, name, exact_paths);
}

INSTEAD_OF(request_report_free);
void __wrap_request_report_free(struct request_report *report)
{
	assert_non_null(report);
	worker.reports--;
	__real_request_report_free(report);
}

INSTEAD_OF(request_survey_take);
int __wrap_request_survey_take(struct lua_process *process, struct request_report *report)
{
	assert_ptr_equal(process, &worker);
	assert_int_equal(report->pid, worker_pid);
	/* Ages need no Lua, which takes long to read. */
	assert_true(report->without_lua);
	request_report_clear_rows(report);
	for (size_t i = 0; !worker.survey_error && i < worker.count; i++)
		request_report_add(report)->age_ms = worker.ages_ms[i];
	return worker.survey_error;
}

static void the_oldest_request_of_a_worker_counts(void **state)
{
	static const struct given_layout layout;
	struct in_flight *in_flight = in_flight_new(&layout);
	struct in_flight_worker *opened = NULL;
	uint64_t age_ns = 5;

	(void)state;
	memset(&worker, 0, sizeof(worker));
	assert_non_null(in_flight);
	assert_int_equal(in_flight_open(in_flight, worker_pid, &opened), 0);
	assert_non_null(opened);
	assert_ptr_equal(worker.layout, &layout);
	assert_int_equal(in_flight_oldest(opened, &age_ns), 0);
	assert_int_equal(age_ns, 0);
	worker.count = 3;
	worker.ages_ms[0] = 2500;
	worker.ages_ms[1] = 30;
	assert_int_equal(in_flight_oldest(opened, &age_ns), 0);
	assert_int_equal(age_ns, 5 * second_ns / 2);
	worker.survey_error = -ENOTSUP;
	assert_int_equal(in_flight_oldest(opened, &age_ns), -ENOTSUP);
	assert_int_equal(age_ns, 5 * second_ns / 2);
	assert_int_equal(worker.processes, 1);
	in_flight_close(opened);
	in_flight_close(NULL);
	in_flight_free(in_flight);
	in_flight_free(NULL);
	assert_int_equal(worker.processes, 0);
	assert_int_equal(worker.reports, 0);
}

/* The master, or a worker that has not begun: nothing of it stays open. */
static void a_process_without_requests_is_not_opened(void **state)
{
	int *const errors[] = { &worker.open_error, &worker.refresh_error, &worker.survey_error };
	struct in_flight *in_flight = in_flight_new(NULL);

	(void)state;
	assert_non_null(in_flight);
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		struct in_flight_worker *opened = NULL;

		memset(&worker, 0, sizeof(worker));
		*errors[i] = -ENOTSUP;
		assert_int_equal(in_flight_open(in_flight, worker_pid, &opened), -ENOTSUP);
		assert_null(opened);
		assert_null(worker.layout);
		assert_int_equal(worker.processes, 0);
		assert_int_equal(worker.reports, 0);
	}
	in_flight_free(in_flight);
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
		cmocka_unit_test(a_heap_is_compared_with_that_of_a_span_ago),
		cmocka_unit_test(the_least_of_a_whole_span_counts),
		cmocka_unit_test(other_values_are_compared),
		cmocka_unit_test(an_hour_has_so_many),
		cmocka_unit_test(a_ring_keeps_its_span),
		cmocka_unit_test(a_ring_keeps_its_bytes),
		cmocka_unit_test(a_full_ring_keeps_most_of_its_bytes),
		cmocka_unit_test(a_ring_knows_functions_by_what_they_were),
		cmocka_unit_test(a_ring_forgets_an_eighth_of_its_span_at_a_time),
		cmocka_unit_test(a_recording_that_could_not_be_written_is_passed_over),
		cmocka_unit_test(without_a_file_a_ring_goes_on_later),
		cmocka_unit_test(a_ring_that_nobody_takes_is_empty_afterwards),
		cmocka_unit_test(the_oldest_request_of_a_worker_counts),
		cmocka_unit_test(a_process_without_requests_is_not_opened),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

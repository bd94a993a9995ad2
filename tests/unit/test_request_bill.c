/* SPDX-License-Identifier: MIT */
/* What requests waited for, and how long they took, from made-up samples. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/bills/request_bill.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
#include "tests/unit/failing_allocation.h"

enum { NS_PER_MS = 1000 * 1000, GAP_MS = 10, STANDS_FOR_MAX = 64 };

static void add(struct request_bill *bill, const char *route, const char *wait, uint64_t number,
		uint64_t age_ms)
{
	const struct function function = { .kind = FRAME_NATIVE, .name = wait, .module = "nginx" };
	const struct frame frame = { .function = &function };
	const struct sample sample = {
		.time_ns = age_ms * NS_PER_MS, /* looks at one request differ by it */
		.pid = 1,
		.request = { .route = route,
			     .connection = 7,
			     .number = number,
			     .age_ns = age_ms * NS_PER_MS },
		.thread_state = wait ? THREAD_PARKED : THREAD_RUNNING,
		.wall_ns = GAP_MS * NS_PER_MS,
		.frames = &frame,
		.frame_count = 1,
	};

	assert_int_equal(request_bill_add(bill, &sample), 0);
}

static void waits_add_up_by_route_and_kind(void **state)
{
	static const char route[] = "/b", same[] = "/b";
	struct request_bill bill = { 0 };

	(void)state;
	add(&bill, "/a", "sleep", 1, 5);
	add(&bill, route, "upstream first byte: 127.0.0.1:80", 2, 5);
	add(&bill, route, "upstream first byte: 127.0.0.1:81", 2, 15);
	add(&bill, same, NULL, 2, 25);
	assert_int_equal(request_bill_close(&bill), 0);
	assert_true(bill.has_waiting);
	assert_int_equal(bill.row_count, 3);
	assert_string_equal(bill.rows[0].route, "/b");
	assert_string_equal(bill.rows[0].kind, "upstream first byte");
	assert_int_equal(bill.rows[0].ns, 20 * NS_PER_MS);
	assert_int_equal(bill.rows[0].route_ns, 30 * NS_PER_MS);
	/* A route has the samples of all its kinds. */
	assert_true(bill.rows[0].route_squares == bill.rows[0].squares + bill.rows[1].squares);
	assert_true(bill.rows[1].squares > 0);
	assert_string_equal(bill.rows[1].kind, "CPU");
	assert_string_equal(bill.rows[2].route, "/a");
	request_bill_clear(&bill);
}

/* Light threads share the time of a look. */
static void several_samples_of_a_moment_are_one_look(void **state)
{
	struct request_bill bill = { 0 };
	double latency_ns;

	(void)state;
	for (uint64_t age_ms = 5; age_ms < 100; age_ms += GAP_MS)
		add(&bill, "/one", "sleep", 1, age_ms);
	assert_int_equal(request_bill_close(&bill), 0);
	latency_ns = bill.p999_ns;
	request_bill_clear(&bill);
	for (uint64_t age_ms = 5; age_ms < 100; age_ms += GAP_MS)
		for (unsigned int i = 0; i < 3; i++)
			add(&bill, "/several", i ? "sleep" : "socket receive", 1, age_ms);
	assert_int_equal(request_bill_close(&bill), 0);
	assert_true(bill.p999_ns == latency_ns);
	request_bill_clear(&bill);
}

static void a_short_request_stands_for_those_that_were_not_seen(void **state)
{
	struct request_bill bill = { 0 };

	(void)state;
	/* Of requests of 6 ms, looks 10 ms apart find six in ten: in the middle, on average. */
	for (uint64_t i = 1; i <= 60; i++)
		add(&bill, "/short", "client", i, 3);
	for (uint64_t age_ms = 5; age_ms < 1000; age_ms += GAP_MS)
		add(&bill, "/long", "client", 100, age_ms);
	assert_int_equal(request_bill_close(&bill), 0);
	assert_int_equal(bill.seen, 61);
	assert_true(bill.requests > 100.9 && bill.requests < 101.1);
	assert_true(bill.p50_ns > 5.9 * NS_PER_MS && bill.p50_ns < 6.1 * NS_PER_MS);
	assert_true(bill.p99_ns == bill.p50_ns);
	assert_true(bill.p999_ns > 1000.0 * NS_PER_MS && bill.p999_ns < 1010.0 * NS_PER_MS);
	assert_int_equal(bill.slowest[0].age_ns, 995 * NS_PER_MS);
	request_bill_clear(&bill);
}

static void the_slowest_are_listed_with_their_numbers(void **state)
{
	struct request_bill bill = { 0 };

	(void)state;
	for (uint64_t i = 1; i <= 12; i++)
		add(&bill, "/any", "client", i, 100 * (i % 2 ? i : 13 - i));
	assert_int_equal(request_bill_close(&bill), 0);
	assert_int_equal(bill.slowest_count, REQUEST_BILL_SLOWEST);
	assert_int_equal(bill.slowest[0].connection, 7);
	for (size_t i = 0; i + 1 < bill.slowest_count; i++)
		assert_true(bill.slowest[i].age_ns >= bill.slowest[i + 1].age_ns);
	assert_true(bill.slowest[0].number == 11 || bill.slowest[0].number == 2);
	assert_int_equal(bill.slowest[9].age_ns, 300 * (uint64_t)NS_PER_MS);
	request_bill_clear(&bill);
}

/*
 * It cannot be known how long a request went on after its last look. Of those with one look, the latency is
 * twice the age on average; many have a smaller one, and they must not be told to be the slowest.
 */
static void the_slowest_are_told_by_the_age_that_was_seen(void **state)
{
	struct request_bill bill = { 0 };

	(void)state;
	add(&bill, "/looked at once", "client", 1, GAP_MS);
	add(&bill, "/looked at twice", "client", 2, 6);
	add(&bill, "/looked at twice", "client", 2, 6 + GAP_MS);
	add(&bill, "/began this moment", "client", 3, 0);
	assert_int_equal(request_bill_close(&bill), 0);
	assert_int_equal(bill.slowest_count, 3);
	assert_string_equal(bill.slowest[0].route, "/looked at twice");
	/* The estimate for the one that was looked at once is the highest: the list does not claim it. */
	assert_true(bill.buckets[14] > 0 && (UINT64_C(1) << 14) * 1000 > bill.slowest[0].age_ns);
	assert_int_equal(bill.slowest[0].age_ns, (6 + GAP_MS) * NS_PER_MS);
	assert_int_equal(bill.slowest[1].age_ns, GAP_MS * NS_PER_MS);
	assert_int_equal(bill.slowest[2].age_ns, 0);
	request_bill_clear(&bill);
}

static void other_samples_are_left_out(void **state)
{
	struct request_bill bill = { 0 };

	(void)state;
	add(&bill, NULL, "sleep", 1, 5);
	add(&bill, "/cpu", NULL, 1, 5);
	assert_int_equal(request_bill_close(&bill), 0);
	assert_false(bill.has_waiting);
	assert_int_equal(bill.seen, 1);
	request_bill_clear(&bill);
	assert_int_equal(request_bill_close(&bill), 0);
}

/*
 * A request that waits, as the sampler of requests tells it: the rest of the tests each change what they are
 * about.
 */
static const struct function nginx_sleeps = { .kind = FRAME_NATIVE, .name = "sleep", .module = "nginx" };
static const struct frame asleep = { .function = &nginx_sleeps };
static const struct sample waiting = {
	.time_ns = 100,
	.pid = 1,
	.request = { .route = "/a", .connection = 7, .number = 1, .age_ns = 5 * NS_PER_MS },
	.thread_state = THREAD_PARKED,
	.wall_ns = GAP_MS * NS_PER_MS,
	.frames = &asleep,
	.frame_count = 1,
};

/* The bill of these samples, closed. */
static struct request_bill bill_of(const struct sample *samples, size_t count)
{
	struct request_bill bill = { 0 };

	for (size_t i = 0; i < count; i++)
		assert_int_equal(request_bill_add(&bill, &samples[i]), 0);
	assert_int_equal(request_bill_close(&bill), 0);
	return bill;
}

static bool is_about(double value, double wanted)
{
	return value > wanted - 0.01 && value < wanted + 0.01;
}

static void what_a_thread_does_for_a_request_is_not_its_wait(void **state)
{
	const struct function tops[] = {
		{ .kind = FRAME_LUA, .name = "sleep", .module = "nginx" },
		{ .kind = FRAME_NATIVE, .name = NULL, .module = "nginx" },
		{ .kind = FRAME_NATIVE, .name = "sleep", .module = NULL },
		{ .kind = FRAME_NATIVE, .name = "sleep", .module = "libc.so.6" },
	};
	struct request_bill bill;
	struct sample sample;

	(void)state;
	for (size_t i = 0; i < sizeof(tops) / sizeof(tops[0]); i++) {
		const struct frame frame = { .function = &tops[i] };

		sample = waiting;
		sample.frames = &frame;
		bill = bill_of(&sample, 1);
		assert_int_equal(bill.seen, 0);
		assert_int_equal(bill.row_count, 0);
		request_bill_clear(&bill);
	}
	for (int thread_state = 0; thread_state < THREAD_STATE_COUNT; thread_state++) {
		sample = waiting;
		sample.thread_state = (enum thread_state)thread_state;
		bill = bill_of(&sample, 1);
		assert_int_equal(bill.seen, thread_state == THREAD_PARKED || thread_state == THREAD_RUNNING);
		request_bill_clear(&bill);
	}
	sample = waiting;
	sample.frame_count = 0;
	bill = bill_of(&sample, 1);
	assert_int_equal(bill.seen, 0);
	request_bill_clear(&bill);
	sample = waiting;
	sample.request.number = 0;
	bill = bill_of(&sample, 1);
	assert_int_equal(bill.seen, 0);
	request_bill_clear(&bill);
}

static void a_request_is_known_by_its_process_and_both_numbers(void **state)
{
	struct sample samples[] = { waiting, waiting, waiting, waiting, waiting };
	struct request_bill bill;

	(void)state;
	samples[1].pid = 2;
	samples[2].request.connection = 8;
	samples[3].request.number = 2;
	samples[4].time_ns++; /* a second look at the first one */
	bill = bill_of(samples, 5);
	assert_int_equal(bill.seen, 4);
	assert_int_equal(bill.all_ns, 5 * GAP_MS * NS_PER_MS);
	assert_int_equal(bill.row_count, 1);
	assert_int_equal(bill.rows[0].ns, bill.all_ns);
	request_bill_clear(&bill);
	assert_int_equal(bill.seen, 0);
	assert_null(bill.rows);
}

static void routes_come_by_their_time_and_kinds_by_theirs(void **state)
{
	static const struct {
		const char *route, *kind;
		uint64_t ns;
	} known[] = {
		{ "/heavy", "z", 40 }, { "/heavy", "a", 30 }, { "/heavy", "b", 30 }, { "/same", "a", 25 },
		{ "/same2", "b", 15 }, { "/same2", "a", 10 }, { "/light", "a", 20 },
	};
	enum { KNOWN = sizeof(known) / sizeof(known[0]) };
	struct request_bill bill = { 0 };

	(void)state;
	/* In no order that is near the one that they are to come out in. */
	for (size_t i = 0; i < KNOWN; i++) {
		const size_t at = 5 * i % KNOWN;
		const struct function top = { .kind = FRAME_NATIVE,
					      .name = known[at].kind,
					      .module = "nginx" };
		const struct frame frame = { .function = &top };
		struct sample sample = waiting;

		sample.request.route = known[at].route;
		sample.wall_ns = known[at].ns;
		sample.frames = &frame;
		assert_int_equal(request_bill_add(&bill, &sample), 0);
	}
	assert_int_equal(request_bill_close(&bill), 0);
	assert_int_equal(bill.row_count, KNOWN);
	for (size_t i = 0; i < KNOWN; i++) {
		assert_string_equal(bill.rows[i].route, known[i].route);
		assert_string_equal(bill.rows[i].kind, known[i].kind);
		assert_int_equal(bill.rows[i].ns, known[i].ns);
		assert_int_equal(bill.rows[i].route_ns, i < 3 ? 100 : i < 6 ? 25 : 20);
	}
	request_bill_clear(&bill);
}

/* As in a sum of recordings, each of which has strings of its own. */
static void equal_routes_are_one_wherever_their_text_is(void **state)
{
	static const char texts[][8] = { "/a", "/b", "/a", "/a", "/b" };
	struct sample samples[] = { waiting, waiting, waiting, waiting, waiting };
	struct request_bill bill;

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		samples[i].request.route = texts[i];
		samples[i].wall_ns = UINT64_C(1) << i;
	}
	bill = bill_of(samples, 5);
	assert_int_equal(bill.row_count, 2);
	assert_string_equal(bill.rows[0].route, "/b");
	assert_int_equal(bill.rows[0].ns, 2 + 16);
	assert_int_equal(bill.rows[0].route_ns, 2 + 16);
	assert_string_equal(bill.rows[1].route, "/a");
	assert_int_equal(bill.rows[1].ns, 1 + 4 + 8);
	assert_int_equal(bill.rows[1].route_ns, 1 + 4 + 8);
	assert_true(bill.rows[1].squares == 1 + 4 * 4 + 8 * 8);
	assert_true(bill.rows[1].route_squares == bill.rows[1].squares);
	request_bill_clear(&bill);
}

static void a_long_kind_is_cut(void **state)
{
	char name[2 * REQUEST_BILL_KIND_BYTES];
	const struct function top = { .kind = FRAME_NATIVE, .name = name, .module = "nginx" };
	const struct frame frame = { .function = &top };

	(void)state;
	for (size_t length = REQUEST_BILL_KIND_BYTES - 2; length < REQUEST_BILL_KIND_BYTES + 2; length++) {
		struct sample sample = waiting;
		struct request_bill bill;

		memset(name, 'k', sizeof(name));
		snprintf(name + length, sizeof(name) - length, ": of whom");
		sample.frames = &frame;
		bill = bill_of(&sample, 1);
		assert_int_equal(strlen(bill.rows[0].kind),
				 length < REQUEST_BILL_KIND_BYTES ? length : REQUEST_BILL_KIND_BYTES - 1);
		assert_int_equal(strspn(bill.rows[0].kind, "k"), strlen(bill.rows[0].kind));
		request_bill_clear(&bill);
	}
}

static void kinds_without_end_have_their_time_in_the_sum_only(void **state)
{
	struct request_bill bill = { 0 };
	char name[16];
	const struct function top = { .kind = FRAME_NATIVE, .name = name, .module = "nginx" };
	const struct frame frame = { .function = &top };
	struct sample sample = waiting;

	(void)state;
	sample.frames = &frame;
	for (unsigned int i = 0; i < REQUEST_BILL_ROWS_MAX + 1; i++) {
		snprintf(name, sizeof(name), "wait %u", i);
		assert_int_equal(request_bill_add(&bill, &sample), 0);
	}
	assert_int_equal(request_bill_close(&bill), 0);
	assert_int_equal(bill.row_count, REQUEST_BILL_ROWS_MAX);
	assert_int_equal(bill.all_ns, (uint64_t)(REQUEST_BILL_ROWS_MAX + 1) * GAP_MS * NS_PER_MS);
	assert_int_equal(bill.rows[0].route_ns, (uint64_t)REQUEST_BILL_ROWS_MAX * GAP_MS * NS_PER_MS);
	request_bill_clear(&bill);
}

static void a_request_has_the_route_of_its_client(void **state)
{
	struct sample samples[] = { waiting, waiting, waiting };
	struct request_bill bill;

	(void)state;
	samples[0].request.route = "/first of two subrequests";
	samples[0].request.is_subrequest = true;
	samples[1].request.route = "/second of two subrequests";
	samples[1].request.is_subrequest = true;
	bill = bill_of(samples, 2);
	assert_string_equal(bill.slowest[0].route, "/first of two subrequests");
	request_bill_clear(&bill);
	samples[1].request.is_subrequest = false;
	samples[1].request.route = "/of the client";
	samples[2].request.route = "/subrequest afterwards";
	samples[2].request.is_subrequest = true;
	bill = bill_of(samples, 3);
	assert_int_equal(bill.slowest_count, 1);
	assert_string_equal(bill.slowest[0].route, "/of the client");
	request_bill_clear(&bill);
}

/* Three looks, 10 ms apart, at ages of 2, 12 and 22 ms: about a third more than the highest. */
static void a_latency_is_a_part_more_than_the_highest_age(void **state)
{
	struct sample samples[] = { waiting, waiting, waiting };
	static const uint64_t ages_ms[] = { 12, 22, 2 };
	struct request_bill bill;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		samples[i].request.age_ns = ages_ms[i] * NS_PER_MS;
		samples[i].time_ns = ages_ms[i] * NS_PER_MS;
	}
	bill = bill_of(samples, 3);
	assert_int_equal(bill.seen, 1);
	assert_true(is_about(bill.requests, 1));
	assert_true(is_about(bill.p999_ns / NS_PER_MS, 22 * 4 / 3.0));
	assert_int_equal(bill.slowest[0].pid, 1);
	assert_int_equal(bill.slowest[0].connection, 7);
	assert_int_equal(bill.slowest[0].number, 1);
	request_bill_clear(&bill);
}

/* Ten hours old when the recording began: a tenth more would be an hour. */
static void of_one_that_was_there_before_little_is_left(void **state)
{
	const uint64_t age_ms = 10 * 3600 * 1000;
	struct request_bill bill = { 0 };

	(void)state;
	for (uint64_t i = 0; i < 10; i++)
		add(&bill, "/stream", "client", 1, age_ms + i * GAP_MS);
	assert_int_equal(request_bill_close(&bill), 0);
	assert_true(is_about(bill.p999_ns / NS_PER_MS, (double)(age_ms + 10 * GAP_MS)));
	assert_true(is_about(bill.requests, 1));
	request_bill_clear(&bill);
}

static void one_request_stands_for_so_many_at_most(void **state)
{
	struct sample sample = waiting;
	struct request_bill bill;

	(void)state;
	sample.request.age_ns = 1; /* looks 10 ms apart would have found one of millions of its like */
	bill = bill_of(&sample, 1);
	assert_true(is_about(bill.requests, STANDS_FOR_MAX));
	assert_true(is_about(bill.p50_ns * STANDS_FOR_MAX / NS_PER_MS, GAP_MS));
	request_bill_clear(&bill);
	/* One of 10 ms is found by one look just as a rule. */
	sample.request.age_ns = GAP_MS * NS_PER_MS / 2;
	bill = bill_of(&sample, 1);
	assert_true(is_about(bill.requests, 1));
	request_bill_clear(&bill);
}

static void a_histogram_has_each_request_where_its_latency_is(void **state)
{
	/* Twice the age is the latency of a request with one sample. */
	static const struct {
		uint64_t latency_us;
		size_t bucket;
	} known[] = {
		{ 1, 0 },
		{ 2, 1 },
		{ 3, 1 },
		{ 4, 2 },
		{ 1023, 9 },
		{ 1024, 10 },
		{ UINT64_C(1) << 38, 38 },
		{ UINT64_C(1) << 39, REQUEST_BILL_BUCKETS - 1 },
		{ UINT64_C(1) << 41, REQUEST_BILL_BUCKETS - 1 },
	};
	double sum = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct sample sample = waiting;
		struct request_bill bill;

		sample.request.age_ns = known[i].latency_us * 1000 / 2;
		sample.wall_ns = sample.request.age_ns;
		bill = bill_of(&sample, 1);
		assert_true(bill.buckets[known[i].bucket] == 1);
		sum = 0;
		for (size_t j = 0; j < REQUEST_BILL_BUCKETS; j++)
			sum += bill.buckets[j];
		assert_true(sum == bill.requests);
		request_bill_clear(&bill);
	}
}

static void percentiles_have_that_share_of_requests_at_or_below(void **state)
{
	struct request_bill bill = { 0 };

	(void)state;
	for (uint64_t i = 1; i <= 1000; i++)
		add(&bill, "/any", "client", i, 10 * (i * 7 % 1000 ? i * 7 % 1000 : 1000));
	assert_int_equal(request_bill_close(&bill), 0);
	assert_true(is_about(bill.requests, 1000));
	assert_true(is_about(bill.p50_ns / NS_PER_MS, 10 * 500 + GAP_MS));
	assert_true(is_about(bill.p99_ns / NS_PER_MS, 10 * 990 + GAP_MS));
	assert_true(is_about(bill.p999_ns / NS_PER_MS, 10 * 999 + GAP_MS));
	for (size_t i = 0; i < REQUEST_BILL_SLOWEST; i++)
		assert_int_equal(bill.slowest[i].age_ns, 10 * (1000 - i) * NS_PER_MS);
	request_bill_clear(&bill);
}

static void short_memory_is_told_and_leaves_a_bill_to_clear(void **state)
{
	struct sample other = waiting;
	size_t failures = 0;

	(void)state;
	other.request.route = "/other";
	other.request.number = 2;
	for (bool failed = true; failed; failures++) {
		struct request_bill bill = { 0 };
		int error;

		allocation_fails_after(failures);
		error = request_bill_add(&bill, &waiting);
		if (!error)
			error = request_bill_add(&bill, &other);
		if (!error)
			error = request_bill_close(&bill);
		failed = allocation_failed();
		assert_int_equal(error, failed ? -ENOMEM : 0);
		request_bill_clear(&bill);
		assert_null(bill.index);
	}
	assert_in_range(failures, 8, 100); /* the index, two rows and requests, and what is made of them */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_add_up_by_route_and_kind),
		cmocka_unit_test(several_samples_of_a_moment_are_one_look),
		cmocka_unit_test(a_short_request_stands_for_those_that_were_not_seen),
		cmocka_unit_test(the_slowest_are_listed_with_their_numbers),
		cmocka_unit_test(the_slowest_are_told_by_the_age_that_was_seen),
		cmocka_unit_test(other_samples_are_left_out),
		cmocka_unit_test(what_a_thread_does_for_a_request_is_not_its_wait),
		cmocka_unit_test(a_request_is_known_by_its_process_and_both_numbers),
		cmocka_unit_test(routes_come_by_their_time_and_kinds_by_theirs),
		cmocka_unit_test(equal_routes_are_one_wherever_their_text_is),
		cmocka_unit_test(a_long_kind_is_cut),
		cmocka_unit_test(kinds_without_end_have_their_time_in_the_sum_only),
		cmocka_unit_test(a_request_has_the_route_of_its_client),
		cmocka_unit_test(a_latency_is_a_part_more_than_the_highest_age),
		cmocka_unit_test(of_one_that_was_there_before_little_is_left),
		cmocka_unit_test(one_request_stands_for_so_many_at_most),
		cmocka_unit_test(a_histogram_has_each_request_where_its_latency_is),
		cmocka_unit_test(percentiles_have_that_share_of_requests_at_or_below),
		cmocka_unit_test(short_memory_is_told_and_leaves_a_bill_to_clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

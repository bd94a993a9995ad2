/* SPDX-License-Identifier: MIT */
/* What requests waited for, and how long they took, from made-up samples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "output/bills/request_bill.h"

enum { NS_PER_MS = 1000 * 1000, GAP_MS = 10 };

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
	assert_string_equal(bill.rows[1].kind, "CPU");
	assert_string_equal(bill.rows[2].route, "/a");
	request_bill_clear(&bill);
}

/* Light threads share the time of a look. */
static void several_samples_of_a_moment_are_one_look(void **state)
{
	struct request_bill bill = { 0 };
	double longest_ns;

	(void)state;
	for (uint64_t age_ms = 5; age_ms < 100; age_ms += GAP_MS)
		add(&bill, "/one", "sleep", 1, age_ms);
	assert_int_equal(request_bill_close(&bill), 0);
	longest_ns = bill.longest_ns;
	request_bill_clear(&bill);
	for (uint64_t age_ms = 5; age_ms < 100; age_ms += GAP_MS)
		for (unsigned int i = 0; i < 3; i++)
			add(&bill, "/several", i ? "sleep" : "socket receive", 1, age_ms);
	assert_int_equal(request_bill_close(&bill), 0);
	assert_true(bill.longest_ns == longest_ns);
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
	assert_true(bill.longest_ns == bill.p999_ns);
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
		assert_true(bill.slowest[i].ns >= bill.slowest[i + 1].ns);
	assert_true(bill.slowest[0].number == 11 || bill.slowest[0].number == 2);
	assert_true(bill.slowest[9].ns > 2 * 300.0 * NS_PER_MS - 1);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_add_up_by_route_and_kind),
		cmocka_unit_test(several_samples_of_a_moment_are_one_look),
		cmocka_unit_test(a_short_request_stands_for_those_that_were_not_seen),
		cmocka_unit_test(the_slowest_are_listed_with_their_numbers),
		cmocka_unit_test(other_samples_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

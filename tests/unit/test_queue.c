/* SPDX-License-Identifier: MIT */
/* Messages come out as they went in, however they lie in the ring; what does not fit is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/apart/queue.h"

enum { HEAD_SIZE = sizeof(uint32_t) };

struct fixture {
	struct queue queue;
	unsigned char sent[QUEUE_MESSAGE_MAX + 1], taken[QUEUE_MESSAGE_MAX];
};

static int set_up(void **state)
{
	*state = calloc(1, sizeof(struct fixture));
	return *state ? 0 : -1;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

static void fill(struct fixture *fixture, size_t size, unsigned char first)
{
	for (size_t i = 0; i < size; i++)
		fixture->sent[i] = (unsigned char)(first + i);
}

static void take_and_compare(struct fixture *fixture, size_t size, unsigned char first)
{
	fill(fixture, size, first);
	assert_int_equal(queue_take(&fixture->queue, fixture->taken), size);
	assert_memory_equal(fixture->taken, fixture->sent, size);
}

static void test_in_order(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(queue_bytes(&fixture->queue), 0);
	assert_int_equal(queue_take(&fixture->queue, fixture->taken), 0);
	for (unsigned char i = 1; i < 10; i++) {
		fill(fixture, i, i);
		assert_true(queue_put(&fixture->queue, fixture->sent, i));
	}
	assert_true(queue_bytes(&fixture->queue) > 0);
	for (unsigned char i = 1; i < 10; i++)
		take_and_compare(fixture, i, i);
	assert_int_equal(queue_bytes(&fixture->queue), 0);
}

/* Many times round the ring, so that each kind of message lies across its end. */
static void test_around_the_end(void **state)
{
	struct fixture *fixture = *state;
	size_t sizes[] = { 1, 3, 4, 5, 1000, 70001, QUEUE_MESSAGE_MAX };

	for (unsigned i = 0; i < 200; i++) {
		size_t size = sizes[i % (sizeof(sizes) / sizeof(sizes[0]))];

		fill(fixture, size, (unsigned char)i);
		assert_true(queue_put(&fixture->queue, fixture->sent, size));
		take_and_compare(fixture, size, (unsigned char)i);
	}
}

static void test_what_does_not_fit_is_refused(void **state)
{
	struct fixture *fixture = *state;
	const size_t rest = QUEUE_SIZE - (QUEUE_MESSAGE_MAX + HEAD_SIZE);

	assert_false(queue_put(&fixture->queue, fixture->sent, 0));
	assert_false(queue_put(&fixture->queue, fixture->sent, QUEUE_MESSAGE_MAX + 1));
	fill(fixture, QUEUE_MESSAGE_MAX, 1);
	assert_true(queue_put(&fixture->queue, fixture->sent, QUEUE_MESSAGE_MAX));
	assert_false(queue_put(&fixture->queue, fixture->sent, rest - HEAD_SIZE + 1));
	assert_true(queue_put(&fixture->queue, fixture->sent, rest - HEAD_SIZE));
	assert_false(queue_put(&fixture->queue, fixture->sent, 1));
	take_and_compare(fixture, QUEUE_MESSAGE_MAX, 1);
	take_and_compare(fixture, rest - HEAD_SIZE, 1);
	assert_true(queue_put(&fixture->queue, fixture->sent, 1));
}

/* What the other side may have made of it. */
static void test_nonsense_is_noticed(void **state)
{
	struct fixture *fixture = *state;
	struct queue *queue = &fixture->queue;
	const uint32_t sizes[] = { 0, 5, QUEUE_MESSAGE_MAX + 1, UINT32_MAX };

	queue->put = 1;
	assert_int_equal(queue_take(queue, fixture->taken), -EBADMSG);
	queue->put = QUEUE_SIZE + 1;
	assert_int_equal(queue_take(queue, fixture->taken), -EBADMSG);
	queue->put = UINT64_MAX;
	assert_int_equal(queue_take(queue, fixture->taken), -EBADMSG);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		queue->put = HEAD_SIZE + 4;
		memcpy(queue->ring, &sizes[i], sizeof(sizes[i]));
		assert_int_equal(queue_take(queue, fixture->taken), -EBADMSG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_in_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_around_the_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_does_not_fit_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_nonsense_is_noticed, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

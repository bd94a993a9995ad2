/* SPDX-License-Identifier: MIT */
/* The connections of an nginx worker, what they wait for, and HTTP/2's streams, in made-up memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/made_up_words.h"
#include "unwind/nginx/connections.h"

/* Words of the target. */
enum {
	CYCLE = 1,
	FIRST_WORD = CYCLE +
		     20,  /* of the cycle: connection_n, files_n, connections, read_events, write_events */
	FREE = CYCLE + 4, /* free_connections, free_connection_n */
	CONNECTIONS = 112,
	STRIDE = 12,
	COUNT = 5,
	EVENT_WORDS = 6,
	READS = 176,
	WRITES = 212,
	HTTP2 = 256,
	LISTS = 352,
	NODES = 384,
	NODE_WORDS = 16,
	STREAMS = 448,
	REQUESTS = 480,
	REQUEST_WORDS = 2,
	UNMAPPED = WORDS,
};

static const struct request_members members = { .known = true, .connection = WORD, .cycle = BASE };

static const struct connections connections = {
	.first = BASE + CONNECTIONS * WORD,
	.stride = STRIDE * WORD,
	.count = COUNT,
	.read_events = BASE + READS * WORD,
	.write_events = BASE + WRITES * WORD,
	.event_bytes = EVENT_WORDS * WORD,
	.request_connection = WORD,
};

static uint64_t connection(size_t index)
{
	return at(CONNECTIONS + index * STRIDE);
}

static uint64_t *event(struct made_up *made_up, size_t array, size_t index)
{
	return &made_up->words[array + index * EVENT_WORDS];
}

static void set_connection(struct made_up *made_up, size_t index, uint64_t data, int32_t fd)
{
	uint64_t *words = &made_up->words[CONNECTIONS + index * STRIDE];

	words[0] = data;
	words[3] = (uint32_t)fd;
}

/* Connection 0 listens, 1 has something as its data, 2 is free, 3 and 4 are used. */
static struct made_up worker(void)
{
	static const uint64_t data[COUNT] = { 0, BASE + 500 * WORD, BASE + 500 * WORD, BASE + 504 * WORD,
					      BASE + 508 * WORD };
	struct made_up made_up = { .memory = { .read_ranges = read_ranges } };
	uint64_t *words = made_up.words;

	words[0] = at(CYCLE);
	words[FIRST_WORD] = COUNT;
	words[FIRST_WORD + 2] = at(CONNECTIONS);
	words[FIRST_WORD + 3] = at(READS);
	words[FIRST_WORD + 4] = at(WRITES);
	for (size_t i = 0; i < COUNT; i++) {
		set_connection(&made_up, i, data[i], i == 2 ? -1 : (int32_t)i + 10);
		words[CONNECTIONS + i * STRIDE + 1] = at(READS + i * EVENT_WORDS);
		words[CONNECTIONS + i * STRIDE + 2] = at(WRITES + i * EVENT_WORDS);
		event(&made_up, READS, i)[0] = event(&made_up, WRITES, i)[0] = connection(i);
		event(&made_up, WRITES, i)[1] = EVENT_WRITE;
	}
	return made_up;
}

/*---- Where they are ----*/

static void the_array_is_found_by_its_events(void **state)
{
	struct made_up made_up = worker();
	struct connections found;

	(void)state;
	assert_true(connections_find(&made_up.memory, &members, &found));
	assert_int_equal(found.first, connections.first);
	assert_int_equal(found.stride, connections.stride);
	assert_int_equal(found.count, connections.count);
	assert_int_equal(found.read_events, connections.read_events);
	assert_int_equal(found.write_events, connections.write_events);
	assert_int_equal(found.event_bytes, connections.event_bytes);
	assert_int_equal(found.request_connection, connections.request_connection);
	/* Two connections are the fewest that tell a size. */
	made_up.words[FIRST_WORD] = 2;
	assert_true(connections_find(&made_up.memory, &members, &found));
	assert_int_equal(found.count, 2);
	assert_int_equal(found.stride, connections.stride);
	assert_int_equal(found.event_bytes, connections.event_bytes);
}

static void assert_none(struct made_up made_up, struct request_members which)
{
	struct connections found;

	assert_false(connections_find(&made_up.memory, &which, &found));
}

static void what_does_not_fit_is_no_array(void **state)
{
	static const size_t wrong[] = {
		FIRST_WORD + 2,
		FIRST_WORD + 3,
		FIRST_WORD + 4,
		CONNECTIONS + 1,
		CONNECTIONS + 2,
		CONNECTIONS + STRIDE + 1,
		CONNECTIONS + STRIDE + 2,
		CONNECTIONS + 2 * STRIDE + 1,
		CONNECTIONS + 2 * STRIDE + 2,
		CONNECTIONS + 3 * STRIDE + 1,
		CONNECTIONS + 3 * STRIDE + 2,
	};
	struct request_members which = members;
	struct made_up made_up;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		made_up = worker();
		made_up.words[wrong[i]] += WORD;
		assert_none(made_up, members);
		made_up.words[wrong[i]] = 0;
		assert_none(made_up, members);
	}
	made_up = worker();
	for (uint64_t count = 0; count < 2; count++) {
		made_up.words[FIRST_WORD] = count;
		assert_none(made_up, members);
	}
	made_up = worker();
	made_up.words[FIRST_WORD] = (1 << 20) + 1;
	assert_none(made_up, members);
	made_up.words[FIRST_WORD] = 1 << 20;
	assert_true(connections_find(&made_up.memory, &members, &(struct connections){ 0 }));
	/* Events that would be at address 0. */
	for (size_t array = 1; array <= 2; array++) {
		made_up = worker();
		made_up.words[FIRST_WORD + 2 + array] = 0;
		for (size_t i = 0; i < COUNT; i++)
			made_up.words[CONNECTIONS + i * STRIDE + array] = i * EVENT_WORDS * WORD;
		assert_none(made_up, members);
	}
	/* Only the first four are compared. */
	made_up = worker();
	made_up.words[CONNECTIONS + 4 * STRIDE + 1] = 0;
	assert_true(connections_find(&made_up.memory, &members, &(struct connections){ 0 }));
	/* All events are one: there is no array of them. */
	for (size_t i = 0; i < COUNT; i++) {
		made_up.words[CONNECTIONS + i * STRIDE + 1] = at(READS);
		made_up.words[CONNECTIONS + i * STRIDE + 2] = at(WRITES);
	}
	assert_none(made_up, members);
	made_up = worker();
	which.known = false;
	assert_none(made_up, which);
	which = members;
	which.cycle = 0;
	assert_none(made_up, which);
	which.cycle = at(UNMAPPED);
	assert_none(made_up, which);
	made_up.words[0] = at(UNMAPPED);
	assert_none(made_up, members);
}

static void only_elements_are_connections(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT; i++) {
		assert_true(connections_hold(&connections, connection(i)));
		assert_false(connections_hold(&connections, connection(i) + WORD));
		assert_int_equal(connections_of_event(&connections, at(READS + i * EVENT_WORDS)),
				 connection(i));
		assert_int_equal(connections_of_event(&connections, at(WRITES + i * EVENT_WORDS)),
				 connection(i));
		assert_int_equal(connections_of_event(&connections, at(READS + i * EVENT_WORDS) + WORD), 0);
	}
	assert_false(connections_hold(&connections, connection(COUNT)));
	assert_false(connections_hold(&connections, connection(0) - connections.stride));
	assert_false(connections_hold(&connections, 0));
	assert_int_equal(connections_of_event(&connections, at(READS + COUNT * EVENT_WORDS)), 0);
	assert_int_equal(connections_of_event(&connections, at(WRITES + COUNT * EVENT_WORDS)), 0);
	assert_int_equal(connections_of_event(&connections, at(READS - EVENT_WORDS)), 0);
}

/*---- What they wait for ----*/

/* Of connection 1, if its events have these flags beside that of writing. */
static enum connection_wait wait_of(uint64_t read_flags, uint64_t write_flags)
{
	struct made_up made_up = worker();

	event(&made_up, READS, 1)[1] |= read_flags;
	event(&made_up, WRITES, 1)[1] |= write_flags;
	return connection_wait(&made_up.memory, connection(1));
}

static void the_event_with_a_time_limit_tells_the_wait(void **state)
{
	(void)state;
	assert_int_equal(wait_of(EVENT_TIMER_SET, 0), CONNECTION_WAIT_READ);
	assert_int_equal(wait_of(0, EVENT_TIMER_SET), CONNECTION_WAIT_WRITE);
	assert_int_equal(wait_of(0, EVENT_TIMER_SET | EVENT_DELAYED), CONNECTION_WAIT_DELAY);
	assert_int_equal(wait_of(EVENT_TIMER_SET, EVENT_DELAYED), CONNECTION_WAIT_READ);
	assert_int_equal(wait_of(0, 0), CONNECTION_WAIT_NONE);
	assert_int_equal(wait_of(0, EVENT_DELAYED), CONNECTION_WAIT_NONE);
	assert_int_equal(wait_of(EVENT_TIMER_SET, EVENT_TIMER_SET), CONNECTION_WAIT_UNKNOWN);
}

static void events_that_do_not_fit_tell_nothing(void **state)
{
	struct made_up made_up;

	(void)state;
	assert_int_equal(wait_of(EVENT_TIMER_SET | EVENT_WRITE, 0), CONNECTION_WAIT_UNKNOWN);
	for (size_t i = 0; i < 2; i++) {
		size_t array = i ? WRITES : READS;

		/* Of another connection, and of none that can be read. */
		made_up = worker();
		event(&made_up, READS, 1)[1] = EVENT_TIMER_SET;
		event(&made_up, array, 1)[0] = connection(2);
		assert_int_equal(connection_wait(&made_up.memory, connection(1)), CONNECTION_WAIT_UNKNOWN);
		event(&made_up, array, 1)[0] = connection(1);
		assert_int_equal(connection_wait(&made_up.memory, connection(1)), CONNECTION_WAIT_READ);
		made_up.words[CONNECTIONS + STRIDE + 1 + i] = at(UNMAPPED);
		assert_int_equal(connection_wait(&made_up.memory, connection(1)), CONNECTION_WAIT_UNKNOWN);
	}
	made_up = worker();
	event(&made_up, READS, 1)[1] = EVENT_TIMER_SET;
	event(&made_up, WRITES, 1)[1] = 0;
	assert_int_equal(connection_wait(&made_up.memory, connection(1)), CONNECTION_WAIT_UNKNOWN);
	assert_int_equal(connection_wait(&made_up.memory, at(UNMAPPED)), CONNECTION_WAIT_UNKNOWN);
}

/*---- Those in use ----*/

enum { TAKEN_MAX = 4096 };

static struct taken {
	struct connection_in_use all[TAKEN_MAX];
	size_t count, most;
} taken;

static bool take(void *context, const struct connection_in_use *in_use)
{
	struct taken *into = context;

	assert_in_range(into->count, 0, TAKEN_MAX - 1);
	into->all[into->count++] = *in_use;
	return into->count < into->most;
}

static void walk(struct memory *memory, const struct connections *which, size_t most)
{
	taken = (struct taken){ .most = most };
	assert_true(connections_walk(memory, which, take, &taken));
}

static void assert_taken(size_t index, uint64_t address, uint64_t data, int32_t fd)
{
	assert_in_range(index, 0, taken.count - 1);
	assert_int_equal(taken.all[index].address, address);
	assert_int_equal(taken.all[index].data, data);
	assert_int_equal(taken.all[index].fd, fd);
}

static void free_connections_are_left_out(void **state)
{
	struct made_up made_up = worker();

	(void)state;
	made_up.words[CONNECTIONS + 4 * STRIDE] |= 1; /* a mark that nginx keeps in its pointers */
	walk(&made_up.memory, &connections, TAKEN_MAX);
	assert_int_equal(taken.count, 3);
	assert_taken(0, connection(0), 0, 10);
	assert_taken(1, connection(1), at(500), 11);
	assert_taken(2, connection(3), at(504), 13);
	walk(&made_up.memory, &connections, 2);
	assert_int_equal(taken.count, 2);
}

/* Connections 2, the next free one, and 4 are free. Behind the last that was taken, none can be in use. */
static struct made_up worker_with_free_ones(void)
{
	struct made_up made_up = worker();

	made_up.words[FREE] = connection(2);
	made_up.words[FREE + 1] = 2;
	set_connection(&made_up, 2, connection(4), -1);
	set_connection(&made_up, 4, 0, -1);
	return made_up;
}

static void the_number_of_free_ones_is_found(void **state)
{
	struct made_up made_up = worker_with_free_ones();
	struct connections found;

	(void)state;
	assert_true(connections_find(&made_up.memory, &members, &found));
	assert_int_equal(found.free_count, at(FREE + 1));
	/* It may be two places, or none. */
	made_up.words[CYCLE + 2] = connection(3);
	assert_true(connections_find(&made_up.memory, &members, &found));
	assert_int_equal(found.free_count, 0);
	made_up.words[CYCLE + 2] = connection(3) + WORD;
	made_up.words[FREE + 1] = COUNT + 1;
	assert_true(connections_find(&made_up.memory, &members, &found));
	assert_int_equal(found.free_count, 0);
}

static void the_walk_ends_with_the_last_that_was_taken(void **state)
{
	struct made_up made_up = worker_with_free_ones();
	struct connections counted = connections;

	(void)state;
	counted.free_count = at(FREE + 1);
	/* Of this one, nothing is to be read. */
	set_connection(&made_up, 4, at(508), 14);
	walk(&made_up.memory, &counted, TAKEN_MAX);
	assert_int_equal(taken.count, 3);
	assert_taken(2, connection(3), at(504), 13);
	/* One that was taken has no descriptor, and is counted all the same. */
	set_connection(&made_up, 1, at(500), -1);
	walk(&made_up.memory, &counted, TAKEN_MAX);
	assert_int_equal(taken.count, 2);
	/* One that is free has one still, and is not. */
	set_connection(&made_up, 2, connection(4), 12);
	walk(&made_up.memory, &counted, TAKEN_MAX);
	assert_int_equal(taken.count, 3);
	assert_taken(2, connection(3), at(504), 13);
	/* Without a number that can be right, all are looked at. */
	set_connection(&made_up, 2, connection(4), -1);
	made_up.words[FREE + 1] = COUNT + 1;
	walk(&made_up.memory, &counted, TAKEN_MAX);
	assert_int_equal(taken.count, 3);
	assert_taken(2, connection(4), at(508), 14);
	counted.free_count = at(UNMAPPED);
	walk(&made_up.memory, &counted, TAKEN_MAX);
	assert_int_equal(taken.count, 3);
	made_up.words[FREE + 1] = COUNT;
	counted.free_count = at(FREE + 1);
	walk(&made_up.memory, &counted, TAKEN_MAX);
	assert_int_equal(taken.count, 0);
}

/* A descriptor of 0 is one. */
static void the_first_descriptor_is_in_use(void **state)
{
	struct made_up made_up = worker();

	(void)state;
	set_connection(&made_up, 0, 0, 0);
	walk(&made_up.memory, &connections, 1);
	assert_taken(0, connection(0), 0, 0);
}

/* Each of many, which are more than are read at a time. */
static struct many {
	struct memory memory; /* first: what is read */
	uint64_t words[3000 * STRIDE];
} many;

static void read_many(struct memory *memory, struct memory_range *ranges, size_t count)
{
	(void)memory;
	range_bytes(ranges, count, BASE, many.words, sizeof(many.words));
}

static void all_of_many_connections_are_seen(void **state)
{
	const struct connections all = { .first = BASE,
					 .stride = STRIDE * WORD,
					 .count = sizeof(many.words) / (STRIDE * WORD) };

	(void)state;
	many.memory.read_ranges = read_many;
	for (size_t i = 0; i < all.count; i++)
		many.words[i * STRIDE + 3] = i;
	walk(&many.memory, &all, TAKEN_MAX);
	assert_int_equal(taken.count, all.count);
	for (size_t i = 0; i < all.count; i++)
		assert_taken(i, at(i * STRIDE), 0, (int32_t)i);
	/* It ends where it is told to, and what cannot be read is left out. */
	walk(&many.memory, &all, 2000);
	assert_int_equal(taken.count, 2000);
	walk(&many.memory,
	     &(struct connections){ .first = BASE, .stride = STRIDE * WORD, .count = all.count + 1 },
	     TAKEN_MAX);
	assert_in_range(taken.count, 1000, all.count - 1);
}

/*---- HTTP/2 ----*/

static uint64_t node(size_t index)
{
	return at(NODES + index * NODE_WORDS);
}

static uint64_t request(size_t index)
{
	return at(REQUESTS + index * REQUEST_WORDS);
}

/*
 * A node, whose stream has this identifier and the request of the node's number, before another in its list.
 */
static void set_node(struct made_up *made_up, size_t index, uint64_t id, uint64_t next)
{
	uint64_t *words = &made_up->words[NODES + index * NODE_WORDS];
	uint64_t *stream = &made_up->words[STREAMS + index * 3];

	words[0] = id;
	words[1] = next;
	words[5] = at(STREAMS + index * 3);
	stream[0] = request(index);
	stream[1] = at(HTTP2);
	stream[2] = node(index);
	made_up->words[REQUESTS + index * REQUEST_WORDS + 1] = at(100 + index);
}

/* A stream that has been closed leaves its node. */
static void close_stream(struct made_up *made_up, size_t index)
{
	made_up->words[NODES + index * NODE_WORDS + 5] = 0;
}

/* Connection 1 is one of HTTP/2: node 1 behind node 0 in a list, node 2 in the last one. */
static struct made_up http2_worker(void)
{
	struct made_up made_up = worker();

	set_connection(&made_up, 1, at(HTTP2), 11);
	made_up.words[HTTP2] = connection(1);
	made_up.words[HTTP2 + 1] = at(504);
	made_up.words[HTTP2 + 95] = at(LISTS);
	made_up.words[LISTS + 2] = node(0);
	made_up.words[LISTS + 31] = node(2);
	set_node(&made_up, 0, 5, node(1));
	set_node(&made_up, 1, 69, 0);
	set_node(&made_up, 2, 63, 0);
	return made_up;
}

/* Those of HTTP/2, behind that of their client. */
static void assert_streams(struct made_up *made_up, size_t count, const size_t requests[])
{
	walk(&made_up->memory, &connections, TAKEN_MAX);
	assert_int_equal(taken.count, 4 + count);
	assert_taken(1, connection(1), at(HTTP2), 11);
	for (size_t i = 0; i < count; i++)
		assert_taken(2 + i, at(100 + requests[i]), request(requests[i]), -1);
	assert_taken(2 + count, connection(3), at(504), 13);
}

static void streams_have_connections_of_their_own(void **state)
{
	struct made_up made_up = http2_worker();

	(void)state;
	assert_streams(&made_up, 3, (size_t[]){ 0, 1, 2 });
	walk(&made_up.memory, &connections, 3);
	assert_int_equal(taken.count, 3);
	/* A list that only node 2 is in tells as well. */
	made_up.words[LISTS + 2] = 0;
	assert_streams(&made_up, 1, (size_t[]){ 2 });
}

/* The nodes of up to 32 closed streams may be in front of those that are open. */
static void closed_streams_hide_no_others(void **state)
{
	struct made_up made_up = http2_worker();

	(void)state;
	close_stream(&made_up, 0);
	assert_streams(&made_up, 2, (size_t[]){ 1, 2 });
	close_stream(&made_up, 2);
	assert_streams(&made_up, 1, (size_t[]){ 1 });
	close_stream(&made_up, 1);
	assert_streams(&made_up, 0, NULL);
}

/* It has a pointer to its node where an array of lists has the third one. */
static void the_stream_of_a_frame_that_nginx_reads_is_no_array(void **state)
{
	struct made_up made_up = http2_worker();

	(void)state;
	made_up.words[HTTP2 + 50] = at(STREAMS);
	assert_streams(&made_up, 3, (size_t[]){ 0, 1, 2 });
	made_up.words[HTTP2 + 50] = at(STREAMS + 3);
	assert_streams(&made_up, 3, (size_t[]){ 0, 1, 2 });
}

/* Whoever configures it: http2_streams_index_size. */
static void there_may_be_fewer_lists(void **state)
{
	struct made_up made_up = http2_worker();

	(void)state;
	made_up.words[LISTS + 31] = 0;
	made_up.words[LISTS + 7] = node(2);
	set_node(&made_up, 1, 21, 0);
	assert_streams(&made_up, 3, (size_t[]){ 0, 1, 2 });
	/* What is behind them may lead to nodes, too. */
	made_up.words[LISTS + 8] = node(1);
	made_up.words[LISTS + 9] = at(UNMAPPED);
	made_up.words[LISTS + 10] = 1;
	assert_streams(&made_up, 3, (size_t[]){ 0, 1, 2 });
}

static void what_refers_elsewhere_is_no_stream(void **state)
{
	struct made_up made_up;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		made_up = http2_worker();
		made_up.words[STREAMS + i] += i ? WORD : 1;
		assert_streams(&made_up, 2, (size_t[]){ 1, 2 });
	}
	made_up = http2_worker();
	made_up.words[REQUESTS + 1] = 0;
	made_up.words[STREAMS] = at(UNMAPPED);
	assert_streams(&made_up, 2, (size_t[]){ 1, 2 });
	made_up = http2_worker();
	made_up.words[HTTP2] = connection(2);
	assert_streams(&made_up, 0, NULL);
	made_up = http2_worker();
	made_up.words[HTTP2 + 95] = at(UNMAPPED);
	assert_streams(&made_up, 0, NULL);
	/* A node in a list that is not its own, however many there are, and one that cannot be read. */
	made_up = http2_worker();
	close_stream(&made_up, 2);
	made_up.words[LISTS] = node(2);
	made_up.words[LISTS + 1] = node(0);
	assert_streams(&made_up, 0, NULL);
	made_up = http2_worker();
	made_up.words[LISTS] = at(UNMAPPED);
	assert_streams(&made_up, 0, NULL);
}

/* A connection of nginx's resolver has its connections of UDP and TCP at the start of its data. */
static void a_connection_of_the_resolver_has_no_streams(void **state)
{
	const uint64_t tcp[] = { 0, connection(3) };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct made_up made_up = http2_worker();

		made_up.words[HTTP2 + 1] = tcp[i];
		assert_streams(&made_up, 0, NULL);
	}
}

static void a_list_that_bites_its_tail_ends(void **state)
{
	struct made_up made_up = http2_worker();

	(void)state;
	made_up.words[NODES + NODE_WORDS + 1] = node(0);
	walk(&made_up.memory, &connections, TAKEN_MAX);
	assert_int_equal(taken.count, 4 + 1024 + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_array_is_found_by_its_events),
		cmocka_unit_test(what_does_not_fit_is_no_array),
		cmocka_unit_test(only_elements_are_connections),
		cmocka_unit_test(the_event_with_a_time_limit_tells_the_wait),
		cmocka_unit_test(events_that_do_not_fit_tell_nothing),
		cmocka_unit_test(free_connections_are_left_out),
		cmocka_unit_test(the_number_of_free_ones_is_found),
		cmocka_unit_test(the_walk_ends_with_the_last_that_was_taken),
		cmocka_unit_test(the_first_descriptor_is_in_use),
		cmocka_unit_test(all_of_many_connections_are_seen),
		cmocka_unit_test(streams_have_connections_of_their_own),
		cmocka_unit_test(closed_streams_hide_no_others),
		cmocka_unit_test(the_stream_of_a_frame_that_nginx_reads_is_no_array),
		cmocka_unit_test(there_may_be_fewer_lists),
		cmocka_unit_test(what_refers_elsewhere_is_no_stream),
		cmocka_unit_test(a_connection_of_the_resolver_has_no_streams),
		cmocka_unit_test(a_list_that_bites_its_tail_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* nginx's tree of timers, its connections, Lua's sockets and shared dictionaries, in made-up memory. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/made_up_words.h"
#include "unwind/nginx/cosocket.h"
#include "unwind/nginx/shared_dict.h"
#include "unwind/nginx/timers.h"
#include "unwind/nginx/zones.h"

enum { EVENT = 12 * WORD, TIMER = 5 * WORD };

/* Node with key, left, right, parent; the tree is at word 0, its sentinel at word 4. */
static void set_node(struct made_up *made_up, size_t word, uint64_t key, size_t left, size_t right,
		     size_t parent)
{
	const uint64_t node[] = { key, at(left), at(right), at(parent) };

	memcpy(&made_up->words[word], node, sizeof(node));
}

enum { SENTINEL = 4, ROOT = 16, LEFT = 32, RIGHT = 48, INNER = 64 };

static struct made_up tree(void)
{
	struct made_up made_up = { .memory = { .read_ranges = read_ranges },
				   .words = { at(ROOT), at(SENTINEL) } };

	set_node(&made_up, ROOT, 20, LEFT, RIGHT, 0);
	set_node(&made_up, LEFT, 10, SENTINEL, INNER, ROOT);
	set_node(&made_up, RIGHT, 30, SENTINEL, SENTINEL, ROOT);
	set_node(&made_up, INNER, 15, SENTINEL, SENTINEL, LEFT);
	return made_up;
}

static void timers_come_in_the_order_of_their_times(void **state)
{
	const uint64_t nodes[] = { LEFT, INNER, ROOT, RIGHT }, due[] = { 10, 15, 20, 30 };
	struct made_up made_up = tree();
	struct timers timers;

	(void)state;
	assert_int_equal(timers_read(&made_up.memory, BASE, TIMERS_ALL, &timers), 0);
	assert_int_equal(timers.count, 4);
	assert_false(timers.is_cut);
	for (size_t i = 0; i < timers.count; i++) {
		assert_int_equal(timers.timers[i].node, at(nodes[i]));
		assert_int_equal(timers.timers[i].due_ms, due[i]);
	}
	timers_clear(&timers);
	assert_int_equal(timers_read(&made_up.memory, BASE, 15, &timers), 0);
	assert_int_equal(timers.count, 2);
	timers_clear(&timers);
	made_up.words[0] = at(SENTINEL);
	assert_int_equal(timers_read(&made_up.memory, BASE, TIMERS_ALL, &timers), 0);
	assert_int_equal(timers.count, 0);
}

static void a_tree_that_contradicts_itself_is_none(void **state)
{
	static const size_t words[] = { INNER + 3, RIGHT + 3, LEFT + 1, ROOT + 1 };
	static const uint64_t values[] = { BASE + ROOT * WORD, 0, BASE + ROOT * WORD, BASE + RIGHT * WORD };
	struct timers timers;

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		struct made_up made_up = tree();

		made_up.words[words[i]] = values[i];
		assert_int_equal(timers_read(&made_up.memory, BASE, TIMERS_ALL, &timers), -EAGAIN);
	}
}

/* An event of a connection at word EVENTS, one of ngx.timer at OWN, one of something else at OTHER. */
enum { EVENTS = 8, OWN = 120, OTHER = 160 };

static void what_timers_are_of(void **state)
{
	const struct connections connections = {
		.first = at(200),
		.stride = 64,
		.count = 2,
		.read_events = at(EVENTS),
		.write_events = at(EVENTS + 24),
		.event_bytes = EVENT,
	};
	struct made_up made_up = { .memory = { .read_ranges = read_ranges } };
	struct timer known[] = { { at(EVENTS + 12 + 5), 1 }, { at(OWN + 5), 2 }, { at(OTHER + 5), 3 } };
	struct timers timers = { .timers = known, .count = 3 };
	struct timer_event event;

	(void)state;
	made_up.words[OWN] = at(OWN) + EVENT;
	assert_int_equal(timers_offset(&made_up.memory, &timers, &connections, NULL), TIMER);
	event = timer_event_read(&made_up.memory, &known[0], TIMER, &connections, NULL);
	assert_int_equal(event.kind, TIMER_CONNECTION);
	assert_int_equal(event.subject, at(200) + 64);
	event = timer_event_read(&made_up.memory, &known[1], TIMER, &connections, NULL);
	assert_int_equal(event.kind, TIMER_LUA);
	assert_int_equal(event.subject, at(OWN) + EVENT);
	assert_int_equal(timer_event_read(&made_up.memory, &known[2], TIMER, &connections, NULL).kind,
			 TIMER_OTHER);
	assert_int_equal(timer_event_read(&made_up.memory, &known[2], 0, &connections, NULL).kind,
			 TIMER_UNKNOWN);
	/* They disagree. */
	known[1].node += WORD;
	assert_int_equal(timers_offset(&made_up.memory, &timers, &connections, NULL), 0);
}

/*
 * ngx.sleep: the event lies in its coroutine's context, to which the coroutine refers in turn. Another event
 * may have the same data, but lies before the context, or too far behind it.
 */
static void a_timer_in_a_context_is_of_its_coroutine(void **state)
{
	enum { BEFORE = 24, CONTEXT = 40, WITHIN = 60, FAR = 300, COROUTINE = 400 };
	const struct layout luajit = { .gc64 = true, .L_exdata = WORD, .L_exdata2 = 2 * WORD };
	const struct connections connections = { .event_bytes = EVENT };
	struct made_up made_up = { .memory = { .read_ranges = read_ranges } };
	struct timer known[] = { { at(WITHIN + 5), 1 }, { at(BEFORE + 5), 2 }, { at(FAR + 5), 3 } };
	struct timer_event event;

	(void)state;
	made_up.words[BEFORE] = made_up.words[WITHIN] = made_up.words[FAR] = at(CONTEXT);
	made_up.words[CONTEXT + 1] = at(COROUTINE);
	made_up.words[COROUTINE + 2] = at(CONTEXT);
	event = timer_event_read(&made_up.memory, &known[0], TIMER, &connections, &luajit);
	assert_int_equal(event.kind, TIMER_COROUTINE);
	assert_int_equal(event.subject, at(COROUTINE));
	for (size_t i = 1; i < 3; i++)
		assert_int_equal(
			timer_event_read(&made_up.memory, &known[i], TIMER, &connections, &luajit).kind,
			TIMER_OTHER);
	/* It tells the offset, too. */
	assert_int_equal(timers_offset(&made_up.memory, &(struct timers){ .timers = known, .count = 1 },
				       &connections, &luajit),
			 TIMER);
	assert_int_equal(timer_event_read(&made_up.memory, &known[0], TIMER, &connections, NULL).kind,
			 TIMER_OTHER);
	made_up.words[COROUTINE + 2] = at(CONTEXT + 1); /* it has gone on */
	assert_int_equal(timer_event_read(&made_up.memory, &known[0], TIMER, &connections, &luajit).kind,
			 TIMER_OTHER);
}

/* Two connections with their events; the second one's write event has a timer, and only it. */
enum { CONNECTION = 200, STRIDE = 8, READS = 8, WRITES = 32, EVENT_WORDS = EVENT / WORD };

static const struct connections two = {
	.first = BASE + CONNECTION * WORD,
	.stride = STRIDE * WORD,
	.count = 2,
	.read_events = BASE + READS * WORD,
	.write_events = BASE + WRITES * WORD,
	.event_bytes = EVENT,
};

static struct made_up connected(void)
{
	struct made_up made_up = { .memory = { .read_ranges = read_ranges } };

	for (size_t i = 0; i < 2; i++) {
		uint64_t *connection = &made_up.words[CONNECTION + i * STRIDE];

		connection[1] = at(READS + i * EVENT_WORDS);
		connection[2] = at(WRITES + i * EVENT_WORDS);
		made_up.words[READS + i * EVENT_WORDS] = at(CONNECTION + i * STRIDE);
		made_up.words[WRITES + i * EVENT_WORDS] = at(CONNECTION + i * STRIDE);
		made_up.words[WRITES + i * EVENT_WORDS + 1] = EVENT_WRITE;
	}
	made_up.words[WRITES + EVENT_WORDS + 1] |= EVENT_TIMER_SET;
	return made_up;
}

static void flags_are_believed_if_they_are_those_of_the_tree(void **state)
{
	struct made_up made_up = connected();
	struct timer known = { at(WRITES + EVENT_WORDS) + TIMER, 1 };
	struct timers timers = { .timers = &known, .count = 1 }, none = { .count = 0 };

	(void)state;
	assert_int_equal(timers_compare_flags(&made_up.memory, &timers, TIMER, &two), TIMER_FLAGS_AGREE);
	assert_int_equal(timers_compare_flags(&made_up.memory, &none, TIMER, &two), TIMER_FLAGS_UNPROVEN);
	made_up.words[READS + 1] = EVENT_TIMER_SET;
	assert_int_equal(timers_compare_flags(&made_up.memory, &timers, TIMER, &two), TIMER_FLAGS_DIFFER);
	made_up.words[READS + 1] = made_up.words[WRITES + EVENT_WORDS + 1] = 0;
	assert_int_equal(timers_compare_flags(&made_up.memory, &timers, TIMER, &two), TIMER_FLAGS_DIFFER);
}

/* nginx clears the events of a connection when it takes the connection, and not before. */
static void events_of_connections_not_in_use_have_any_flags(void **state)
{
	struct made_up made_up = connected();
	struct timer known = { at(WRITES + EVENT_WORDS) + TIMER, 1 };
	struct timers timers = { .timers = &known, .count = 1 };
	struct connections many = two;

	(void)state;
	made_up.words[CONNECTION + 3] = UINT32_MAX; /* fd */
	made_up.words[READS + 1] = made_up.words[WRITES + 1] = UINT64_MAX;
	assert_int_equal(timers_compare_flags(&made_up.memory, &timers, TIMER, &two), TIMER_FLAGS_AGREE);
	/* Nor is the timer of such a connection one of those that are compared. */
	made_up.words[CONNECTION + STRIDE + 3] = UINT32_MAX;
	assert_int_equal(timers_compare_flags(&made_up.memory, &timers, TIMER, &two), TIMER_FLAGS_UNPROVEN);
	/* Connections that cannot be read. */
	many.first = BASE + sizeof(made_up.words) - WORD;
	assert_int_equal(timers_compare_flags(&made_up.memory, &timers, TIMER, &many), TIMER_FLAGS_UNPROVEN);
}

static void what_a_connection_waits_for(void **state)
{
	struct made_up made_up = connected();
	uint64_t second = at(CONNECTION + STRIDE);

	(void)state;
	assert_int_equal(connection_wait(&made_up.memory, at(CONNECTION)), CONNECTION_WAIT_NONE);
	assert_int_equal(connection_wait(&made_up.memory, second), CONNECTION_WAIT_WRITE);
	made_up.words[WRITES + EVENT_WORDS + 1] |= EVENT_DELAYED;
	assert_int_equal(connection_wait(&made_up.memory, second), CONNECTION_WAIT_DELAY);
	made_up.words[READS + EVENT_WORDS + 1] |= EVENT_TIMER_SET;
	assert_int_equal(connection_wait(&made_up.memory, second), CONNECTION_WAIT_UNKNOWN);
	made_up.words[WRITES + EVENT_WORDS + 1] = EVENT_WRITE;
	assert_int_equal(connection_wait(&made_up.memory, second), CONNECTION_WAIT_READ);
	/* An event of something else. */
	made_up.words[READS + EVENT_WORDS] = BASE;
	assert_int_equal(connection_wait(&made_up.memory, second), CONNECTION_WAIT_UNKNOWN);
}

/* A lua_State, its context, the socket that it waits for, and that socket's address. */
enum {
	THREAD = 64,
	COCTX = 72,
	SOCKET = 80,
	SOCKET_REQUEST = SOCKET + 8,
	WAITS = SOCKET + 50,
	ADDRESS = 160
};

static void the_socket_that_a_coroutine_waits_for(void **state)
{
	const struct layout luajit = { .gc64 = true, .L_base = 24 };
	const struct light_thread light_thread = { at(THREAD), at(1), at(COCTX) };
	struct made_up made_up = connected();
	uint64_t *words = made_up.words;
	struct cosocket cosocket;

	(void)state;
	words[COCTX] = at(SOCKET);
	words[SOCKET_REQUEST] = at(1);
	words[WAITS] = at(COCTX);
	cosocket_read(&made_up.memory, &luajit, &two, &light_thread, &cosocket);
	assert_int_equal(cosocket.state, COSOCKET_RESOLVING);
	words[SOCKET_REQUEST + 1] = at(CONNECTION);
	words[SOCKET_REQUEST + 2] = at(ADDRESS);
	words[SOCKET_REQUEST + 3] = 16;
	words[ADDRESS] = 2;
	cosocket_read(&made_up.memory, &luajit, &two, &light_thread, &cosocket);
	assert_int_equal(cosocket.state, COSOCKET_NONE); /* the connection is another one's */
	words[CONNECTION] = at(SOCKET);
	cosocket_read(&made_up.memory, &luajit, &two, &light_thread, &cosocket);
	assert_int_equal(cosocket.state, COSOCKET_OPEN);
	assert_int_equal(cosocket.address_length, 16);
	assert_int_equal(cosocket.address[0], 2);
	words[CONNECTION] = at(1);
	cosocket_read(&made_up.memory, &luajit, &two, &light_thread, &cosocket);
	assert_int_equal(cosocket.state, COSOCKET_CLIENT);
	words[WAITS] = 0;
	cosocket_read(&made_up.memory, &luajit, &two, &light_thread, &cosocket);
	assert_int_equal(cosocket.state, COSOCKET_NONE); /* the wait is over */
}

/*
 * A zone with a holder, and at word SHCTX what a dictionary keeps; its queue has the entries at FIRST and
 * SECOND.
 */
enum { SHCTX = 64, QUEUE = SHCTX + 8, FIRST = 96, SECOND = 112 };

static struct made_up zone(void)
{
	struct made_up made_up = { .memory = { .read_ranges = read_ranges } };
	uint64_t *words = made_up.words;

	words[0] = 4711;
	words[20] = at(SHCTX);
	words[SHCTX] = words[SHCTX + 1] = at(SHCTX + 3);
	words[QUEUE] = at(SECOND + 2);
	words[QUEUE + 1] = at(FIRST + 2);
	words[FIRST + 1] = 1000; /* expires */
	words[FIRST + 2] = at(QUEUE);
	words[FIRST + 3] = at(SECOND + 2);
	words[SECOND + 2] = at(FIRST + 2);
	words[SECOND + 3] = at(QUEUE);
	return made_up;
}

static void keys_of_a_dictionary(void **state)
{
	struct made_up made_up = zone();
	struct shared_dict dict;
	pid_t holder;

	(void)state;
	assert_true(shared_dict_read(&made_up.memory, BASE, BASE + sizeof(made_up.words), 1000, &dict));
	assert_true(dict.is_whole && dict.is_quiet);
	assert_int_equal(dict.keys, 2);
	assert_int_equal(dict.expired, 1);
	assert_true(shared_dict_read(&made_up.memory, BASE, BASE + sizeof(made_up.words), 999, &dict));
	assert_int_equal(dict.expired, 0);
	assert_true(zones_read_holder(&made_up.memory, BASE, &holder));
	assert_int_equal(holder, 4711);
	/* A queue that does not refer back is not whole. */
	made_up.words[SECOND + 2] = at(QUEUE);
	assert_true(shared_dict_read(&made_up.memory, BASE, BASE + sizeof(made_up.words), 999, &dict));
	assert_false(dict.is_whole);
	/* Another owner's data. */
	made_up.words[SHCTX + 1] = at(SHCTX);
	assert_false(shared_dict_read(&made_up.memory, BASE, BASE + sizeof(made_up.words), 999, &dict));
	made_up.words[0] = UINT64_MAX;
	assert_false(zones_read_holder(&made_up.memory, BASE, &holder));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timers_come_in_the_order_of_their_times),
		cmocka_unit_test(a_tree_that_contradicts_itself_is_none),
		cmocka_unit_test(what_timers_are_of),
		cmocka_unit_test(a_timer_in_a_context_is_of_its_coroutine),
		cmocka_unit_test(flags_are_believed_if_they_are_those_of_the_tree),
		cmocka_unit_test(events_of_connections_not_in_use_have_any_flags),
		cmocka_unit_test(what_a_connection_waits_for),
		cmocka_unit_test(the_socket_that_a_coroutine_waits_for),
		cmocka_unit_test(keys_of_a_dictionary),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* What is told of one request of nginx, in made-up memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/made_up_words.h"
#include "unwind/nginx/connections.h"
#include "unwind/nginx/nginx_request.h"

enum { SIGNATURE = 0x50545448 };

/* Words of the target. */
enum {
	REQUEST = 8,
	SUBREQUEST = 40,
	OTHER = 72,
	CONNECTION = 104,
	TEXTS = 128,
	TEXT_WORDS = 64,
	STATES = 384, /* ngx_array_t of upstream states, and they */
	FIRST_STATE = STATES + 4,
	STATE_WORDS = 8,
	PEER = 440, /* ngx_str_t */
	UNMAPPED = WORDS,
};

/* Which text lies where. */
enum { URI, METHOD, HOST, REST };

static const struct request_members members = {
	.known = true,
	.connection = 1 * WORD,
	.main = 2 * WORD,
	.uri = 3 * WORD,
	.method_name = 5 * WORD,
	.server = 7 * WORD,
	.start_sec = 9 * WORD,
	.start_msec = 10 * WORD,
	.status = 11 * WORD,
	.err_status = 12 * WORD,
	.args = 13 * WORD,
	.request_length = 15 * WORD,
	.upstream_states = 16 * WORD,
	.request_bytes = 17 * WORD,
	.addr_text = 4 * WORD,
	.number = 6 * WORD,
	.requests = 7 * WORD,
	.sent = 8 * WORD,
	.connection_bytes = 9 * WORD,
};

static void set_text(struct made_up *made_up, size_t member, size_t which, const char *text)
{
	made_up->words[member] = strlen(text);
	made_up->words[member + 1] = at(TEXTS + which * TEXT_WORDS);
	memcpy(&made_up->words[TEXTS + which * TEXT_WORDS], text, strlen(text));
}

static void set_request(struct made_up *made_up, size_t address, size_t main)
{
	uint64_t *words = &made_up->words[address];

	words[0] = SIGNATURE;
	words[1] = at(CONNECTION);
	words[2] = at(main);
	words[9] = 1700000000;
	words[10] = 42;
}

/* A client's request for /path, with a subrequest; another main request is on no connection. */
static struct made_up worker(void)
{
	struct made_up made_up = { .memory = { .read_ranges = read_ranges } };

	set_request(&made_up, REQUEST, REQUEST);
	set_request(&made_up, SUBREQUEST, REQUEST);
	set_request(&made_up, OTHER, OTHER);
	made_up.words[SUBREQUEST + 9] = 1;
	made_up.words[CONNECTION] = at(REQUEST);
	made_up.words[CONNECTION + 6] = 1234;
	made_up.words[CONNECTION + 7] = 3;
	set_text(&made_up, REQUEST + 3, URI, "/path");
	set_text(&made_up, REQUEST + 5, METHOD, "POST");
	set_text(&made_up, REQUEST + 7, HOST, "example.org");
	return made_up;
}

static struct nginx_request read_at(struct made_up *made_up, size_t word)
{
	struct nginx_request request;

	memset(&request, 0xff, sizeof(request));
	assert_true(nginx_request_read(&made_up->memory, &members, at(word), &request));
	return request;
}

static void a_request_is_read(void **state)
{
	struct made_up made_up = worker();
	struct nginx_request request = read_at(&made_up, REQUEST);

	(void)state;
	assert_int_equal(request.address, at(REQUEST));
	assert_int_equal(request.main, at(REQUEST));
	assert_int_equal(request.connection, at(CONNECTION));
	assert_int_equal(request.serves, at(REQUEST));
	assert_int_equal(request.number, 1234);
	assert_int_equal(request.ordinal, 3);
	assert_int_equal(request.start_ms, 1700000000042);
	assert_int_equal(request.status, 0);
	assert_string_equal(request.method, "POST");
	assert_string_equal(request.host, "example.org");
	assert_string_equal(request.uri, "/path");
	assert_string_equal(request.matched, "");
}

/* It has a path of its own, and the client's method and time. */
static void a_subrequest_is_its_clients(void **state)
{
	struct made_up made_up = worker();
	struct nginx_request request;

	(void)state;
	set_text(&made_up, SUBREQUEST + 3, REST, "/inner");
	set_text(&made_up, SUBREQUEST + 5, HOST, "SUB");
	request = read_at(&made_up, SUBREQUEST);
	assert_int_equal(request.address, at(SUBREQUEST));
	assert_int_equal(request.main, at(REQUEST));
	assert_int_equal(request.start_ms, 1700000000042);
	assert_string_equal(request.method, "POST");
	assert_string_equal(request.uri, "/inner");
	assert_string_equal(request.host, "");
	/* While the connection serves it, or another subrequest. */
	made_up.words[CONNECTION] = at(SUBREQUEST);
	assert_int_equal(read_at(&made_up, SUBREQUEST).serves, at(SUBREQUEST));
	assert_int_equal(read_at(&made_up, REQUEST).serves, at(SUBREQUEST));
	set_request(&made_up, OTHER, REQUEST);
	made_up.words[CONNECTION] = at(OTHER);
	assert_int_equal(read_at(&made_up, SUBREQUEST).serves, at(OTHER));
	assert_int_equal(read_at(&made_up, REQUEST).serves, at(OTHER));
}

static void assert_none(struct made_up *made_up, size_t word)
{
	struct nginx_request request;

	assert_false(nginx_request_read(&made_up->memory, &members, at(word), &request));
}

static void what_has_ended_is_none(void **state)
{
	/*
	 * The signature, connection, main request and its signature, main request and connection; the time.
	 */
	static const struct {
		size_t word;
		uint64_t value;
	} wrong[] = {
		{ REQUEST, SIGNATURE + 1 },
		{ REQUEST + 1, BASE + WORDS * WORD },
		{ REQUEST + 1, BASE + OTHER * WORD },
		{ REQUEST + 2, BASE + WORDS * WORD },
		{ REQUEST + 2, BASE + CONNECTION * WORD },
		{ REQUEST + 2, BASE + SUBREQUEST * WORD },
		{ REQUEST + 9, 0 },
		{ CONNECTION, 0 },
		{ CONNECTION, BASE + OTHER * WORD },
		{ CONNECTION, BASE + CONNECTION * WORD },
		{ CONNECTION, BASE + WORDS * WORD },
	};
	struct nginx_request request;
	struct request_members unknown = members;
	struct made_up made_up;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		made_up = worker();
		if (wrong[i].word == REQUEST + 9)
			made_up.words[REQUEST + 10] = 0;
		made_up.words[wrong[i].word] = wrong[i].value;
		assert_none(&made_up, REQUEST);
	}
	made_up = worker();
	/* A subrequest whose main request is on another connection. */
	made_up.words[REQUEST + 1] = at(OTHER);
	assert_none(&made_up, SUBREQUEST);
	assert_none(&made_up, UNMAPPED);
	unknown.known = false;
	made_up = worker();
	assert_false(nginx_request_read(&made_up.memory, &unknown, at(REQUEST), &request));
	assert_false(nginx_request_read(&made_up.memory, &members, 0, &request));
}

static void a_time_that_is_none_is_no_clients(void **state)
{
	struct made_up made_up = worker();

	(void)state;
	made_up.words[REQUEST + 9] = UINT32_MAX * UINT64_C(16);
	assert_none(&made_up, REQUEST);
	made_up.words[REQUEST + 9]--;
	made_up.words[REQUEST + 10] = 1007;
	assert_int_equal(read_at(&made_up, REQUEST).start_ms, (UINT32_MAX * UINT64_C(16) - 1) * 1000 + 7);
}

static void the_error_is_the_status(void **state)
{
	struct made_up made_up = worker();

	(void)state;
	made_up.words[REQUEST + 11] = 200;
	assert_int_equal(read_at(&made_up, REQUEST).status, 200);
	made_up.words[REQUEST + 12] = 999;
	assert_int_equal(read_at(&made_up, REQUEST).status, 999);
	made_up.words[REQUEST + 12] = 1000;
	assert_int_equal(read_at(&made_up, REQUEST).status, 0);
}

static void texts_are_bounded(void **state)
{
	struct made_up made_up = worker();
	struct nginx_request request;
	char *text = (char *)&made_up.words[TEXTS];

	(void)state;
	memset(text, 'a', 2 * TEXT_WORDS * WORD);
	for (size_t i = 0; i < 3; i++) {
		static const size_t lengths[] = { NGINX_URI_BYTES - 1, NGINX_URI_BYTES, UINT32_MAX };

		made_up.words[REQUEST + 3] = lengths[i];
		request = read_at(&made_up, REQUEST);
		assert_int_equal(strlen(request.uri), NGINX_URI_BYTES - 1);
	}
	for (size_t length = 0; length < 80; length++) {
		made_up.words[REQUEST + 3] = length;
		made_up.words[REQUEST + 5] = length;
		made_up.words[REQUEST + 6] = at(TEXTS) + length; /* wherever it begins */
		request = read_at(&made_up, REQUEST);
		assert_int_equal(strlen(request.uri), length);
		assert_int_equal(strlen(request.method),
				 length < NGINX_METHOD_BYTES ? length : NGINX_METHOD_BYTES - 1);
	}
	/* Up to the last byte that is mapped; beyond it there is none. */
	made_up.words[REQUEST + 3] = 5;
	made_up.words[REQUEST + 4] = at(WORDS) - 5;
	memcpy((char *)&made_up.words[WORDS] - 5, "/last", 5);
	assert_string_equal(read_at(&made_up, REQUEST).uri, "/last");
	made_up.words[REQUEST + 4]++;
	assert_string_equal(read_at(&made_up, REQUEST).uri, "");
	made_up.words[REQUEST + 4] = 0;
	assert_string_equal(read_at(&made_up, REQUEST).uri, "");
}

static void the_gateways_route_comes_first(void **state)
{
	struct made_up made_up = worker();
	struct nginx_request request = read_at(&made_up, REQUEST);
	char route[ROUTE_BYTES];

	(void)state;
	strcpy(request.uri, "/users/42");
	nginx_request_route(&request, route);
	assert_string_equal(route, "/users/*");
	strcpy(request.matched, "route users");
	nginx_request_route(&request, route);
	assert_string_equal(route, "route users");
}

/*---- The lock of a cached answer ----*/

static void the_event_of_the_cache_tells_that_it_waits(void **state)
{
	enum { CACHE = STATES, EVENT = CACHE + 70 };
	struct made_up made_up = worker();

	(void)state;
	assert_false(nginx_request_waits_for_cache(&made_up.memory, &members, at(REQUEST)));
	made_up.words[REQUEST + 14] = at(CACHE);
	made_up.words[EVENT] = at(REQUEST);
	assert_false(nginx_request_waits_for_cache(&made_up.memory, &members, at(REQUEST)));
	made_up.words[EVENT + 1] = EVENT_TIMER_SET;
	assert_true(nginx_request_waits_for_cache(&made_up.memory, &members, at(REQUEST)));
	assert_false(nginx_request_waits_for_cache(&made_up.memory, &members, at(SUBREQUEST)));
	made_up.words[EVENT + 1] |= EVENT_WRITE;
	assert_false(nginx_request_waits_for_cache(&made_up.memory, &members, at(REQUEST)));
	made_up.words[EVENT] = at(SUBREQUEST);
	made_up.words[EVENT + 1] = EVENT_TIMER_SET;
	assert_false(nginx_request_waits_for_cache(&made_up.memory, &members, at(REQUEST)));
	/* A build without a cache has a function there. */
	made_up.words[REQUEST + 14] = at(CACHE) + 1;
	made_up.words[EVENT] = at(REQUEST);
	assert_false(nginx_request_waits_for_cache(&made_up.memory, &members, at(REQUEST)));
	made_up.words[REQUEST + 14] = at(UNMAPPED);
	assert_false(nginx_request_waits_for_cache(&made_up.memory, &members, at(REQUEST)));
}

/*---- Details ----*/

static struct nginx_details details_of(struct made_up *made_up)
{
	struct nginx_request request = read_at(made_up, REQUEST);
	struct nginx_details details;

	memset(&details, 0xff, sizeof(details));
	nginx_request_details(&made_up->memory, &members, &request, &details);
	return details;
}

static void details_are_of_request_and_connection(void **state)
{
	struct made_up made_up = worker();
	struct nginx_details details;

	(void)state;
	set_text(&made_up, REQUEST + 13, REST, "a=1&b=2");
	set_text(&made_up, CONNECTION + 4, METHOD, "192.0.2.1");
	made_up.words[REQUEST + 15] = 321;
	made_up.words[CONNECTION + 8] = 654;
	details = details_of(&made_up);
	assert_string_equal(details.client, "192.0.2.1");
	assert_string_equal(details.args, "a=1&b=2");
	assert_int_equal(details.received, 321);
	assert_int_equal(details.sent, 654);
	assert_int_equal(details.upstream.state, NGINX_UPSTREAM_NONE);
	assert_string_equal(details.upstream.peer, "");
}

static const uint64_t UNKNOWN_YET = UINT64_MAX;

/* The request has asked so many peers; the last one's status and times are these. */
static void set_upstream(struct made_up *made_up, size_t count, const uint64_t times[4])
{
	uint64_t *last = &made_up->words[FIRST_STATE + (count ? count - 1 : 0) * STATE_WORDS];

	made_up->words[REQUEST + 16] = at(STATES);
	made_up->words[STATES] = at(FIRST_STATE);
	made_up->words[STATES + 1] = count;
	made_up->words[STATES + 2] = STATE_WORDS * WORD;
	made_up->words[STATES + 3] = 4;
	memcpy(last, times, 4 * sizeof(times[0]));
	last[STATE_WORDS - 1] = at(PEER);
	set_text(made_up, PEER, REST, "192.0.2.2:80");
}

static void assert_upstream(struct made_up *made_up, enum nginx_upstream_state state, const char *peer,
			    unsigned int status, uint64_t tries)
{
	struct nginx_upstream upstream = details_of(made_up).upstream;

	assert_int_equal(upstream.state, state);
	assert_string_equal(upstream.peer, peer);
	assert_int_equal(upstream.status, status);
	assert_int_equal(upstream.tries, tries);
}

static void the_times_tell_what_an_upstream_does(void **state)
{
	static const struct {
		uint64_t times[4]; /* status, response, connect, header */
		enum nginx_upstream_state state;
		unsigned int status;
	} known[] = {
		{ { 0, UNKNOWN_YET, UNKNOWN_YET, UNKNOWN_YET }, NGINX_UPSTREAM_CONNECTING, 0 },
		{ { 0, UNKNOWN_YET, 3, UNKNOWN_YET }, NGINX_UPSTREAM_WAITING, 0 },
		{ { 200, UNKNOWN_YET, 3, 4 }, NGINX_UPSTREAM_READING, 200 },
		{ { 999, 9, 3, 4 }, NGINX_UPSTREAM_DONE, 999 },
		{ { 1000, 0, 0, 0 }, NGINX_UPSTREAM_DONE, 0 },
		{ { 0, 0, 0, 0 }, NGINX_UPSTREAM_DONE, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct made_up made_up = worker();

		set_upstream(&made_up, 1 + i % 3, known[i].times);
		assert_upstream(&made_up, known[i].state, "192.0.2.2:80", known[i].status, 1 + i % 3);
	}
}

/* An array without elements, and an element of zeros between two upstreams. */
static void a_name_is_resolved_before_there_is_a_peer(void **state)
{
	static const uint64_t zeros[4];
	struct made_up made_up = worker();

	(void)state;
	set_upstream(&made_up, 0, zeros);
	assert_upstream(&made_up, NGINX_UPSTREAM_RESOLVING, "", 0, 0);
	set_upstream(&made_up, 2, zeros);
	made_up.words[FIRST_STATE + 2 * STATE_WORDS - 1] = 0;
	assert_upstream(&made_up, NGINX_UPSTREAM_RESOLVING, "", 0, 2);
	/* A peer that has no name yet has a time. */
	for (size_t i = 0; i < 4; i++) {
		uint64_t times[4] = { 0 };

		times[i] = 1;
		set_upstream(&made_up, 2, times);
		made_up.words[FIRST_STATE + 2 * STATE_WORDS - 1] = 0;
		assert_upstream(&made_up, NGINX_UPSTREAM_DONE, "", i ? 0 : 1, 2);
	}
}

static void what_is_no_array_of_upstreams_is_left_out(void **state)
{
	static const uint64_t times[4] = { 200, UNKNOWN_YET, 3, 4 };
	static const struct {
		size_t word;
		uint64_t value;
	} wrong[] = {
		{ REQUEST + 16, 0 },
		{ REQUEST + 16, BASE + WORDS * WORD },
		{ STATES, 0 },
		{ STATES, BASE + WORDS * WORD },
		{ STATES + 1, 5 },
		{ STATES + 2, 4 * WORD },
		{ STATES + 2, 256 + WORD },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct made_up made_up = worker();

		set_upstream(&made_up, 1, times);
		made_up.words[wrong[i].word] = wrong[i].value;
		assert_upstream(&made_up, NGINX_UPSTREAM_NONE, "", 0, 0);
	}
	/* The longest and the most that there may be. */
	for (uint64_t count = 64; count <= 65; count++) {
		struct made_up made_up = worker();

		set_upstream(&made_up, 1, times);
		made_up.words[STATES] = at(FIRST_STATE) - 63 * 5 * WORD;
		made_up.words[STATES + 1] = count;
		made_up.words[STATES + 2] = 5 * WORD;
		made_up.words[STATES + 3] = count;
		made_up.words[FIRST_STATE + 4] = at(PEER);
		if (count == 64)
			assert_upstream(&made_up, NGINX_UPSTREAM_READING, "192.0.2.2:80", 200, 64);
		else
			assert_upstream(&made_up, NGINX_UPSTREAM_NONE, "", 0, 0);
	}
}

static void what_is_unknown_of_a_build_is_empty(void **state)
{
	struct request_members few = members;
	struct made_up made_up = worker();
	struct nginx_request request;
	struct nginx_details details;

	(void)state;
	few.status = few.err_status = few.args = few.request_length = few.upstream_states = MEMBER_UNKNOWN;
	few.addr_text = few.number = few.requests = few.sent = MEMBER_UNKNOWN;
	made_up.words[REQUEST + 11] = 200;
	assert_true(nginx_request_read(&made_up.memory, &few, at(REQUEST), &request));
	assert_int_equal(request.status, 0);
	assert_int_equal(request.number, 0);
	assert_int_equal(request.ordinal, 0);
	memset(&details, 0xff, sizeof(details));
	nginx_request_details(&made_up.memory, &few, &request, &details);
	assert_memory_equal(&details, &(struct nginx_details){ 0 }, sizeof(details));
	/* A request that has gone since. */
	for (size_t i = 0; i < 2; i++) {
		struct nginx_request gone = request;

		*(i ? &gone.address : &gone.connection) = at(UNMAPPED);
		memset(&details, 0xff, sizeof(details));
		nginx_request_details(&made_up.memory, &members, &gone, &details);
		assert_memory_equal(&details, &(struct nginx_details){ 0 }, sizeof(details));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_read),
		cmocka_unit_test(a_subrequest_is_its_clients),
		cmocka_unit_test(what_has_ended_is_none),
		cmocka_unit_test(a_time_that_is_none_is_no_clients),
		cmocka_unit_test(the_error_is_the_status),
		cmocka_unit_test(texts_are_bounded),
		cmocka_unit_test(the_gateways_route_comes_first),
		cmocka_unit_test(the_event_of_the_cache_tells_that_it_waits),
		cmocka_unit_test(details_are_of_request_and_connection),
		cmocka_unit_test(the_times_tell_what_an_upstream_does),
		cmocka_unit_test(a_name_is_resolved_before_there_is_a_peer),
		cmocka_unit_test(what_is_no_array_of_upstreams_is_left_out),
		cmocka_unit_test(what_is_unknown_of_a_build_is_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

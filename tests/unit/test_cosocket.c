/* SPDX-License-Identifier: MIT */
/* The sockets that light threads of lua-nginx-module wait for, in made-up memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/made_up_lua.h"
#include "unwind/nginx/cosocket.h"

enum { SIGNATURE = 0x50545448 };

/* Words of the target. */
enum {
	G = 2,
	THREAD = 8,
	REQUEST = 16,
	COCTX = 20,
	CONNECTIONS = 24,
	STRIDE = 8,
	COUNT = 2,
	SOCKADDR = 44,
	SOCKET = 64,           /* it has 72 words */
	MEMBERS = SOCKET + 10, /* pool, two words, request, connection, sockaddr, socklen */
	SOCKET_WORDS = 72,
	POOL = 140,
	POOL_NAME = POOL + 12,
	OLD_POOL_NAME = POOL + 6,
	QUEUED = 180, /* an event, and what it belongs to */
	EVENT_WORDS = 6,
	STACK = 200,
	STRING = 208,
	UNMAPPED = WORDS,
};

static const struct layout *const luajit = &made_up_gc64;

static const struct connections connections = {
	.first = BASE + CONNECTIONS * WORD,
	.stride = STRIDE * WORD,
	.count = COUNT,
	.event_bytes = EVENT_WORDS * WORD,
};

static const struct light_thread light_thread = {
	.thread = BASE + THREAD * WORD,
	.request = BASE + REQUEST * WORD,
	.coctx = BASE + COCTX * WORD,
};

static void set_queue(struct made_up *made_up, size_t word, size_t neighbour)
{
	made_up->words[word] = at(neighbour);
	made_up->words[word + 1] = at(neighbour);
}

/* A pool of 30 connections, 7 in use, whose queues are empty. */
static void set_pool(struct made_up *made_up, const char *name)
{
	made_up->words[POOL] = at(THREAD);
	made_up->words[POOL + 1] = 30;
	set_queue(made_up, POOL + 2, POOL + 2);
	set_queue(made_up, POOL + 4, POOL + 4);
	made_up->words[POOL + 6] = 7;
	set_queue(made_up, POOL + 7, POOL + 7);
	set_queue(made_up, POOL + 9, POOL + 9);
	made_up->words[POOL + 11] = 0;
	strcpy((char *)&made_up->words[POOL_NAME], name);
}

/* As before 0.10.14: lua_vm, a count, two queues, the name. */
static void set_old_pool(struct made_up *made_up, const char *name)
{
	memset(&made_up->words[POOL + 6], 0, 20 * WORD);
	strcpy((char *)&made_up->words[OLD_POOL_NAME], name);
}

/* A light thread that waits for a socket to 192.0.2.1, by connection 1. */
static struct made_up worker(void)
{
	struct made_up made_up = { .memory = { .read_ranges = read_ranges } };
	uint64_t *words = made_up.words;

	put_head(&made_up, THREAD, GCT_THREAD);
	words[THREAD + 2] = at(G);
	words[THREAD + 3] = at(STACK);
	words[STACK + 1] = put_string(&made_up, luajit, STRING, "db.example:5432");
	words[REQUEST] = SIGNATURE;
	words[COCTX] = at(SOCKET);
	words[COCTX + 1] = at(THREAD);
	words[CONNECTIONS + STRIDE] = at(SOCKET);
	words[MEMBERS] = at(POOL);
	words[MEMBERS + 3] = at(REQUEST);
	words[MEMBERS + 4] = at(CONNECTIONS + STRIDE);
	words[MEMBERS + 5] = at(SOCKADDR);
	words[MEMBERS + 6] = 16 | UINT64_C(7) << 32; /* socklen has 32 bits */
	memcpy(&words[SOCKADDR], "sixteen bytes of", 16);
	words[SOCKET + SOCKET_WORDS - 1] = at(COCTX);
	set_pool(&made_up, "192.0.2.1:80");
	return made_up;
}

static struct cosocket read_of(struct made_up *made_up)
{
	struct cosocket cosocket;

	memset(&cosocket, 0xff, sizeof(cosocket));
	cosocket_read(&made_up->memory, luajit, &connections, &light_thread, &cosocket);
	return cosocket;
}

static void an_open_socket_has_its_peers_address(void **state)
{
	struct made_up made_up = worker();
	struct cosocket cosocket = read_of(&made_up);

	(void)state;
	assert_int_equal(cosocket.state, COSOCKET_OPEN);
	assert_int_equal(cosocket.connection, at(CONNECTIONS + STRIDE));
	assert_int_equal(cosocket.address_length, 16);
	assert_memory_equal(cosocket.address, "sixteen bytes of", 16);
	assert_string_equal(cosocket.name, "");
	/* Of an address that is too long, that is not there, or cannot be read, the pool's name remains. */
	for (size_t i = 0; i < 4; i++) {
		static const uint64_t lengths[] = { COSOCKET_ADDRESS_BYTES + 1, 0, 16, 16 };

		made_up = worker();
		made_up.words[MEMBERS + 6] = lengths[i];
		if (i >= 2)
			made_up.words[MEMBERS + 5] = i == 2 ? 0 : at(UNMAPPED);
		cosocket = read_of(&made_up);
		assert_int_equal(cosocket.state, COSOCKET_OPEN);
		assert_int_equal(cosocket.address_length, 0);
		assert_string_equal(cosocket.name, "192.0.2.1:80");
	}
	made_up.words[MEMBERS + 5] = at(SOCKADDR);
	made_up.words[MEMBERS + 6] = COSOCKET_ADDRESS_BYTES;
	assert_int_equal(read_of(&made_up).address_length, COSOCKET_ADDRESS_BYTES);
}

static void the_clients_connection_is_told_apart(void **state)
{
	struct made_up made_up = worker();
	struct cosocket cosocket;

	(void)state;
	made_up.words[CONNECTIONS + STRIDE] = at(REQUEST);
	cosocket = read_of(&made_up);
	assert_int_equal(cosocket.state, COSOCKET_CLIENT);
	assert_int_equal(cosocket.connection, at(CONNECTIONS + STRIDE));
	assert_int_equal(cosocket.address_length, 0);
}

static void a_connection_that_refers_elsewhere_is_none(void **state)
{
	static const uint64_t none[] = { BASE + COCTX * WORD, 0 };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct made_up made_up = worker();

		made_up.words[CONNECTIONS + STRIDE] = none[i];
		assert_int_equal(read_of(&made_up).state, COSOCKET_NONE);
		made_up = worker();
		made_up.words[MEMBERS + 4] += WORD << i;
		assert_int_equal(read_of(&made_up).state, COSOCKET_NONE);
	}
}

static void without_a_connection_the_peer_is_what_was_asked_for(void **state)
{
	struct made_up made_up = worker();
	struct cosocket cosocket;

	(void)state;
	made_up.words[MEMBERS + 4] = 0;
	cosocket = read_of(&made_up);
	assert_int_equal(cosocket.state, COSOCKET_RESOLVING);
	assert_int_equal(cosocket.connection, 0);
	assert_string_equal(cosocket.name, "db.example:5432");
	/* The argument is no string, or no string any more. */
	made_up.words[STRING + 2] = COSOCKET_NAME_BYTES;
	assert_string_equal(read_of(&made_up).name, "");
	made_up.words[STRING + 2] = COSOCKET_NAME_BYTES - 1;
	assert_memory_equal(read_of(&made_up).name, "db.example:5432", 16);
	put_head(&made_up, STRING, GCT_UPVALUE);
	assert_string_equal(read_of(&made_up).name, "");
	put_head(&made_up, STRING, GCT_STRING);
	made_up.words[STACK + 1] = tagged(luajit, TAG_UDATA, at(STRING));
	assert_string_equal(read_of(&made_up).name, "");
	made_up.words[THREAD + 3] = at(UNMAPPED);
	assert_string_equal(read_of(&made_up).name, "");
	assert_int_equal(read_of(&made_up).state, COSOCKET_RESOLVING);
}

static void a_connect_may_wait_for_its_pool(void **state)
{
	struct made_up made_up = worker();

	(void)state;
	made_up.words[COCTX] = at(QUEUED);
	made_up.words[QUEUED] = at(QUEUED);
	made_up.words[QUEUED + EVENT_WORDS + 5] = at(SOCKET);
	assert_int_equal(read_of(&made_up).state, COSOCKET_QUEUED);
	assert_string_equal(read_of(&made_up).name, "db.example:5432");
	made_up.words[QUEUED + EVENT_WORDS + 5] = at(POOL);
	assert_int_equal(read_of(&made_up).state, COSOCKET_NONE);
	made_up.words[QUEUED + EVENT_WORDS + 5] = at(SOCKET);
	made_up.words[QUEUED] = at(QUEUED + 1);
	assert_int_equal(read_of(&made_up).state, COSOCKET_NONE);
}

static void what_the_coroutine_does_not_wait_for_is_none(void **state)
{
	static const struct {
		size_t word;
		uint64_t value;
	} wrong[] = {
		{ COCTX, 0 },
		{ COCTX, BASE + WORDS * WORD },
		{ COCTX, BASE + SOCKET * WORD + 4 },
		{ SOCKET + SOCKET_WORDS - 1, BASE + COCTX * WORD + WORD },
		{ MEMBERS + 3, BASE },
	};
	struct light_thread none = light_thread;
	struct made_up made_up;
	struct cosocket cosocket;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		made_up = worker();
		made_up.words[wrong[i].word] = wrong[i].value;
		assert_int_equal(read_of(&made_up).state, COSOCKET_NONE);
	}
	/* The context has to come after the request, and the socket's members before the end. */
	made_up = worker();
	made_up.words[SOCKET + SOCKET_WORDS - 1] = 0;
	made_up.words[SOCKET + 1] = at(COCTX);
	assert_int_equal(read_of(&made_up).state, COSOCKET_NONE);
	made_up = worker();
	made_up.words[MEMBERS + 3] = 0;
	made_up.words[SOCKET + SOCKET_WORDS - 3] = at(REQUEST);
	assert_int_equal(read_of(&made_up).state, COSOCKET_NONE);
	for (size_t i = 0; i < 2; i++) {
		made_up = worker();
		none = light_thread;
		*(i ? &none.request : &none.coctx) = 0;
		cosocket_read(&made_up.memory, luajit, &connections, &none, &cosocket);
		assert_int_equal(cosocket.state, COSOCKET_NONE);
	}
}

/*---- Pools ----*/

static struct cosocket_pool pool_of(struct made_up *made_up)
{
	struct cosocket_pool pool;

	memset(&pool, 0xff, sizeof(pool));
	assert_true(cosocket_pool_read(&made_up->memory, luajit, at(G), at(POOL), &pool));
	return pool;
}

static void a_pool_has_a_size_and_a_name(void **state)
{
	struct made_up made_up = worker();
	struct cosocket_pool pool = pool_of(&made_up);

	(void)state;
	assert_int_equal(pool.address, at(POOL));
	assert_int_equal(pool.size, 30);
	assert_int_equal(pool.connections, 7);
	assert_string_equal(pool.name, "192.0.2.1:80");
	assert_true(pool.is_peer);
	/* Queues of which something waits. */
	set_queue(&made_up, POOL + 2, QUEUED);
	assert_int_equal(pool_of(&made_up).size, 30);
	made_up.words[POOL + 1] = (uint64_t)INT32_MAX + 1;
	assert_int_equal(pool_of(&made_up).size, 0);
	assert_int_equal(pool_of(&made_up).connections, 0);
	set_old_pool(&made_up, "[::1]:80");
	pool = pool_of(&made_up);
	assert_int_equal(pool.size, 0);
	assert_int_equal(pool.connections, 0);
	assert_string_equal(pool.name, "[::1]:80");
	assert_true(pool.is_peer);
}

static void only_a_host_and_a_port_are_a_peer(void **state)
{
	static const char *const peers[] = { "h:1", "a-b_c.D9:65535", "[2001:db8::1.2]:443" };
	static const char *const others[] = { "",       "h",         ":80",    "h:",      "h:123456",
					      "h:8o",   "h :80",     "a/b:80", "[::1:80", "::1]:80",
					      "[g]:80", "[::1]x:80", "h:80 " };
	struct made_up made_up = worker();

	(void)state;
	for (size_t i = 0; i < sizeof(peers) / sizeof(peers[0]); i++) {
		set_pool(&made_up, peers[i]);
		assert_true(pool_of(&made_up).is_peer);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		set_pool(&made_up, others[i]);
		assert_false(pool_of(&made_up).is_peer);
		assert_string_equal(pool_of(&made_up).name, others[i]);
	}
	/* A name without an end is none. */
	memset(&made_up.words[POOL_NAME], 'x', COSOCKET_NAME_BYTES);
	assert_string_equal(pool_of(&made_up).name, "");
}

static void what_is_of_no_vm_is_no_pool(void **state)
{
	/* lua_vm, and the ends of the first two queues. */
	static const size_t wrong[] = { POOL, POOL + 2, POOL + 3, POOL + 4, POOL + 5 };
	struct cosocket_pool pool;
	struct made_up made_up;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		for (uint64_t value = 0; value < 3; value++) {
			made_up = worker();
			/* Nothing, an odd address, and of a queue only one end at itself. */
			made_up.words[wrong[i]] = value == 2 ? at(QUEUED) : value;
			assert_false(cosocket_pool_read(&made_up.memory, luajit, at(G), at(POOL), &pool));
		}
	}
	made_up = worker();
	assert_false(cosocket_pool_read(&made_up.memory, luajit, at(G + 1), at(POOL), &pool));
	assert_false(cosocket_pool_read(&made_up.memory, luajit, at(G), at(POOL) + 4, &pool));
	assert_false(cosocket_pool_read(&made_up.memory, luajit, at(G), 0, &pool));
	assert_false(cosocket_pool_read(&made_up.memory, luajit, at(G), at(UNMAPPED), &pool));
}

/* Of a connection with this as its data: 'i' idle, 'u' used, '-' none. */
static char pool_use(struct made_up *made_up, uint64_t data)
{
	const struct connection_in_use in_use = { .address = at(CONNECTIONS + STRIDE),
						  .data = data,
						  .fd = 3 };
	struct cosocket_pool pool = { 0 };
	bool is_idle;

	if (!cosocket_pool_of(&made_up->memory, luajit, at(G), &in_use, &pool, &is_idle))
		return '-';
	assert_string_equal(pool.name, "192.0.2.1:80");
	return is_idle ? 'i' : 'u';
}

static void a_pools_connections_are_kept_or_used(void **state)
{
	struct made_up made_up = worker();

	(void)state;
	assert_int_equal(pool_use(&made_up, at(SOCKET)), 'u');
	/* An item: pool, queue, connection. */
	made_up.words[300] = at(POOL);
	made_up.words[303] = at(CONNECTIONS + STRIDE);
	assert_int_equal(pool_use(&made_up, at(300)), 'i');
	made_up.words[303] = at(CONNECTIONS);
	assert_int_equal(pool_use(&made_up, at(300)), '-');
	made_up.words[REQUEST] = SIGNATURE + 1;
	assert_int_equal(pool_use(&made_up, at(SOCKET)), '-');
	made_up.words[REQUEST] = SIGNATURE;
	made_up.words[MEMBERS] = 0;
	assert_int_equal(pool_use(&made_up, at(SOCKET)), '-');
	assert_int_equal(pool_use(&made_up, at(UNMAPPED)), '-');
	assert_int_equal(pool_use(&made_up, at(WORDS - 4)), '-');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_open_socket_has_its_peers_address),
		cmocka_unit_test(the_clients_connection_is_told_apart),
		cmocka_unit_test(a_connection_that_refers_elsewhere_is_none),
		cmocka_unit_test(without_a_connection_the_peer_is_what_was_asked_for),
		cmocka_unit_test(a_connect_may_wait_for_its_pool),
		cmocka_unit_test(what_the_coroutine_does_not_wait_for_is_none),
		cmocka_unit_test(a_pool_has_a_size_and_a_name),
		cmocka_unit_test(only_a_host_and_a_port_are_a_peer),
		cmocka_unit_test(what_is_of_no_vm_is_no_pool),
		cmocka_unit_test(a_pools_connections_are_kept_or_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * What nginx knows of its requests, in memory that may be anything by now: the code that tells where
 * it is, the connections, the requests and their Lua, the timers, the dictionaries and the memory that
 * its processes share.
 *
 *	input = cycle:u16 request:u16 code:u16 memory
 */
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "unwind/nginx/connections.h"
#include "unwind/nginx/cosocket.h"
#include "unwind/nginx/light_threads.h"
#include "unwind/members/member_loads.h"
#include "unwind/nginx/nginx_request.h"
#include "unwind/nginx/route.h"
#include "unwind/nginx/shared_dict.h"
#include "unwind/nginx/stack_requests.h"
#include "unwind/nginx/timers.h"
#include "unwind/nginx/zones.h"

static struct request_members members = {
	.known = true,
	.connection = 8,
	.main = 16,
	.uri = 24,
	.method_name = 40,
	.server = 56,
	.start_sec = 72,
	.start_msec = 80,
	.status = 88,
	.err_status = 96,
	.args = 104,
	.request_length = 120,
	.upstream_states = 128,
	.addr_text = 32,
	.number = 48,
	.requests = 56,
	.sent = 64,
	.request_bytes = 144,
	.connection_bytes = 80,
};

static const struct request_layout layout = {
	.known = true,
	.r_connection = 8,
	.r_ctx = 136,
	.r_main = 16,
	.has_connection = true,
	.ctx_index = 1,
	.ctx_context = 72,
	.context_size = sizeof(uint16_t),
};

enum { ZONE_BYTES = 2048 };

static const struct connections made_up = {
	.first = FUZZ_BASE + 2048,
	.stride = 64,
	.count = 8,
	.read_events = FUZZ_BASE + 1024,
	.write_events = FUZZ_BASE + 1536,
	.event_bytes = 96,
};

static const struct layout luajit = {
	.gc64 = true,
	.L_glref = 24,
	.L_base = 32,
	.L_exdata = 8,
	.L_exdata2 = 16,
	.GChead_gct = 9,
	.GCstr_len = 20,
	.GCstr_size = 24,
};

/* With all that tells whether a coroutine has ended. */
static const struct layout openresty = {
	.gc64 = true,
	.GChead_gct = 9,
	.L_status = 11,
	.L_glref = 16,
	.L_base = 24,
	.L_top = 32,
	.L_maxstack = 40,
	.L_stack = 48,
	.L_cframe = 56,
	.L_stacksize = 64,
	.L_exdata = 72,
	.L_exdata2 = 80,
	.L_size = 88,
};

/* Without exdata: LuaJIT's own. */
static const struct layout other_luajit = {
	.L_size = 64,
	.L_glref = 8,
	.L_env = 36,
	.L_base = 16,
	.L_top = 20,
	.L_stack = 24,
	.L_maxstack = 28,
	.L_cframe = 40,
	.L_status = 48,
	.L_stacksize = 52,
	.L_exdata = LAYOUT_ABSENT,
	.L_exdata2 = LAYOUT_ABSENT,
	.GChead_gct = 5,
	.GCstr_len = 12,
	.GCstr_size = 16,
	.GCtab_size = 32,
	.GCtab_array = 8,
	.GCtab_node = 20,
	.GCtab_asize = 24,
	.GCtab_hmask = 28,
	.Node_size = 24,
	.Node_val = 0,
	.Node_key = 8,
};

static void check_text(const char *text, size_t room)
{
	char route[ROUTE_BYTES];

	fuzz_check(memchr(text, '\0', room), "a text of the request ends");
	route_of(text, route);
	fuzz_check(memchr(route, '\0', sizeof(route)), "a route ends");
}

static void read_pool(struct memory *memory, const struct connection_in_use *connection)
{
	struct cosocket_pool pool;
	bool is_idle;

	if (cosocket_pool_of(memory, &luajit, FUZZ_BASE, connection, &pool, &is_idle))
		fuzz_check(memchr(pool.name, '\0', sizeof(pool.name)), "a pool's name ends");
}

static bool take(void *context, const struct connection_in_use *connection)
{
	struct fuzz_memory *mapped = context;
	struct nginx_request request;
	struct nginx_details details;

	read_pool(&mapped->memory, connection);
	if (!nginx_request_read(&mapped->memory, &members, connection->data, &request))
		return true;
	check_text(request.uri, sizeof(request.uri));
	check_text(request.host, sizeof(request.host));
	check_text(request.method, sizeof(request.method));
	nginx_request_details(&mapped->memory, &members, &request, &details);
	check_text(details.client, sizeof(details.client));
	check_text(details.args, sizeof(details.args));
	check_text(details.upstream.peer, sizeof(details.upstream.peer));
	return true;
}

/* A list of zones, wherever the cycle leads. */
static void find_zones(struct memory *memory, uint64_t cycle)
{
	static struct zones zones;
	uint64_t holders[ZONES_MAX];

	if (!zones_find(memory, cycle, &zones))
		return;
	fuzz_check(zones.count > 0 && zones.count <= ZONES_MAX, "zones have room");
	zones_read_holders(memory, &zones, holders);
	for (size_t i = 0; i < zones.count; i++) {
		check_text(zones.list[i].name, sizeof(zones.list[i].name));
		fuzz_check(zones_of_mutex(&zones, zones.list[i].mutex) != NULL, "a mutex has a zone");
		zones_at(memory, &zones, zones.list[i].begin);
	}
}

static void read_timers(struct memory *memory, uint64_t tree, const struct connections *connections)
{
	uint64_t words[TIMER_WORDS_MAX], offset;
	struct timers timers;

	if (timers_read(memory, tree, TIMERS_ALL, &timers))
		return;
	offset = timers_offset(memory, &timers, connections, &luajit);
	timers_compare_flags(memory, &timers, offset, connections);
	fuzz_check(offset < connections->event_bytes, "a timer is in its event");
	for (size_t i = 0; i < timers.count; i++) {
		fuzz_check(i == 0 || (int64_t)(timers.timers[i].due_ms - timers.timers[i - 1].due_ms) >= 0,
			   "timers are in order");
		timer_event_read(memory, &timers.timers[i], offset, connections, &luajit);
		fuzz_check(timer_event_words(memory, &timers.timers[i], offset, words) <= TIMER_WORDS_MAX,
			   "words have room");
	}
	timers_clear(&timers);
}

static void read_zone(struct memory *memory, uint64_t begin, uint64_t end)
{
	struct shared_dict dict;
	pid_t holder;

	zones_read_holder(memory, begin, &holder);
	if (shared_dict_read(memory, begin, end, UINT64_C(1) << 40, &dict))
		fuzz_check(dict.expired <= dict.keys && dict.keys <= SHARED_DICT_KEYS_MAX,
			   "keys are counted");
}

/* A lua_State and the socket that it waits for, and the time limits of connections. */
static void read_sockets(struct memory *memory, uint64_t thread, const struct connections *connections)
{
	struct request_hints hints = { 0 };
	struct light_thread light_thread;
	struct cosocket cosocket;

	if (!light_thread_read(memory, &layout, &luajit, thread, &hints, &light_thread))
		return;
	cosocket_read(memory, &luajit, connections, &light_thread, &cosocket);
	fuzz_check(cosocket.address_length <= sizeof(cosocket.address), "an address has room");
	fuzz_check(memchr(cosocket.name, '\0', sizeof(cosocket.name)), "a peer's name ends");
	fuzz_check(cosocket.state != COSOCKET_NONE || (cosocket.connection == 0 && cosocket.name[0] == '\0'),
		   "what is no socket has no peer");
	connection_wait(memory, cosocket.connection ? cosocket.connection : thread);
}

/* All that the memory holds may be on a stack. */
static void read_stack(struct memory *memory)
{
	static struct request_places places = { .heaps = { { FUZZ_BASE, FUZZ_BASE + ZONE_BYTES } },
						.heap_count = 1 };
	struct registers frame = { .pc = 0 };
	int kept = 0;
	struct stack_requests requests;
	struct request_words words;
	uint64_t word;

	places.connections = made_up;
	while (!registers_are_kept(kept))
		kept++;
	request_words_begin(&words);
	for (uint64_t at = FUZZ_BASE; at < FUZZ_BASE + ZONE_BYTES; at += sizeof(word))
		if (memory_u64(memory, at, &word))
			request_words_add(&places, &words, word);
	stack_requests_read(memory, &members, &places, &words, &requests);
	if (words.count % 2)
		stack_requests_learn(memory, &members, &places, &requests);
	fuzz_check(words.count <= STACK_REQUEST_WORDS_MAX && requests.word_count <= words.count,
		   "words of a stack have room");
	for (size_t i = 0; i < requests.word_count; i++) {
		fuzz_check(requests.words[i].request < requests.count ||
				   requests.words[i].request == STACK_REQUEST_UNREAD,
			   "a word has a request");
		*registers_locate(&frame, kept) = requests.words[i].word;
		stack_requests_judge(&requests, &frame);
	}
	for (size_t i = 0; i < words.count; i++) {
		*registers_locate(&frame, kept) = words.words[i];
		stack_requests_judge(&requests, &frame);
	}
	stack_requests_end(&requests, words.count % 3);
	fuzz_check(requests.doubt_count <= STACK_REQUEST_WORDS_MAX, "doubts have room");
	stack_requests_settle(memory, &members, &places, &requests);
	fuzz_check(requests.verdict != STACK_REQUEST_FOUND || requests.found < requests.count,
		   "the request that is found is there");
}

static void find_light_threads(struct memory *memory, const struct layout *which, uint64_t request,
			       const struct request_context *context)
{
	struct light_threads threads;

	light_threads_find(memory, &layout, which, request, context, &threads);
	fuzz_check(threads.count <= LIGHT_THREADS_MAX, "light threads have room");
	fuzz_check(threads.more == 0 || threads.count == LIGHT_THREADS_MAX,
		   "all have room before any has none");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = fuzz_input(data, size);
	uint64_t cycle = FUZZ_BASE + fuzz_take(&input, 2), request = FUZZ_BASE + fuzz_take(&input, 2);
	uint64_t code = FUZZ_BASE + fuzz_take(&input, 2);
	struct fuzz_memory mapped = fuzz_memory(&input);
	struct memory_range ranges[REQUEST_RANGES];
	struct connections connections;
	struct request_context context;
	struct request_hints hints = { 0 };
	struct light_thread light_thread;
	struct member_loads loads = { .count = 0 };

	members.cycle = cycle;
	find_zones(&mapped.memory, cycle);
	member_loads_of(&mapped.memory, code, &loads);
	fuzz_check(loads.count <= MEMBER_LOADS_MAX, "loads have room");
	take(&mapped, &(struct connection_in_use){ 0, request, -1 });
	if (connections_find(&mapped.memory, &members, &connections)) {
		connections_walk(&mapped.memory, &connections, take, &mapped);
		read_timers(&mapped.memory, request, &connections);
	}
	read_timers(&mapped.memory, request, &made_up);
	read_sockets(&mapped.memory, request, &made_up);
	read_stack(&mapped.memory);
	read_zone(&mapped.memory, cycle, cycle + ZONE_BYTES);
	if (request_context(&mapped.memory, &layout, request, ranges, &context))
		find_light_threads(&mapped.memory, &openresty, request, &context);
	/* Without exdata, the globals of a coroutine tell. */
	if (light_thread_read(&mapped.memory, &layout, &other_luajit, code, &hints, &light_thread) &&
	    request_context(&mapped.memory, &layout, light_thread.request, ranges, &context))
		find_light_threads(&mapped.memory, &other_luajit, light_thread.request, &context);
	return 0;
}

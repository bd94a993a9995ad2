/* SPDX-License-Identifier: MIT */
/* Which requests a report has of a worker of nginx, and what it tells of their Lua. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "src/nginx/lua_wait.h"
#include "src/nginx/request_survey.h"
#include "src/nginx/worker_load.h"
#include "tests/unit/surveyed_worker.h"
#include "unwind/nginx/cosocket.h"

enum {
	CONNECTION = 0x9000, /* and the next ones */
	REQUEST = 0x7000,    /* of the first connection, and so on */
	MAIN = 0x7800,       /* whose subrequest a connection may serve */
	REQUESTS_MAX = 8,
	COROUTINES_MAX = 20,
	NOW_MS = 5000,
};

static struct {
	struct connection_in_use connections[REQUESTS_MAX];
	size_t count, counted; /* counted for the load */
	size_t rounds;         /* how many times there are all of the connections */
	bool is_short;         /* of memory, when it counts */
	bool is_subrequest[REQUESTS_MAX], has_ended[REQUESTS_MAX];
	uint64_t start_ms[REQUESTS_MAX];
	enum nginx_upstream_state upstream;
	/* The Lua of each request. */
	bool has_lua;
	size_t coroutine_count, more;
	enum coroutine_state states[COROUTINES_MAX];
	enum lua_wait_end ends;
	int unwind_error;
	size_t captures, frame_count;
	size_t pools; /* connections of pools are found in this VM */
} worker;

static struct function functions[REQUEST_FRAMES_MAX + 1];
static struct frame frames[REQUEST_FRAMES_MAX + 1];
static struct request_report *report;

INSTEAD_OF(clock_gettime);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	assert_int_equal(clock, CLOCK_REALTIME);
	*ret_time = (struct timespec){ .tv_sec = NOW_MS / 1000,
				       .tv_nsec = (long)(NOW_MS % 1000) * NS_PER_MS };
	return 0;
}

/*---- Connections ----*/

INSTEAD_OF(connections_walk);
bool __wrap_connections_walk(struct memory *memory, const struct connections *connections,
			     connections_take *take, void *context)
{
	(void)memory, (void)connections;
	for (size_t i = 0; i < worker.count * worker.rounds; i++)
		if (!take(context, &worker.connections[i % worker.count]))
			break;
	return true;
}

INSTEAD_OF(worker_load_begin);
void __wrap_worker_load_begin(struct worker_load *load, const struct connections *connections,
			      const struct request_members *members)
{
	(void)load, (void)connections, (void)members;
	worker.counted = 0;
}

INSTEAD_OF(worker_load_count);
bool __wrap_worker_load_count(struct worker_load *load, struct memory *memory,
			      const struct request_members *members,
			      const struct connection_in_use *connection)
{
	(void)load, (void)memory, (void)members, (void)connection;
	worker.counted++;
	return !worker.is_short;
}

INSTEAD_OF(cosocket_pool_of);
bool __wrap_cosocket_pool_of(struct memory *memory, const struct layout *luajit, uint64_t g,
			     const struct connection_in_use *connection, struct cosocket_pool *ret_pool,
			     bool *ret_is_idle)
{
	(void)memory, (void)luajit, (void)connection;
	if (g != lua_process_global(NULL, worker.pools)->g)
		return false;
	*ret_pool = (struct cosocket_pool){ .address = g, .name = "10.0.0.1:6379", .is_peer = true };
	*ret_is_idle = true;
	return true;
}

INSTEAD_OF(lua_process_wants_details);
bool __wrap_lua_process_wants_details(const struct lua_process *process)
{
	(void)process;
	return false;
}

/*---- Requests ----*/

static struct nginx_request request_at(uint64_t address)
{
	const size_t index = address == MAIN ? 0 : address - REQUEST;

	return (struct nginx_request){ .address = address,
				       .main = worker.is_subrequest[index] ? MAIN : address,
				       .connection = CONNECTION + index,
				       .start_ms = worker.start_ms[index] };
}

static bool is_request(uint64_t address)
{
	return address == MAIN || address - REQUEST < REQUESTS_MAX;
}

INSTEAD_OF(lua_process_read_request);
bool __wrap_lua_process_read_request(struct lua_process *process, uint64_t address,
				     struct nginx_request *ret_request)
{
	(void)process;
	if (is_request(address))
		*ret_request = request_at(address);
	return is_request(address);
}

INSTEAD_OF(nginx_request_read);
bool __wrap_nginx_request_read(struct memory *memory, const struct request_members *members, uint64_t address,
			       struct nginx_request *ret_request)
{
	(void)memory, (void)members;
	assert_true(is_request(address));
	*ret_request = request_at(address);
	return !worker.has_ended[address - REQUEST];
}

INSTEAD_OF(nginx_requests_are_same);
bool __wrap_nginx_requests_are_same(const struct nginx_request *one, const struct nginx_request *other)
{
	assert_int_equal(one->address, other->address);
	/* The second one's memory is another request's by now. */
	return one->address != REQUEST + 1;
}

INSTEAD_OF(nginx_request_details);
void __wrap_nginx_request_details(struct memory *memory, const struct request_members *members,
				  const struct nginx_request *request, struct nginx_details *ret_details)
{
	(void)memory, (void)members;
	*ret_details = (struct nginx_details){ .sent = request->address, .upstream.state = worker.upstream };
}

/*---- Their Lua ----*/

INSTEAD_OF(lua_process_capture_request);
bool __wrap_lua_process_capture_request(struct lua_process *process, uint64_t request, const char **ret_phase,
					size_t *ret_more)
{
	(void)process, (void)request;
	worker.captures++;
	if (!worker.has_lua)
		return false;
	*ret_phase = "content";
	*ret_more = worker.more;
	return true;
}

INSTEAD_OF(lua_process_coroutine_count);
size_t __wrap_lua_process_coroutine_count(const struct lua_process *process)
{
	(void)process;
	return worker.coroutine_count;
}

INSTEAD_OF(lua_process_coroutine_address);
uint64_t __wrap_lua_process_coroutine_address(const struct lua_process *process, size_t index)
{
	(void)process;
	return index + 1;
}

INSTEAD_OF(lua_process_coroutine_state);
enum coroutine_state __wrap_lua_process_coroutine_state(const struct lua_process *process, size_t index)
{
	(void)process;
	assert_in_range(index, 0, REQUEST_COROUTINES_MAX - 1);
	return worker.states[index];
}

INSTEAD_OF(lua_process_unwind_coroutine);
int __wrap_lua_process_unwind_coroutine(struct lua_process *process, size_t index,
					const struct frame **ret_frames, size_t *ret_count)
{
	(void)process, (void)index;
	*ret_frames = frames;
	*ret_count = worker.frame_count;
	return worker.unwind_error;
}

INSTEAD_OF(lua_wait_read);
void __wrap_lua_wait_read(struct lua_process *process, uint64_t thread, struct lua_wait *ret_wait)
{
	(void)process;
	*ret_wait = (struct lua_wait){ .thread = thread };
}

INSTEAD_OF(lua_wait_end);
enum lua_wait_end __wrap_lua_wait_end(const struct lua_wait *wait, const struct frame *of, size_t count)
{
	(void)of, (void)count;
	/* The last one has yielded to another one. */
	return wait->thread == worker.coroutine_count ? LUA_WAIT_ENDS_UNKNOWN : worker.ends;
}

INSTEAD_OF(lua_wait_name);
bool __wrap_lua_wait_name(struct lua_process *process, const struct lua_wait *wait, const struct frame *of,
			  size_t count, char ret_name[static REQUEST_WAIT_BYTES])
{
	(void)process, (void)of, (void)count;
	snprintf(ret_name, REQUEST_WAIT_BYTES, "wait %u", (unsigned int)wait->thread);
	return wait->thread == 1;
}

/*---- A survey ----*/

static int begin(void **state)
{
	(void)state;
	surveyed_begin();
	memset(&worker, 0, sizeof(worker));
	worker.frame_count = 2;
	for (size_t i = 0; i < REQUEST_FRAMES_MAX + 1; i++)
		frames[i] = (struct frame){ .function = &functions[i], .line = (int)i };
	worker.pools = 1;
	worker.rounds = 1;
	report = request_report_new(SURVEYED_PID, "nginx", false);
	return report ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	request_report_free(report);
	return 0;
}

static int take(void)
{
	return request_survey_take(NULL, report);
}

static void add(uint64_t start_ms)
{
	const size_t index = worker.count++;

	worker.start_ms[index] = start_ms;
	worker.connections[index] = (struct connection_in_use){ .address = CONNECTION + index,
								.data = REQUEST + index };
}

static void requests_have_ages_and_the_oldest_is_first(void **state)
{
	(void)state;
	add(4000);
	add(1500);
	add(NOW_MS + 10); /* the clock was set back */
	assert_int_equal(take(), 0);
	assert_int_equal(report->count, 3);
	assert_int_equal(report->rows[0].request.address, REQUEST + 1);
	assert_int_equal(report->rows[0].age_ms, 3500);
	assert_int_equal(report->rows[0].details.sent, REQUEST + 1);
	assert_null(report->rows[0].phase);
	assert_int_equal(report->rows[1].age_ms, 1000);
	assert_int_equal(report->rows[2].age_ms, 0);
	assert_int_equal(worker.counted, 3);
	assert_true(report->asleep);
	surveyed.has_connections = false;
	assert_int_equal(take(), -ENOTSUP);
}

static void only_the_request_of_a_connection_counts(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 4; i++)
		add(1000 + i);
	worker.connections[0].data = 0;           /* it listens */
	worker.connections[1].data = REQUEST + 2; /* it asks an upstream for another one's request */
	worker.connections[3].data = 1;           /* something else, of no pool */
	surveyed.global_count = 1;
	assert_int_equal(take(), 0);
	assert_int_equal(report->count, 1);
	assert_int_equal(report->rows[0].request.address, REQUEST + 2);
	assert_int_equal(report->pool_count, 0);
	assert_int_equal(worker.counted, 4);
}

static void a_subrequest_comes_with_its_main_request(void **state)
{
	(void)state;
	add(1000);
	worker.is_subrequest[0] = true;
	assert_int_equal(take(), 0);
	assert_int_equal(report->count, 2);
	assert_int_equal(report->rows[0].request.address + report->rows[1].request.address, REQUEST + MAIN);
}

static void requests_without_room_are_counted(void **state)
{
	(void)state;
	add(1000);
	add(1001);
	worker.is_subrequest[1] = true;
	worker.rounds = REQUEST_ROWS_MAX / 3;
	assert_int_equal(take(), 0);
	assert_int_equal(report->count, REQUEST_ROWS_MAX - 1);
	assert_int_equal(report->more_requests, 0);
	worker.rounds += 2;
	assert_int_equal(take(), 0);
	assert_int_equal(report->count, REQUEST_ROWS_MAX);
	assert_int_equal(report->more_requests, 5);
	assert_int_equal(report->more_main_requests, 3);
	assert_int_equal(worker.counted, 2 * worker.rounds);
	worker.rounds = 1;
	assert_int_equal(take(), 0);
	assert_int_equal(report->count, 3);
	assert_int_equal(report->more_requests, 0);
}

/* A pool is one of any VM. */
static void connections_of_pools_are_counted(void **state)
{
	(void)state;
	add(0);
	add(0);
	worker.connections[0].data = worker.connections[1].data = 1;
	for (worker.pools = 0; worker.pools < 2; worker.pools++) {
		assert_int_equal(take(), 0);
		assert_int_equal(report->count, 0);
		assert_int_equal(report->pool_count, 1);
		assert_int_equal(report->pools[0].idle, 2);
		assert_int_equal(report->pools[0].used, 0);
	}
}

static void a_worker_that_never_sleeps_has_the_requests_of_before_and_after(void **state)
{
	(void)state;
	add(1000);
	add(1001);
	add(1002);
	add(1003);
	worker.has_lua = true;
	worker.coroutine_count = 1;
	worker.has_ended[2] = true;
	surveyed.runs = true;
	assert_int_equal(take(), 0);
	assert_false(report->asleep);
	assert_int_equal(report->count, 2);
	assert_int_equal(report->rows[0].request.address, REQUEST);
	assert_int_equal(report->rows[1].request.address, REQUEST + 3);
	/* One that sleeps has them all. */
	surveyed.runs = false;
	assert_int_equal(take(), 0);
	assert_int_equal(report->count, 4);
}

static void lua_has_a_stack_and_what_it_waits_for(void **state)
{
	const struct request_coroutine *coroutines;

	(void)state;
	add(1000);
	worker.has_lua = true;
	worker.coroutine_count = 4;
	worker.more = 3;
	worker.states[0] = worker.states[3] = COROUTINE_SUSPENDED;
	worker.states[1] = COROUTINE_DEAD;
	worker.states[2] = COROUTINE_NOT_STARTED;
	assert_int_equal(take(), 0);
	assert_string_equal(report->rows[0].phase, "content");
	assert_int_equal(report->rows[0].coroutine_count, 3);
	assert_int_equal(report->rows[0].more_coroutines, 3);
	coroutines = report->rows[0].coroutines;
	assert_int_equal(coroutines[0].state, COROUTINE_SUSPENDED);
	assert_string_equal(coroutines[0].wait, "wait 1");
	assert_true(coroutines[0].wait_tells_more);
	assert_int_equal(coroutines[0].frame_count, 2);
	assert_memory_equal(coroutines[0].frames, frames, 2 * sizeof(frames[0]));
	assert_int_equal(coroutines[1].state, COROUTINE_NOT_STARTED);
	assert_string_equal(coroutines[1].wait, "");
	assert_int_equal(coroutines[1].frame_count, 2);
	assert_string_equal(coroutines[2].wait, "wait 4");
	assert_false(coroutines[2].wait_tells_more);
	worker.unwind_error = -ENOMEM;
	assert_int_equal(take(), -ENOMEM);
}

static void much_lua_is_cut(void **state)
{
	(void)state;
	add(1000);
	worker.has_lua = true;
	worker.coroutine_count = REQUEST_COROUTINES_MAX;
	worker.frame_count = REQUEST_FRAMES_MAX;
	for (size_t i = 0; i < COROUTINES_MAX; i++)
		worker.states[i] = COROUTINE_SUSPENDED;
	for (size_t more = 0; more < 2; more++) {
		assert_int_equal(take(), 0);
		assert_int_equal(report->rows[0].coroutine_count, REQUEST_COROUTINES_MAX);
		assert_int_equal(report->rows[0].more_coroutines, more);
		assert_int_equal(report->rows[0].coroutines[0].frame_count, REQUEST_FRAMES_MAX);
		worker.coroutine_count++;
		worker.frame_count++;
	}
}

/* A coroutine that runs has no stack here: the sampler's is right, and this one may be torn. */
static void a_coroutine_that_runs_has_no_stack(void **state)
{
	(void)state;
	add(1000);
	worker.has_lua = true;
	worker.coroutine_count = 1;
	worker.states[0] = COROUTINE_RUNNING;
	assert_int_equal(take(), 0);
	assert_int_equal(report->rows[0].coroutine_count, 1);
	assert_int_equal(report->rows[0].coroutines[0].frame_count, 0);
	assert_string_equal(report->rows[0].coroutines[0].wait, "");
}

static void lua_is_left_alone_where_nobody_wants_it(void **state)
{
	(void)state;
	add(1000);
	worker.has_lua = true;
	report->without_lua = true;
	assert_int_equal(take(), 0);
	assert_int_equal(report->count, 1);
	assert_int_equal(worker.captures, 0);
}

/* The name of an upstream is resolved, or could not be, and Lua answers now. */
static void lua_that_waits_has_no_upstream(void **state)
{
	static const struct {
		enum lua_wait_end ends;
		enum nginx_upstream_state before, after;
	} cases[] = {
		{ LUA_WAIT_ENDS_OUTSIDE, NGINX_UPSTREAM_RESOLVING, NGINX_UPSTREAM_NONE },
		{ LUA_WAIT_ENDS_INSIDE, NGINX_UPSTREAM_RESOLVING, NGINX_UPSTREAM_RESOLVING },
		{ LUA_WAIT_ENDS_OUTSIDE, NGINX_UPSTREAM_WAITING, NGINX_UPSTREAM_WAITING },
	};

	(void)state;
	add(1000);
	worker.has_lua = true;
	worker.coroutine_count = 2;
	worker.states[0] = worker.states[1] = COROUTINE_SUSPENDED;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		worker.ends = cases[i].ends;
		worker.upstream = cases[i].before;
		assert_int_equal(take(), 0);
		assert_int_equal(report->rows[0].details.upstream.state, cases[i].after);
	}
}

static void short_memory_is_told(void **state)
{
	(void)state;
	add(1000);
	add(1001);
	worker.is_short = true;
	assert_int_equal(take(), -ENOMEM);
	assert_int_equal(worker.counted, 1);
	assert_int_equal(report->count, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(requests_have_ages_and_the_oldest_is_first),
		TEST(only_the_request_of_a_connection_counts),
		TEST(a_subrequest_comes_with_its_main_request),
		TEST(requests_without_room_are_counted),
		TEST(connections_of_pools_are_counted),
		TEST(a_worker_that_never_sleeps_has_the_requests_of_before_and_after),
		TEST(lua_has_a_stack_and_what_it_waits_for),
		TEST(much_lua_is_cut),
		TEST(a_coroutine_that_runs_has_no_stack),
		TEST(lua_is_left_alone_where_nobody_wants_it),
		TEST(lua_that_waits_has_no_upstream),
		TEST(short_memory_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

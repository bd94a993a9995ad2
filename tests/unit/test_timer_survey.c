/* SPDX-License-Identifier: MIT */
/* What a report tells of each timer of a worker of nginx. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "src/linux/proc/maps.h"
#include "src/nginx/timer_survey.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/surveyed_worker.h"
#include "unwind/nginx/timers.h"

enum {
	EVENTS_MAX = 4,
	LOOP_MS = 1,          /* word of ngx_current_msec */
	NOTE = 16,            /* of what ngx.timer notes, and the next one */
	CONNECTION = 64,      /* of a connection, whose data is REQUEST */
	REQUEST = 0x7000,     /* which that connection serves */
	ASKING = 0x7100,      /* one that is of another connection */
	NEW = 0x8000,         /* a coroutine that has not started, in the second VM */
	SUSPENDED = 0x8100,   /* one that waits, in the first VM */
	CODE = 0x400000,      /* of a module */
	TURN_BEGAN_MS = 2000, /* by the clock of ljspy */
	NOW_MS = 2250,
};

/* A worker with these timers, the first one due in a second. */
static struct {
	bool is_apart;
	uint64_t turn_ns;
	size_t count;
	struct timer_event events[EVENTS_MAX];
	struct timer timers[EVENTS_MAX];
	bool is_cut;
	int read_error, unwind_error;
	size_t readings, changes; /* how often its timers are read; how many of these fail */
	uint64_t captured;        /* the coroutine captured last; 0: none */
	size_t tries;
	size_t frame_count;
} worker;

static struct function functions[TIMER_FRAMES_MAX + 1];
static struct frame frames[TIMER_FRAMES_MAX + 1];
static struct timer_report *report;

INSTEAD_OF(clock_gettime);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	assert_int_equal(clock, CLOCK_MONOTONIC);
	*ret_time = (struct timespec){ .tv_sec = NOW_MS / 1000,
				       .tv_nsec = (long)(NOW_MS % 1000) * NS_PER_MS };
	return 0;
}

INSTEAD_OF(timers_read);
int __wrap_timers_read(struct memory *memory, uint64_t address, uint64_t until_ms, struct timers *ret_timers)
{
	assert_ptr_equal(memory, &surveyed.memory.memory);
	assert_int_equal(address, surveyed.members.timers);
	assert_int_equal(until_ms, TIMERS_ALL);
	/* What was read before is freed. */
	assert_null(ret_timers->timers);
	worker.readings++;
	if (worker.read_error && worker.changes) {
		worker.changes--;
		return worker.read_error;
	}
	*ret_timers = (struct timers){ .timers = calloc(worker.count + 1, sizeof(struct timer)),
				       .count = worker.count,
				       .is_cut = worker.is_cut };
	memcpy(ret_timers->timers, worker.timers, worker.count * sizeof(struct timer));
	return 0;
}

INSTEAD_OF(timers_offset);
uint64_t __wrap_timers_offset(struct memory *memory, const struct timers *timers,
			      const struct connections *connections, const struct layout *luajit)
{
	(void)memory, (void)connections, (void)luajit;
	assert_int_equal(timers->count, worker.count);
	return 3 * WORD;
}

INSTEAD_OF(timer_event_read);
struct timer_event __wrap_timer_event_read(struct memory *memory, const struct timer *timer, uint64_t offset,
					   const struct connections *connections, const struct layout *luajit)
{
	(void)memory, (void)connections, (void)luajit;
	assert_int_equal(offset, 3 * WORD);
	return worker.events[timer->node];
}

/* The event's data may lie in a module, too; it is no handler. */
INSTEAD_OF(timer_event_words);
size_t __wrap_timer_event_words(struct memory *memory, const struct timer *timer, uint64_t offset,
				uint64_t ret_words[TIMER_WORDS_MAX])
{
	const uint64_t words[] = { CODE + 0x5000, 0, CODE + 0x3000, CODE + 0x2000, CODE + 0x1000, CODE };

	(void)memory, (void)timer, (void)offset;
	memcpy(ret_words, words, sizeof(words));
	return sizeof(words) / sizeof(words[0]);
}

INSTEAD_OF(maps_find);
const struct mapping *__wrap_maps_find(const struct maps *maps, uint64_t address)
{
	static const struct mapping mappings[] = {
		{ .path = "/usr/lib/nginx", .inode = 1, .access = MAPPING_EXECUTE },
		{ .path = "/usr/lib/modules/ngx_last.so", .inode = 2, .access = MAPPING_EXECUTE },
		{ .path = "[vdso]", .access = MAPPING_EXECUTE },
		{ .path = "/usr/lib/data.so", .inode = 3, .access = MAPPING_READ },
		{ .path = "" },
		{ .path = "/usr/lib/first.so", .inode = 4, .access = MAPPING_EXECUTE },
	};

	(void)maps;
	return address < CODE ? NULL : &mappings[(address - CODE) / 0x1000];
}

/*---- Its Lua ----*/

INSTEAD_OF(lua_process_capture_coroutines);
void __wrap_lua_process_capture_coroutines(struct lua_process *process, size_t global,
					   const uint64_t *addresses, size_t count)
{
	(void)process;
	assert_int_equal(count, 1);
	worker.tries++;
	worker.captured = (addresses[0] == NEW && global == 1) || (addresses[0] == SUSPENDED && global == 0)
				  ? addresses[0]
				  : 0;
}

INSTEAD_OF(lua_process_coroutine_count);
size_t __wrap_lua_process_coroutine_count(const struct lua_process *process)
{
	(void)process;
	return worker.captured != 0;
}

INSTEAD_OF(lua_process_coroutine_state);
enum coroutine_state __wrap_lua_process_coroutine_state(const struct lua_process *process, size_t index)
{
	(void)process;
	assert_int_equal(index, 0);
	assert_int_not_equal(worker.captured, 0);
	return worker.captured == NEW ? COROUTINE_NOT_STARTED : COROUTINE_SUSPENDED;
}

INSTEAD_OF(lua_process_unwind_coroutine);
int __wrap_lua_process_unwind_coroutine(struct lua_process *process, size_t index,
					const struct frame **ret_frames, size_t *ret_count)
{
	(void)process;
	assert_int_equal(index, 0);
	if (worker.unwind_error)
		return worker.unwind_error;
	*ret_frames = frames;
	*ret_count = worker.frame_count;
	return 0;
}

INSTEAD_OF(lua_process_light_thread);
bool __wrap_lua_process_light_thread(struct lua_process *process, uint64_t thread,
				     struct light_thread *ret_light_thread)
{
	(void)process;
	*ret_light_thread = (struct light_thread){ .thread = thread, .request = REQUEST };
	return thread == SUSPENDED;
}

/*---- Its requests ----*/

INSTEAD_OF(lua_process_read_request);
bool __wrap_lua_process_read_request(struct lua_process *process, uint64_t address,
				     struct nginx_request *ret_request)
{
	(void)process;
	if (address != REQUEST && address != ASKING)
		return false;
	*ret_request = (struct nginx_request){ .address = address, .method = "GET", .host = "a.test" };
	ret_request->connection = address == REQUEST ? at(CONNECTION) : at(1);
	strcpy(ret_request->uri, address == REQUEST ? "/here" : "/there");
	return true;
}

INSTEAD_OF(nginx_request_details);
void __wrap_nginx_request_details(struct memory *memory, const struct request_members *members,
				  const struct nginx_request *request, struct nginx_details *ret_details)
{
	(void)memory, (void)members;
	assert_int_equal(request->address, ASKING);
	*ret_details = (struct nginx_details){ .upstream.peer = "10.0.0.1:80" };
}

INSTEAD_OF(lua_process_loop_clock);
uint64_t __wrap_lua_process_loop_clock(struct lua_process *process)
{
	(void)process;
	return worker.turn_ns;
}

INSTEAD_OF(lua_process_loop_clock_is_apart);
bool __wrap_lua_process_loop_clock_is_apart(const struct lua_process *process)
{
	(void)process;
	return worker.is_apart;
}

/*---- A survey ----*/

static int begin(void **state)
{
	(void)state;
	memset(&worker, 0, sizeof(worker));
	surveyed_begin();
	surveyed.members.timers = at(8);
	surveyed.members.loop_ms = at(LOOP_MS);
	worker.turn_ns = (uint64_t)TURN_BEGAN_MS * NS_PER_MS;
	worker.frame_count = 2;
	surveyed.memory.words[LOOP_MS] = 50000;
	surveyed.memory.words[CONNECTION] = REQUEST;
	for (size_t i = 0; i < TIMER_FRAMES_MAX + 1; i++)
		frames[i] = (struct frame){ .function = &functions[i], .line = (int)i };
	report = timer_report_new(SURVEYED_PID, "nginx");
	return report ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	timer_report_free(report);
	return 0;
}

static int take(void)
{
	return timer_survey_take(NULL, report);
}

/* Due so long from now, while nginx's own clock stands still. */
static void add(enum timer_kind kind, uint64_t subject, int64_t from_now_ms)
{
	const uint64_t now_ms = surveyed.memory.words[LOOP_MS] + NOW_MS - TURN_BEGAN_MS;

	worker.events[worker.count] = (struct timer_event){ kind, subject };
	worker.timers[worker.count] = (struct timer){ .node = worker.count,
						      .due_ms = now_ms + (uint64_t)from_now_ms };
	worker.count++;
}

static const struct timer_row *only_row(void)
{
	assert_int_equal(take(), 0);
	assert_int_equal(report->row_count, 1);
	return &report->rows[0];
}

static void due_times_are_from_now(void **state)
{
	(void)state;
	add(TIMER_UNKNOWN, 0, -30);
	add(TIMER_UNKNOWN, 0, 1000);
	assert_int_equal(only_row()->first_ms, -30);
	assert_int_equal(report->rows[0].last_ms, 1000);
	assert_int_equal(report->rows[0].kind, TIMER_ROW_UNKNOWN);
	/* Those of the last reading only. */
	assert_int_equal(worker.readings, 2);
	assert_int_equal(report->rows[0].count, 2);
	assert_int_equal(report->count, 2);
	assert_true(report->asleep);
	assert_false(report->is_torn || report->is_cut);
	worker.is_cut = true;
	assert_int_equal(take(), 0);
	assert_true(report->is_cut);
}

static void timers_that_change_are_read_again(void **state)
{
	(void)state;
	add(TIMER_UNKNOWN, 0, 1000);
	worker.read_error = -EAGAIN;
	worker.changes = 1;
	assert_int_equal(only_row()->count, 1);
	assert_false(report->is_torn);
	/* They always do. */
	worker.changes = 10;
	assert_int_equal(take(), 0);
	assert_true(report->is_torn);
	assert_int_equal(report->row_count, 0);
	worker.read_error = -ENOMEM;
	assert_int_equal(take(), -ENOMEM);
	assert_false(report->is_torn);
}

static void a_timer_of_lua_has_its_handler(void **state)
{
	(void)state;
	/* The note has the request's coroutine before it, which runs. */
	surveyed.memory.words[NOTE] = SUSPENDED;
	surveyed.memory.words[NOTE + 1] = NEW + 1;
	surveyed.memory.words[NOTE + 15] = NEW;
	worker.frame_count = TIMER_FRAMES_MAX + 1;
	add(TIMER_LUA, at(NOTE), 5);
	assert_int_equal(only_row()->kind, TIMER_ROW_LUA);
	assert_int_equal(report->rows[0].frame_count, TIMER_FRAMES_MAX);
	assert_memory_equal(report->rows[0].frames, frames, TIMER_FRAMES_MAX * sizeof(frames[0]));
	/* Both VMs are asked for each word that may be a coroutine, until it is known which word it is. */
	assert_int_equal(worker.tries, 6);
}

static void a_word_that_was_the_coroutine_once_is_it_always(void **state)
{
	(void)state;
	surveyed.memory.words[NOTE + 3] = NEW;
	/* Where it is at another word, it is a coroutine that something else refers to. */
	surveyed.memory.words[NOTE + 32 + 2] = NEW;
	add(TIMER_LUA, at(NOTE), 5);
	add(TIMER_LUA, at(NOTE + 32), 5);
	assert_int_equal(take(), 0);
	assert_int_equal(report->row_count, 2);
	assert_int_equal(report->rows[0].frame_count, 2);
	assert_int_equal(report->rows[1].frame_count, 0);
	/* A note that cannot be read, and one at the end of what can be. */
	worker.count = 0;
	surveyed.memory.words[WORDS - 4] = surveyed.memory.words[WORDS - 1] = NEW;
	add(TIMER_LUA, at(NOTE), 5);
	add(TIMER_LUA, at(WORDS - 4), 5);
	add(TIMER_LUA, at(WORDS - 3), 5);
	assert_int_equal(take(), 0);
	assert_int_equal(report->row_count, 2);
	assert_int_equal(report->rows[0].count, 2);
	assert_int_equal(report->rows[1].count, 1);
}

static void a_coroutine_that_waits_has_its_stack_and_its_route(void **state)
{
	(void)state;
	add(TIMER_COROUTINE, SUSPENDED, 5);
	assert_int_equal(only_row()->kind, TIMER_ROW_COROUTINE);
	assert_int_equal(report->rows[0].frame_count, 2);
	assert_non_null(strstr(report->rows[0].route, "/here"));
	worker.unwind_error = -ENOMEM;
	assert_int_equal(take(), -ENOMEM);
	/* One that does not wait tells nothing. */
	worker.events[0].subject = NEW;
	assert_int_equal(only_row()->frame_count, 0);
	assert_string_equal(report->rows[0].route, "");
}

static void a_connection_is_that_of_a_client_or_an_upstream(void **state)
{
	(void)state;
	add(TIMER_CONNECTION, at(CONNECTION), 5);
	assert_int_equal(only_row()->kind, TIMER_ROW_CLIENT);
	assert_non_null(strstr(report->rows[0].route, "/here"));
	assert_string_equal(report->rows[0].peer, "");
	surveyed.memory.words[CONNECTION] = ASKING;
	assert_int_equal(only_row()->kind, TIMER_ROW_UPSTREAM);
	assert_non_null(strstr(report->rows[0].route, "/there"));
	assert_string_equal(report->rows[0].peer, "10.0.0.1:80");
	surveyed.memory.words[CONNECTION] = 0;
	assert_int_equal(only_row()->kind, TIMER_ROW_CONNECTION);
	assert_string_equal(report->rows[0].route, "");
	worker.events[0].subject = at(WORDS);
	assert_int_equal(only_row()->kind, TIMER_ROW_CONNECTION);
}

static void another_timer_has_the_file_of_its_handler(void **state)
{
	(void)state;
	add(TIMER_OTHER, 0, 5);
	assert_int_equal(only_row()->kind, TIMER_ROW_OTHER);
	assert_string_equal(report->rows[0].module, "ngx_last.so");
}

static void a_process_without_timers_has_none(void **state)
{
	(void)state;
	surveyed.members.known = false;
	assert_int_equal(take(), -ENOTSUP);
	surveyed.members.known = true;
	surveyed.members.timers = 0;
	assert_int_equal(take(), -ENOTSUP);
	surveyed.members.timers = at(8);
	surveyed.members.loop_ms = 0;
	assert_int_equal(take(), -ENOTSUP);
	surveyed.members.loop_ms = at(LOOP_MS);
	surveyed.has_connections = false;
	assert_int_equal(take(), -ENOTSUP);
	assert_int_equal(worker.readings, 0);
}

static void a_clock_that_cannot_be_compared_is_told(void **state)
{
	(void)state;
	worker.turn_ns = 0;
	assert_int_equal(take(), -ENOTSUP);
	worker.is_apart = true;
	assert_int_equal(take(), -EXDEV);
	worker.is_apart = false;
	worker.turn_ns = NS_PER_MS;
	surveyed.members.loop_ms = at(WORDS);
	assert_int_equal(take(), -ENOTSUP);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(due_times_are_from_now),
		TEST(timers_that_change_are_read_again),
		TEST(a_timer_of_lua_has_its_handler),
		TEST(a_word_that_was_the_coroutine_once_is_it_always),
		TEST(a_coroutine_that_waits_has_its_stack_and_its_route),
		TEST(a_connection_is_that_of_a_client_or_an_upstream),
		TEST(another_timer_has_the_file_of_its_handler),
		TEST(a_process_without_timers_has_none),
		TEST(a_clock_that_cannot_be_compared_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Samples of nginx's requests: of which time of which request, and what if some of them cannot be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "src/nginx/request_waits.h"
#include "tests/unit/instead_of.h"
#include "tests/unit/made_up_hold.h"

enum {
	MS = 1000 * 1000,
	REQUESTS_MAX = 100,
	WAITS_MAX = 3, /* of a request */
	CONNECTION = 7,
	ZONE_AT = 0x7000, /* where the worker sleeps for a lock */
};

/* The worker: its requests, and what can be told of them. */
static struct {
	bool is_nginx, is_cut;
	size_t count;          /* requests; the ordinal of the first one is 1, and so on */
	size_t waits;          /* of each */
	bool is_due;           /* each wait */
	size_t copied_at_once; /* the coroutines of more do not fit */
	int error;             /* of the names */
	uint64_t running;      /* the ordinal of the request that has the thread; 0: none */
	bool is_unwound;       /* the thread's stack */
	bool sleeps_at_zone;   /* the thread, for the lock of a shared dictionary */
	bool has_no_room_for_names;
	bool is_other_thread; /* the first one in the list is not the process's first */
	size_t coroutines;    /* of each request, one after the other */
	size_t at_work;       /* this one is in that state */
	enum coroutine_state work;
	struct thread_call call;
	enum thread_state state;
} worker;

static struct {
	int still, stills; /* begin less end; begins */
	unsigned int captures, notes, zones, unknown;
	uint64_t captured_at;           /* hints.sleeps_at of the stack */
	struct registers registers;     /* of the stack */
	size_t lua_first[8], lua_count; /* of which requests Lua was copied */
} seen;

static const struct function works = { .kind = FRAME_LUA, .name = "works", .file = "@a.lua" };
static const struct function waits_in = { .kind = FRAME_LUA, .name = "waits", .file = "@a.lua" };
static struct frame stack[REQUEST_WAIT_FRAMES_MAX + 10];
static struct thread first_thread;

INSTEAD_OF(lua_process_begin_still);
void __wrap_lua_process_begin_still(struct lua_process *process, enum still still)
{
	(void)process;
	assert_int_equal(seen.still++, 0);
	/* The list is that of the look before, mostly; Lua is that of other requests each time. */
	assert_int_equal(still, held.holds < 2 ? STILL_SAME : STILL_OTHER);
	seen.stills++;
}

INSTEAD_OF(lua_process_end_still);
void __wrap_lua_process_end_still(struct lua_process *process)
{
	(void)process;
	assert_int_equal(seen.still--, 1);
}

INSTEAD_OF(lua_process_capture);
void __wrap_lua_process_capture(struct lua_process *process, const struct registers *registers,
				struct capture_hints *hints)
{
	(void)process;
	assert_int_equal(hints->tid, HELD_PID);
	seen.captures++;
	seen.captured_at = hints->sleeps_at;
	seen.registers = *registers;
}

INSTEAD_OF(lua_process_unwind);
int __wrap_lua_process_unwind(struct lua_process *process, const struct frame **ret_frames, size_t *ret_count,
			      enum vm_state *ret_state)
{
	(void)process;
	*ret_frames = stack;
	*ret_count = sizeof(stack) / sizeof(stack[0]);
	*ret_state = VM_STATE_INTERPRETED;
	return worker.is_unwound ? 0 : -1;
}

INSTEAD_OF(lua_process_request);
struct sample_request __wrap_lua_process_request(struct lua_process *process, uint64_t time_ns)
{
	(void)process;
	(void)time_ns;
	return worker.running ? (struct sample_request){ .route = "/runs",
							 .connection = CONNECTION,
							 .number = worker.running }
			      : (struct sample_request){ 0 };
}

INSTEAD_OF(lua_process_phase);
const char *__wrap_lua_process_phase(const struct lua_process *process)
{
	(void)process;
	return "content";
}

INSTEAD_OF(lua_process_find_zones);
void __wrap_lua_process_find_zones(struct lua_process *process)
{
	(void)process;
	seen.zones++;
}

INSTEAD_OF(lua_process_sleeps_at_zone);
bool __wrap_lua_process_sleeps_at_zone(const struct lua_process *process, uint64_t sleeps_at)
{
	(void)process;
	return worker.sleeps_at_zone && sleeps_at == ZONE_AT;
}

INSTEAD_OF(functions_intern);
const struct function *__wrap_functions_intern(struct functions *functions, const struct function *function)
{
	return worker.has_no_room_for_names ? NULL : __real_functions_intern(functions, function);
}

INSTEAD_OF(lua_process_find_zone_lock);
bool __wrap_lua_process_find_zone_lock(struct lua_process *process, uint64_t sleeps_at,
				       char ret_name[static ZONE_NAME_BYTES])
{
	(void)process;
	snprintf(ret_name, ZONE_NAME_BYTES, "dogs");
	return sleeps_at == ZONE_AT;
}

INSTEAD_OF(threads_count);
size_t __wrap_threads_count(const struct threads *threads)
{
	(void)threads;
	return 1;
}

INSTEAD_OF(threads_at);
struct thread *__wrap_threads_at(const struct threads *threads, size_t index)
{
	(void)threads;
	(void)index;
	first_thread.tid = HELD_PID + worker.is_other_thread;
	return &first_thread;
}

INSTEAD_OF(thread_read_state);
int __wrap_thread_read_state(struct threads *threads, struct thread *thread, enum thread_state *ret_state,
			     struct thread_call *ret_call)
{
	(void)threads;
	(void)thread;
	*ret_state = worker.state;
	*ret_call = worker.call;
	return 0;
}

INSTEAD_OF(request_waits_read);
bool __wrap_request_waits_read(struct lua_process *process, struct request_waits *waits)
{
	(void)process;
	assert_int_equal(seen.still, 1);
	free(waits->requests);
	waits->requests = calloc(REQUESTS_MAX, sizeof(*waits->requests));
	waits->count = worker.count;
	waits->is_cut = worker.is_cut;
	for (size_t i = 0; i < worker.count; i++) {
		waits->requests[i].request.number = CONNECTION;
		waits->requests[i].request.ordinal = i + 1;
	}
	return worker.is_nginx;
}

INSTEAD_OF(request_waits_note_due);
void __wrap_request_waits_note_due(struct lua_process *process, struct request_waits *waits)
{
	(void)process;
	(void)waits;
	assert_int_equal(seen.still, 1);
	seen.notes++;
}

INSTEAD_OF(request_waits_capture);
size_t __wrap_request_waits_capture(struct lua_process *process, const struct request_waits *waits,
				    size_t first, size_t count, struct lua_waits *ret_waits)
{
	(void)process;
	assert_int_equal(seen.still, 1);
	assert_in_range(count, 0, REQUEST_WAITS_AT_ONCE);
	assert_in_range(first + count, 0, waits->count);
	seen.lua_first[seen.lua_count++] = first;
	memset(ret_waits, 0, sizeof(*ret_waits));
	for (size_t i = 0; i < count; i++) {
		ret_waits->phase[i] = first + i ? "access" : "rewrite";
		ret_waits->is_there[i] = true;
		ret_waits->first[i] = i * worker.coroutines;
		ret_waits->count[i] = worker.coroutines;
	}
	return count < worker.copied_at_once ? count : worker.copied_at_once;
}

INSTEAD_OF(request_waits_know_nothing);
void __wrap_request_waits_know_nothing(size_t count, struct lua_waits *ret_waits)
{
	memset(ret_waits, 0, sizeof(*ret_waits));
	seen.unknown += (unsigned int)count;
}

INSTEAD_OF(request_waits_of);
int __wrap_request_waits_of(struct lua_process *process, const struct waiting_request *waiting,
			    const struct lua_waits *lua, size_t index,
			    struct request_wait ret_waits[static LIGHT_THREADS_MAX], size_t *ret_count)
{
	(void)process;
	(void)lua;
	assert_int_equal(index, (waiting->request.ordinal - 1) % worker.copied_at_once);
	for (size_t i = 0; i < worker.waits; i++) {
		ret_waits[i] = (struct request_wait){ .frames = { { .function = &waits_in },
								  { .function = &waits_in } },
						      .frame_count = i,
						      .is_due = worker.is_due };
		snprintf(ret_waits[i].name, sizeof(ret_waits[i].name), "sleep %d", (int)i);
	}
	*ret_count = worker.waits;
	return worker.error;
}

INSTEAD_OF(lua_process_coroutine_state);
enum coroutine_state __wrap_lua_process_coroutine_state(const struct lua_process *process, size_t index)
{
	(void)process;
	return index == worker.at_work ? worker.work : COROUTINE_SUSPENDED;
}

INSTEAD_OF(request_waits_label);
struct sample_request __wrap_request_waits_label(const struct waiting_request *waiting, uint64_t now_ns,
						 char route[static ROUTE_BYTES])
{
	assert_int_equal(now_ns, held_day_ns);
	snprintf(route, ROUTE_BYTES, "/%d", (int)waiting->request.ordinal);
	return (struct sample_request){ .route = route, .number = waiting->request.ordinal };
}

/*---- Tests ----*/

static int begin(void **state)
{
	(void)state;
	held_begin();
	memset(&worker, 0, sizeof(worker));
	memset(&seen, 0, sizeof(seen));
	worker.is_nginx = worker.is_unwound = true;
	worker.count = 2;
	worker.waits = 1;
	worker.copied_at_once = REQUEST_WAITS_AT_ONCE;
	worker.state = THREAD_BLOCKED;
	worker.call = (struct thread_call){ .known = true, .number = 202, .sp = 3, .pc = 4 };
	for (size_t i = 0; i < sizeof(stack) / sizeof(stack[0]); i++)
		stack[i] = (struct frame){ .function = &works, .line = (uint32_t)i };
	return 0;
}

static int end(void **state)
{
	(void)state;
	assert_int_equal(seen.still, 0);
	held_end();
	return 0;
}

static void look(void)
{
	held_count = 0;
	held.holds = 0;
	target_sample_requests(&held_sampler, &held_target);
}

static void assert_is_of(size_t sample, uint64_t request, const char *leaf, uint64_t wall_ns)
{
	const struct held_sample *kept = &held_samples[sample];

	assert_in_range(sample, 0, held_count - 1);
	assert_int_equal(kept->sample.request.number, request);
	assert_int_equal(kept->route[0], '/');
	assert_int_equal(atoi(kept->route + 1), request);
	assert_string_equal(kept->leaf, leaf);
	assert_int_equal(kept->sample.wall_ns, wall_ns);
}

static void each_request_has_the_time_since_the_last_look(void **state)
{
	(void)state;
	look();
	assert_int_equal(held_count, 2);
	assert_is_of(0, 1, "sleep 0", HELD_PERIOD_NS); /* nothing is known of the time before */
	assert_is_of(1, 2, "sleep 0", HELD_PERIOD_NS);
	assert_string_equal(held_samples[0].phase, "rewrite");
	assert_string_equal(held_samples[1].phase, "access");
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(held_samples[i].sample.pid, HELD_PID);
		assert_int_equal(held_samples[i].sample.tid, HELD_PID);
		assert_string_equal(held_samples[i].sample.process_name, "worker");
		assert_int_equal(held_samples[i].sample.thread_state, THREAD_PARKED);
		assert_int_equal(held_samples[i].sample.time_ns, held_now_ns);
		assert_int_equal(held_samples[i].sample.cpu_ns, 0);
		assert_int_equal(held_samples[i].frames[0].function->kind, FRAME_NATIVE);
		assert_string_equal(held_samples[i].frames[0].function->module, "nginx");
	}
	held_now_ns += 25 * MS;
	look();
	assert_int_equal(held_count, 2);
	assert_is_of(0, 1, "sleep 0", 25 * MS);
	assert_is_of(1, 2, "sleep 0", 25 * MS);
	/* The rate, samples for this time, is that of the looks, however many requests there are. */
	assert_int_equal(held_sampler.wall_ns, 2 * (HELD_PERIOD_NS + 25 * MS));
	assert_int_equal(held_result.figures.samples, 4);
	assert_int_equal(held_result.figures.missed_ticks, 0);
	assert_int_equal(seen.zones, 2);
	assert_ptr_equal(held.go_on, held_may_go_on);
}

/*---- The worker could not be held when the look was due ----*/

static void what_they_did_while_it_could_not_be_stopped_is_unknown(void **state)
{
	(void)state;
	look();
	held_now_ns += HELD_PERIOD_NS;
	held.start = HOLD_RAN;
	held.late_ns = 3 * HELD_PERIOD_NS + 1;
	look();
	/* For the looks that were due: this one, and three more. What it finds in the end is no sample. */
	assert_int_equal(held_count, 2);
	assert_is_of(0, 1, "unknown: not stopped", 4 * HELD_PERIOD_NS);
	assert_is_of(1, 2, "unknown: not stopped", 4 * HELD_PERIOD_NS);
	assert_int_equal(held_samples[0].sample.thread_state, THREAD_PARKED);
	assert_int_equal(held_samples[0].sample.frame_count, 1);
	assert_int_equal(held_result.figures.missed_ticks, 1);
	/* The next look stands for the time since the last one that was due. */
	held.start = HOLD_AT_ONCE;
	held.late_ns = 0;
	held_now_ns += HELD_PERIOD_NS - 1;
	look();
	assert_int_equal(held_count, 2);
	assert_is_of(0, 1, "sleep 0", HELD_PERIOD_NS);
	assert_int_equal(held_sampler.wall_ns, 2 * 6 * HELD_PERIOD_NS);
	assert_int_equal(held_result.figures.missed_ticks, 1);
}

static void what_no_look_found_is_said_by_the_next_one(void **state)
{
	(void)state;
	look();
	held.can_hold = false;
	for (int i = 0; i < 2; i++) {
		held_now_ns += HELD_PERIOD_NS;
		look();
		assert_int_equal(held_count, 0);
	}
	held.can_hold = true;
	held_now_ns += HELD_PERIOD_NS;
	look();
	assert_int_equal(held_count, 4);
	assert_is_of(0, 1, "unknown: not stopped", 2 * HELD_PERIOD_NS);
	assert_is_of(1, 2, "unknown: not stopped", 2 * HELD_PERIOD_NS);
	assert_is_of(2, 1, "sleep 0", HELD_PERIOD_NS);
	assert_is_of(3, 2, "sleep 0", HELD_PERIOD_NS);
	assert_int_equal(held_result.figures.missed_ticks, 2);
	/* Nothing is said twice. */
	held_now_ns += HELD_PERIOD_NS;
	look();
	assert_int_equal(held_count, 2);
}

static void a_process_that_cannot_be_held_and_was_no_worker_misses_nothing(void **state)
{
	(void)state;
	held.can_hold = false;
	look();
	held.can_hold = true;
	held.start = HOLD_RAN;
	worker.is_nginx = false;
	look();
	assert_int_equal(held_count, 0);
	assert_int_equal(held_result.figures.missed_ticks, 0);
}

/* It had the worker, and runs; or its work is done. */
static void one_that_got_no_cpu_to_stop_on_still_ran(void **state)
{
	(void)state;
	look();
	held.start = HOLD_WAITED;
	held.has_stopped = true;
	worker.running = 2;
	held_now_ns += HELD_PERIOD_NS;
	look();
	assert_is_of(0, 2, "works", HELD_PERIOD_NS);
	assert_is_of(1, 1, "sleep 0", HELD_PERIOD_NS);
	held.has_stopped = false;
	held_now_ns += HELD_PERIOD_NS;
	look();
	assert_int_equal(held_count, 2);
	assert_is_of(0, 1, "unknown: not stopped", HELD_PERIOD_NS);
}

static void one_that_was_taken_up_while_it_was_read_had_waited(void **state)
{
	(void)state;
	held.start = HOLD_WOKE;
	held.has_stopped = true;
	worker.running = 2;
	look();
	assert_int_equal(held_count, 2);
	assert_is_of(0, 2, "unknown: woken", HELD_PERIOD_NS);
	assert_int_equal(held_samples[0].sample.thread_state, THREAD_PARKED);
	assert_is_of(1, 1, "sleep 0", HELD_PERIOD_NS);
	assert_int_equal(held_result.figures.missed_ticks, 0);
}

static void of_a_worker_without_a_cpu_only_what_is_at_work_is_unknown(void **state)
{
	static const enum coroutine_state work[] = { COROUTINE_RUNNING, COROUTINE_NORMAL, COROUTINE_ACTIVE };

	(void)state;
	worker.coroutines = 2;
	worker.at_work = 3;
	for (size_t i = 0; i < sizeof(work) / sizeof(work[0]); i++) {
		held_target.read_last_ns = 0;
		worker.work = work[i];
		held.has_waiting = true;
		look();
		assert_true(held.takes_waiting);
		assert_int_equal(held_count, 2);
		assert_is_of(0, 1, "sleep 0", HELD_PERIOD_NS);
		assert_is_of(1, 2, "unknown: not stopped", HELD_PERIOD_NS);
		held.has_waiting = false;
		held_target.read_last_ns = 0;
		look();
		assert_is_of(1, 2, "sleep 0", HELD_PERIOD_NS);
	}
	assert_int_equal(held_result.figures.missed_ticks, 0);
}

static void light_threads_share_their_requests_time(void **state)
{
	(void)state;
	worker.count = 1;
	worker.waits = WAITS_MAX;
	look();
	assert_int_equal(held_count, WAITS_MAX);
	assert_is_of(0, 1, "sleep 0", HELD_PERIOD_NS / 3);
	assert_is_of(1, 1, "sleep 1", HELD_PERIOD_NS / 3);
	/* Not a nanosecond is lost. */
	assert_is_of(2, 1, "sleep 2", HELD_PERIOD_NS - HELD_PERIOD_NS / 3 * 2);
	/* Below the wait are the frames of its Lua. */
	for (size_t i = 0; i < WAITS_MAX; i++)
		assert_int_equal(held_samples[i].sample.frame_count, 1 + i);
	assert_ptr_equal(held_samples[1].frames[1].function, &waits_in);
}

static void a_process_that_is_no_worker_has_no_requests(void **state)
{
	(void)state;
	worker.is_nginx = false;
	held.has_stopped = true;
	look();
	assert_int_equal(held_count, 0);
	assert_int_equal(seen.captures + seen.notes + seen.lua_count, 0);
	assert_int_equal(held_sampler.wall_ns, 0);
	held.has_stopped = false;
	look();
	assert_int_equal(held_count + seen.lua_count, 0);
}

static void without_a_moment_to_read_there_are_no_samples(void **state)
{
	(void)state;
	held.can_hold = false;
	look();
	assert_int_equal(held_count, 0);
	/* The time waits for the next look that finds one. */
	look();
	assert_int_equal(held_sampler.wall_ns, 0);
	assert_int_equal(held_target.read_last_ns, 0);
	held.has_no_memory = true;
	look();
	assert_int_equal(held_count, 0);
}

static void the_request_that_runs_has_the_threads_stack(void **state)
{
	(void)state;
	held.has_stopped = true;
	held.registers.pc = 77;
	worker.running = 2;
	worker.is_due = true;
	look();
	assert_int_equal(seen.captures, 1);
	assert_int_equal(seen.registers.pc, 77);
	assert_int_equal(seen.captured_at, 0);
	assert_int_equal(seen.notes, 1);
	assert_int_equal(held_count, 2);
	assert_is_of(0, 2, "works", HELD_PERIOD_NS);
	assert_int_equal(held_samples[0].sample.thread_state, THREAD_RUNNING);
	assert_int_equal(held_samples[0].sample.vm_state, VM_STATE_INTERPRETED);
	assert_int_equal(held_samples[0].sample.frame_count, sizeof(stack) / sizeof(stack[0]));
	assert_string_equal(held_samples[0].phase, "content");
	/* What others wait for is over, but the loop is busy with that one. */
	assert_is_of(1, 1, "loop: /runs", HELD_PERIOD_NS);
	/* Their Lua is copied in a moment of its own. */
	assert_int_equal(held.holds, 2);
	assert_int_equal(seen.lua_count, 1);
	assert_int_equal(seen.stills, 2);
}

static void a_loop_that_is_busy_with_no_request_is_nginxs(void **state)
{
	(void)state;
	held.has_stopped = true;
	worker.is_due = true;
	look(); /* it works for none */
	assert_int_equal(held_count, 2);
	assert_is_of(0, 1, "loop: nginx", HELD_PERIOD_NS);
	worker.running = 3; /* one that is not in the list */
	look();
	assert_int_equal(held_count, 2);
	assert_string_equal(held_samples[1].leaf, "loop: nginx");
	worker.running = 1;
	worker.is_unwound = false;
	look();
	assert_int_equal(held_count, 2);
	assert_string_equal(held_samples[0].leaf, "loop: nginx");
	assert_int_equal(held_samples[0].sample.request.number, 1);
}

/* A worker that sleeps in a lock has a stack as one that runs. */
static void the_request_that_waits_for_a_lock_has_its_stack(void **state)
{
	(void)state;
	worker.running = 1;
	worker.sleeps_at_zone = true;
	worker.call.arguments[0] = ZONE_AT;
	look();
	assert_int_equal(seen.captures, 1);
	assert_int_equal(seen.captured_at, ZONE_AT);
	assert_int_equal(seen.registers.sp, 3);
	assert_int_equal(seen.registers.pc, 4);
	assert_int_equal(seen.registers.call_number, 202);
	assert_int_equal(seen.registers.unknown, REGISTERS_ALL_BUT_PC_AND_SP);
	assert_is_of(0, 1, "lock: dogs", HELD_PERIOD_NS);
	assert_int_equal(held_samples[0].sample.thread_state, THREAD_PARKED);
	assert_ptr_equal(held_samples[0].frames[1].function, &works);
	assert_int_equal(held_samples[0].frames[1].line, 0);
	/* It shows as many frames as those of requests that wait. */
	assert_int_equal(held_samples[0].sample.frame_count, 1 + REQUEST_WAIT_FRAMES_MAX);
}

static void a_lock_whose_name_finds_no_memory_has_no_sample(void **state)
{
	(void)state;
	worker.running = worker.count = 1;
	worker.sleeps_at_zone = true;
	worker.call.arguments[0] = ZONE_AT;
	look();
	assert_int_equal(held_count, 1);
	worker.has_no_room_for_names = true;
	look();
	assert_int_equal(seen.captures, 2);
	assert_int_equal(held_count, 0);
}

static void a_worker_that_sleeps_elsewhere_runs_no_request(void **state)
{
	(void)state;
	worker.running = 1;
	worker.sleeps_at_zone = true;
	for (int i = 0; i < 5; i++) {
		worker.call = (struct thread_call){ .known = i != 0,
						    .number = i == 1 ? -1 : 202,
						    .arguments = { i == 2 ? ZONE_AT + 8 : ZONE_AT } };
		worker.state = i == 3 ? THREAD_RUNNING : THREAD_BLOCKED;
		worker.is_other_thread = i == 4;
		look();
		assert_int_equal(seen.captures, 0);
		assert_int_equal(held_count, 2);
		assert_string_equal(held_samples[0].leaf, "sleep 0");
		/* There is time to copy Lua at once. */
		assert_int_equal(seen.lua_count, i + 1);
		assert_int_equal(held.holds, 1);
	}
}

static void many_requests_are_copied_some_at_a_time(void **state)
{
	const size_t count = 2 * REQUEST_WAITS_AT_ONCE + 5;

	(void)state;
	worker.count = count;
	look();
	assert_int_equal(held_count, count);
	for (size_t i = 0; i < count; i++)
		assert_is_of(i, i + 1, "sleep 0", HELD_PERIOD_NS);
	assert_int_equal(seen.lua_count, 3);
	assert_int_equal(seen.lua_first[1], REQUEST_WAITS_AT_ONCE);
	assert_int_equal(seen.lua_first[2], 2 * REQUEST_WAITS_AT_ONCE);
	assert_int_equal(held.holds, 3);
	/* As few as fit. */
	seen.lua_count = 0;
	worker.count = 7;
	worker.copied_at_once = 3;
	look();
	assert_int_equal(held_count, 7);
	assert_int_equal(seen.lua_count, 3);
	assert_int_equal(seen.lua_first[2], 6);
}

/* They were there at the time of the look. */
static void requests_whose_lua_cannot_be_copied_have_their_time(void **state)
{
	(void)state;
	held.has_stopped = true;
	held.later_cannot = true;
	worker.count = REQUEST_WAITS_AT_ONCE + 4;
	look();
	assert_int_equal(held_count, worker.count);
	assert_int_equal(seen.lua_count, 0);
	assert_int_equal(seen.unknown, worker.count);
	/* It does not try again in the same look. */
	assert_int_equal(held.holds, 2);
	assert_int_equal(held_result.figures.missed_ticks, 0);
}

static void a_list_that_is_cut_counts_as_missed(void **state)
{
	(void)state;
	worker.is_cut = true;
	look();
	assert_int_equal(held_count, 2);
	assert_int_equal(held_result.figures.missed_ticks, 1);
}

static void requests_for_which_memory_is_short_count_as_missed(void **state)
{
	(void)state;
	worker.error = -1;
	look();
	assert_int_equal(held_count, 0);
	assert_int_equal(held_result.figures.missed_ticks, 1);
	worker.count = REQUEST_WAITS_AT_ONCE + 1;
	look();
	assert_int_equal(held_result.figures.missed_ticks, 2);
}

static void a_pause_is_that_of_a_hold_that_stopped_a_thread(void **state)
{
	(void)state;
	held_assert_pause(look);
}

static void a_worker_is_held_for_a_twentieth_of_the_time_at_most(void **state)
{
	const uint64_t ms = NS_PER_SECOND / 1000, begin_ns = held_now_ns;

	(void)state;
	held.has_stopped = true;
	held.total_ns = 5 * ms;
	look();
	assert_int_equal(held_count, 2);
	held_now_ns = begin_ns + 95 * ms - 1;
	look();
	assert_int_equal(held_count, 0);
	assert_int_equal(held_result.figures.missed_ticks, 1);
	/* The next one stands for all of the time. What comes after it does not depend on what it saw. */
	held_now_ns++;
	held.has_stopped = false;
	held.total_ns = 0;
	look();
	assert_int_equal(held_count, 2);
	assert_is_of(0, 1, "sleep 0", 95 * ms);
	held_now_ns += 95 * ms - 1;
	look();
	assert_int_equal(held_count, 0);
	held_now_ns++;
	look();
	assert_int_equal(held_count, 2);
	assert_int_equal(held_result.figures.missed_ticks, 2);
	/* Another hold changes it a little. */
	held_now_ns += 95 * ms;
	held.total_ns = 13 * ms;
	look();
	held_now_ns += 114 * ms - 1;
	look();
	assert_int_equal(held_count, 0);
	held_now_ns++;
	held.total_ns = 1 * ms;
	look();
	assert_int_equal(held_count, 2);
	held_now_ns += 19 * (6 * ms - 5 * ms / 8);
	look();
	assert_int_equal(held_count, 2);
	assert_int_equal(held_result.figures.missed_ticks, 3);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(what_they_did_while_it_could_not_be_stopped_is_unknown),
		TEST(what_no_look_found_is_said_by_the_next_one),
		TEST(a_process_that_cannot_be_held_and_was_no_worker_misses_nothing),
		TEST(one_that_got_no_cpu_to_stop_on_still_ran),
		TEST(one_that_was_taken_up_while_it_was_read_had_waited),
		TEST(of_a_worker_without_a_cpu_only_what_is_at_work_is_unknown),
		TEST(each_request_has_the_time_since_the_last_look),
		TEST(light_threads_share_their_requests_time),
		TEST(a_process_that_is_no_worker_has_no_requests),
		TEST(without_a_moment_to_read_there_are_no_samples),
		TEST(the_request_that_runs_has_the_threads_stack),
		TEST(a_loop_that_is_busy_with_no_request_is_nginxs),
		TEST(the_request_that_waits_for_a_lock_has_its_stack),
		TEST(a_lock_whose_name_finds_no_memory_has_no_sample),
		TEST(a_worker_that_sleeps_elsewhere_runs_no_request),
		TEST(many_requests_are_copied_some_at_a_time),
		TEST(requests_whose_lua_cannot_be_copied_have_their_time),
		TEST(a_list_that_is_cut_counts_as_missed),
		TEST(requests_for_which_memory_is_short_count_as_missed),
		TEST(a_worker_is_held_for_a_twentieth_of_the_time_at_most),
		TEST(a_pause_is_that_of_a_hold_that_stopped_a_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

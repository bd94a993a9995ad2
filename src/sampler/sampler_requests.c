/* SPDX-License-Identifier: MIT */
/* Samples of the requests of nginx that are in flight, whatever they wait for. */
#include "src/sampler/sampler_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/linux/threads/hold.h"
#include "src/nginx/request_waits.h"

enum {
	/* A worker is held for at most this part of all time, however many requests it has. */
	HELD_ONE_IN = 20,
	/*
	 * By this part of the difference, a hold changes the rest. The rest does not depend on what was just
	 * seen: if only a worker that runs were left alone for longer, what comes after its runs would stand
	 * for too much time.
	 */
	CHANGES_BY_ONE_IN = 8,
};

/* One look at a process: each request in flight gets a sample. */
struct look {
	struct sampler *sampler;
	struct target *target;
	struct hold *hold;
	struct request_waits waits;
	bool is_nginx;
	bool runs;       /* its first thread was stopped, and is captured */
	bool woke;       /* it slept when the look was due */
	bool has_no_cpu; /* it waits for a CPU, and may be in the midst of Lua */
	struct capture_hints hints;
	size_t first, count; /* of the requests whose Lua is copied */
	bool gives_up;       /* there was no moment to copy Lua */
	struct lua_waits lua;
	struct request_wait of_one[LIGHT_THREADS_MAX]; /* the waits of a request */
	uint64_t time_ns, now_ns;                      /* of the list: CLOCK_MONOTONIC, and the time of day */
	uint64_t waited_ns;                            /* since the last look */
	/* The client's request that ran, by nginx's numbers; 0: none, or it is unknown. */
	uint64_t connection, number;
	char route[ROUTE_BYTES]; /* of that request */
};

/*---- While nothing runs ----*/

static void choose_next(struct look *look)
{
	look->count = look->waits.count - look->first;
	if (look->count > REQUEST_WAITS_AT_ONCE)
		look->count = REQUEST_WAITS_AT_ONCE;
}

static void read_lua(struct look *look)
{
	choose_next(look);
	look->count = request_waits_capture(look->target->process, &look->waits, look->first, look->count,
					    &look->lua);
}

static void read_more_lua(void *context)
{
	struct look *look = context;

	lua_process_begin_still(look->target->process, STILL_OTHER);
	read_lua(look);
	lua_process_end_still(look->target->process);
}

/* Does the process sleep until a shared dictionary is unlocked? Then it has a stack like one that runs. */
static bool read_locked(struct look *look, struct registers *ret_registers)
{
	struct threads *threads = look->target->threads;
	struct thread *thread = threads_count(threads) ? threads_at(threads, 0) : NULL;
	struct thread_call call;
	enum thread_state state;

	if (!thread || thread->tid != look->target->pid ||
	    thread_read_state(threads, thread, &state, &call) || state == THREAD_RUNNING || !call.known ||
	    call.number < 0 || !lua_process_sleeps_at_zone(look->target->process, call.arguments[0]))
		return false;
	look->hints.sleeps_at = call.arguments[0];
	*ret_registers = thread_call_registers(&call);
	return true;
}

static void read_list(void *context)
{
	struct look *look = context;
	const struct registers *registers;
	struct registers locked;

	lua_process_begin_still(look->target->process, STILL_SAME);
	look->time_ns = clock_now_ns(CLOCK_MONOTONIC);
	look->now_ns = clock_now_ns(CLOCK_REALTIME);
	look->is_nginx = request_waits_read(look->target->process, &look->waits);
	look->hints.sleeps_at = 0;
	look->has_no_cpu = hold_has_waiting(look->hold);
	registers = hold_registers(look->hold, look->target->pid);
	if (!registers && look->is_nginx && read_locked(look, &locked))
		registers = &locked;
	look->runs = look->is_nginx && registers;
	if (look->runs) {
		request_waits_note_due(look->target->process, &look->waits);
		lua_process_capture(look->target->process, registers, &look->hints);
	} else if (look->is_nginx) {
		read_lua(look); /* a process that sleeps has time */
	}
	lua_process_end_still(look->target->process);
}

/*---- Samples ----*/

/* The sample stands for this time of the request. */
static void deliver(struct look *look, const struct waiting_request *waiting, uint64_t wall_ns,
		    struct sample *sample)
{
	char route[ROUTE_BYTES];

	sample->time_ns = look->time_ns;
	sample->pid = sample->tid = look->target->pid;
	sample->process_name = sample->thread_name = look->target->name;
	sample->request = request_waits_label(waiting, look->now_ns, route);
	sample->wall_ns = wall_ns;
	target_deliver(look->sampler, look->target, sample);
}

static bool runs_now(const struct look *look, const struct waiting_request *waiting)
{
	return look->number && waiting->request.number == look->connection &&
	       waiting->request.ordinal == look->number;
}

static const struct function *name_wait(struct look *look, const char *name)
{
	const struct function function = { .kind = FRAME_NATIVE, .name = name, .module = "nginx" };

	return functions_intern(look->sampler->options->functions, &function);
}

/* A sample of a wait that has no stack. */
static void deliver_unknown(struct look *look, const struct waiting_request *waiting, const char *name,
			    uint64_t wall_ns)
{
	struct frame frame = { .function = name_wait(look, name) };
	struct sample sample = { .thread_state = THREAD_PARKED, .frames = &frame, .frame_count = 1 };

	if (frame.function)
		deliver(look, waiting, wall_ns, &sample);
}

/* The request that has the process: it uses a CPU, or waits for the lock of a shared dictionary. */
static void deliver_active(struct look *look, const struct waiting_request *waiting,
			   const struct sample *captured)
{
	struct sample sample = *captured;
	size_t count = sample.frame_count < REQUEST_WAIT_FRAMES_MAX ? sample.frame_count
								    : REQUEST_WAIT_FRAMES_MAX;
	struct frame frames[REQUEST_WAIT_FRAMES_MAX + 1];
	char zone[ZONE_NAME_BYTES], name[REQUEST_WAIT_BYTES];

	if (lua_process_find_zone_lock(look->target->process, look->hints.sleeps_at, zone)) {
		snprintf(name, sizeof(name), "lock: %s", zone);
		frames[0] = (struct frame){ .function = name_wait(look, name) };
		memcpy(frames + 1, sample.frames, count * sizeof(frames[0]));
		sample.frames = frames;
		sample.frame_count = count + 1;
		sample.thread_state = THREAD_PARKED;
		if (!frames[0].function)
			return;
	}
	deliver(look, waiting, look->waited_ns, &sample);
}

/* The request that the captured stack is of has its own frames. */
static void deliver_running(struct look *look)
{
	struct lua_process *process = look->target->process;
	struct sample sample = { .thread_state = THREAD_RUNNING };
	struct sample_request request;

	if (!look->runs || lua_process_unwind(process, &sample.frames, &sample.frame_count, &sample.vm_state))
		return;
	request = lua_process_request(process, look->time_ns);
	if (!request.route || request.number == 0)
		return;
	look->connection = request.connection;
	look->number = request.number;
	sample.phase = lua_process_phase(process);
	for (size_t i = 0; i < look->waits.count; i++)
		if (runs_now(look, &look->waits.requests[i])) {
			snprintf(look->route, sizeof(look->route), "%s", request.route);
			if (look->woke)
				deliver_unknown(look, &look->waits.requests[i], "unknown: woken",
						look->waited_ns);
			else
				deliver_active(look, &look->waits.requests[i], &sample);
			return;
		}
	look->number = 0;
}

static int deliver_wait(struct look *look, size_t index, struct request_wait *wait, uint64_t wall_ns)
{
	struct frame frames[REQUEST_WAIT_FRAMES_MAX + 1];
	struct sample sample = { .thread_state = THREAD_PARKED,
				 .frames = frames,
				 .frame_count = 1 + wait->frame_count,
				 .phase = look->lua.phase[index] };

	if (wait->is_due)
		snprintf(wait->name, sizeof(wait->name), "loop: %s", look->number ? look->route : "nginx");
	frames[0] = (struct frame){ .function = name_wait(look, wait->name) };
	if (wait->frame_count)
		memcpy(frames + 1, wait->frames, wait->frame_count * sizeof(frames[0]));
	if (!frames[0].function)
		return -ENOMEM;
	deliver(look, &look->waits.requests[look->first + index], wall_ns, &sample);
	return 0;
}

/* Is a coroutine of the request in the midst of its work? */
static bool is_at_work(const struct look *look, size_t index)
{
	const size_t first = look->lua.first[index];

	for (size_t i = first; i < first + look->lua.count[index]; i++)
		if (coroutine_is_at_work(lua_process_coroutine_state(look->target->process, i)))
			return true;
	return false;
}

/* The waits of a request share its time, so that sums are those of requests. 0 or -ENOMEM. */
static int deliver_waiting(struct look *look, size_t index)
{
	const struct waiting_request *waiting = &look->waits.requests[look->first + index];
	uint64_t left_ns = look->waited_ns;
	size_t count;
	int error;

	if (runs_now(look, waiting))
		return 0;
	if (look->has_no_cpu && look->lua.is_there[index] && is_at_work(look, index)) {
		deliver_unknown(look, waiting, "unknown: not stopped", look->waited_ns);
		return 0;
	}
	error = request_waits_of(look->target->process, waiting, &look->lua, index, look->of_one, &count);
	for (size_t i = 0; i < count && !error; i++) {
		uint64_t wall_ns = left_ns / (count - i);

		error = deliver_wait(look, index, &look->of_one[i], wall_ns);
		left_ns -= wall_ns;
	}
	return error;
}

/* The requests were there at the time of the look, even if what their Lua does cannot be read any more. */
static void take_next(struct look *look)
{
	if (!look->runs && look->first == 0)
		return; /* read_list() has */
	look->gives_up = look->gives_up || !hold_while(look->hold, read_more_lua, NULL, look);
	if (look->gives_up) {
		choose_next(look);
		request_waits_know_nothing(look->count, &look->lua);
	}
}

static void deliver_all(struct look *look)
{
	int error = 0;

	deliver_running(look);
	while (look->first < look->waits.count && !error) {
		take_next(look);
		for (size_t i = 0; i < look->count && !error; i++)
			error = deliver_waiting(look, i);
		look->first += look->count;
	}
	if (error || look->waits.is_cut)
		sampler_count_missed(look->sampler, 1);
}

/* What the requests did at the looks that found them only after a run is unknown. */
static void deliver_unseen(struct look *look)
{
	for (size_t i = 0; i < look->waits.count && look->target->requests_unseen_ns; i++)
		deliver_unknown(look, &look->waits.requests[i], "unknown: not stopped",
				look->target->requests_unseen_ns);
	look->target->requests_unseen_ns = 0;
}

/*
 * The look was due at due_ns, but the process was seen at now_ns at the earliest. Other looks were due
 * meanwhile.
 */
static void note_unseen(struct look *look, uint64_t due_ns, uint64_t now_ns)
{
	struct target *target = look->target;
	const uint64_t period_ns = look->sampler->period_ns, looks = (now_ns - due_ns) / period_ns;
	const uint64_t last_ns = due_ns + looks * period_ns;

	target->requests_unseen_ns += target->read_last_ns ? last_ns - target->read_last_ns
							   : (1 + looks) * period_ns;
	target->read_last_ns = last_ns;
	sampler_count_missed(look->sampler, 1);
}

static void deliver_seen(struct look *look)
{
	look->waited_ns = target_note_reading(look->sampler, look->target, look->time_ns);
	deliver_all(look);
}

/* held_ns: 0 if the worker was not held. */
static void rest(struct target *target, uint64_t held_ns)
{
	const int64_t change_ns = (int64_t)(held_ns - target->usual_hold_ns);

	if (target->usual_hold_ns == 0)
		target->usual_hold_ns = held_ns;
	else if (held_ns)
		target->usual_hold_ns += (uint64_t)(change_ns / CHANGES_BY_ONE_IN);
	target->read_next_ns = clock_now_ns(CLOCK_MONOTONIC) + (HELD_ONE_IN - 1) * target->usual_hold_ns;
}

void target_sample_requests(struct sampler *sampler, struct target *target)
{
	struct look look = { .sampler = sampler, .target = target };
	const uint64_t due_ns = clock_now_ns(CLOCK_MONOTONIC);
	enum hold_start start;
	bool is_read, is_late;

	if (due_ns < target->read_next_ns) {
		sampler_count_missed(sampler, 1);
		return;
	}
	look.hold = hold_new(sampler->tracer, target->threads);
	if (!look.hold)
		return;
	hold_take_waiting(look.hold);
	hold_go_on_while(look.hold, sampler->patience.may_go_on, sampler->patience.context);
	look.hints.tid = target->pid;
	lua_process_find_zones(target->process);
	is_read = hold_while(look.hold, read_list, NULL, &look);
	start = hold_start(look.hold);
	is_late = !is_read || start == HOLD_RAN || (start == HOLD_WAITED && !look.runs);
	look.woke = start == HOLD_WOKE;
	if (is_late && (is_read ? look.is_nginx : target->read_last_ns != 0))
		note_unseen(&look, due_ns, is_read ? look.time_ns : clock_now_ns(CLOCK_MONOTONIC));
	if (is_read && look.is_nginx) {
		deliver_unseen(&look);
		if (!is_late)
			deliver_seen(&look);
		if (hold_count(look.hold))
			histogram_add(&sampler->result->figures.pause_ns, hold_longest_ns(look.hold));
	}
	rest(target, hold_total_ns(look.hold));
	hold_free(look.hold);
	request_waits_clear(&look.waits);
}

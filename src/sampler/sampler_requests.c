/* SPDX-License-Identifier: MIT */
/* Samples of the requests of nginx that are in flight, whatever they wait for. */
#include "src/sampler/sampler_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/linux/threads/hold.h"
#include "src/nginx/request_waits.h"

/* One look at a process: each request in flight gets a sample. */
struct look {
	struct sampler *sampler;
	struct target *target;
	struct hold *hold;
	struct request_waits waits;
	bool is_nginx;
	bool runs; /* its first thread was stopped, and is captured */
	struct capture_hints hints;
	size_t first, count; /* of the requests whose Lua is copied */
	bool gives_up;       /* there was no moment to copy Lua */
	struct lua_waits lua;
	uint64_t time_ns, now_ns; /* of the list: CLOCK_MONOTONIC, and the time of day */
	uint64_t waited_ns;       /* since the last look */
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

static void read_lua(void *context)
{
	struct look *look = context;

	choose_next(look);
	request_waits_capture(look->target->process, &look->waits, look->first, look->count, &look->lua);
}

static void read_list(void *context)
{
	struct look *look = context;
	const struct registers *registers;

	look->time_ns = clock_now_ns(CLOCK_MONOTONIC);
	look->now_ns = clock_now_ns(CLOCK_REALTIME);
	look->is_nginx = request_waits_read(look->target->process, &look->waits);
	registers = hold_registers(look->hold, look->target->pid);
	look->runs = look->is_nginx && registers;
	if (look->runs) {
		request_waits_note_due(look->target->process, &look->waits);
		lua_process_capture(look->target->process, registers, &look->hints);
	} else if (look->is_nginx) {
		read_lua(look); /* a process that sleeps has time */
	}
}

/*---- Samples ----*/

static void deliver(struct look *look, const struct waiting_request *waiting, struct sample *sample)
{
	char route[ROUTE_BYTES];

	sample->time_ns = look->time_ns;
	sample->pid = sample->tid = look->target->pid;
	sample->process_name = sample->thread_name = look->target->name;
	sample->request = request_waits_label(waiting, look->now_ns, route);
	sample->wall_ns = look->waited_ns;
	target_deliver(look->sampler, look->target, sample);
	/* The rate counts how often ljspy looks, not how many requests there are. */
	look->sampler->wall_ns -= look->waited_ns;
}

static bool runs_now(const struct look *look, const struct waiting_request *waiting)
{
	return look->number && waiting->request.number == look->connection &&
	       waiting->request.ordinal == look->number;
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
			deliver(look, &look->waits.requests[i], &sample);
			return;
		}
	look->number = 0;
}

static const struct function *name_wait(struct look *look, const char *name)
{
	const struct function function = { .kind = FRAME_NATIVE, .name = name, .module = "nginx" };

	return functions_intern(look->sampler->options->functions, &function);
}

/* 0 or -ENOMEM. */
static int deliver_waiting(struct look *look, size_t index)
{
	const struct waiting_request *waiting = &look->waits.requests[look->first + index];
	struct frame frames[REQUEST_WAIT_FRAMES_MAX + 1];
	struct sample sample = { .thread_state = THREAD_PARKED, .frames = frames };
	struct request_wait wait;
	int error;

	if (runs_now(look, waiting))
		return 0;
	error = request_waits_of(look->target->process, waiting, &look->lua, index, &wait);
	if (error)
		return error;
	if (waiting->is_due)
		snprintf(wait.name, sizeof(wait.name), "loop: %s", look->number ? look->route : "nginx");
	frames[0] = (struct frame){ .function = name_wait(look, wait.name) };
	memcpy(frames + 1, wait.frames, wait.frame_count * sizeof(frames[0]));
	sample.frame_count = 1 + wait.frame_count;
	sample.phase = look->lua.phase[index];
	if (!frames[0].function)
		return -ENOMEM;
	deliver(look, waiting, &sample);
	return 0;
}

/* The requests were there at the time of the look, even if what their Lua does cannot be read any more. */
static void take_next(struct look *look)
{
	if (!look->runs && look->first == 0)
		return; /* read_list() has */
	look->gives_up = look->gives_up || !hold_while(look->hold, read_lua, NULL, look);
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
	if (look->first < look->waits.count || look->waits.is_cut)
		sampler_count_missed(look->sampler, 1);
}

void target_sample_requests(struct sampler *sampler, struct target *target)
{
	struct look look = { .sampler = sampler, .target = target };

	look.hold = hold_new(sampler->tracer, target->threads);
	if (!look.hold)
		return;
	hold_go_on_while(look.hold, sampler->patience.may_go_on, sampler->patience.context);
	look.hints.tid = target->pid;
	if (hold_while(look.hold, read_list, NULL, &look) && look.is_nginx) {
		look.waited_ns = target->coroutines_last_ns ? look.time_ns - target->coroutines_last_ns
							    : sampler->period_ns;
		target->coroutines_last_ns = look.time_ns;
		deliver_all(&look);
		sampler->wall_ns += look.waited_ns;
		if (hold_count(look.hold))
			histogram_add(&sampler->result->figures.pause_ns, hold_longest_ns(look.hold));
	}
	hold_free(look.hold);
	request_waits_clear(&look.waits);
}

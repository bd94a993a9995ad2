/* SPDX-License-Identifier: MIT */
#include "src/nginx/request_waits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "src/linux/clocks/clock.h"
#include "unwind/nginx/connections.h"
#include "unwind/nginx/timers.h"

enum { NS_PER_MS = 1000 * 1000 };

/*---- Upstreams ----*/

static const char *const upstream_names[] = {
	[NGINX_UPSTREAM_NONE] = NULL,
	[NGINX_UPSTREAM_RESOLVING] = "upstream DNS",
	[NGINX_UPSTREAM_CONNECTING] = "upstream connect",
	[NGINX_UPSTREAM_WAITING] = "upstream first byte",
	[NGINX_UPSTREAM_READING] = "upstream answer",
	[NGINX_UPSTREAM_DONE] = NULL,
};

/* What an upstream that works for a request does; NULL if none does. */
static const char *name_upstream(const struct nginx_upstream *upstream)
{
	return upstream_names[upstream->state];
}

/*---- The list ----*/

/* A subrequest that has an upstream, while its client's connection serves another request. */
struct background {
	uint64_t main, upstream_states;
};

struct reading {
	struct lua_process *process;
	struct memory *memory;
	const struct request_members *members;
	struct request_waits *waits;
	struct background *backgrounds; /* owned */
	size_t background_count, background_room;
};

void request_waits_clear(struct request_waits *waits)
{
	free(waits->requests);
	free(waits->due);
	*waits = (struct request_waits){ 0 };
}

static struct waiting_request *add(struct request_waits *waits)
{
	struct waiting_request *requests;

	waits->is_cut |= waits->count == REQUEST_WAITS_MAX;
	if (waits->is_cut)
		return NULL;
	requests = array_grow(waits->requests, &waits->room, waits->count + 1, sizeof(*requests));
	waits->is_cut = requests == NULL;
	if (!requests)
		return NULL;
	waits->requests = requests;
	return &requests[waits->count++];
}

static void note_background(struct reading *reading, const struct nginx_request *subrequest)
{
	struct background *backgrounds = array_grow(reading->backgrounds, &reading->background_room,
						    reading->background_count + 1, sizeof(*backgrounds));

	if (!backgrounds)
		return;
	reading->backgrounds = backgrounds;
	backgrounds[reading->background_count++] = (struct background){ subrequest->main,
									subrequest->upstream_states };
}

static bool read_main(struct reading *reading, const struct nginx_request *served,
		      struct nginx_request *ret_main)
{
	if (served->main != served->address)
		return lua_process_read_request(reading->process, served->main, ret_main);
	*ret_main = *served;
	lua_process_match_route(reading->process, ret_main);
	return true;
}

/* A connection of a client holds the request that it serves now, which may be a subrequest. */
static bool take_request(void *context, const struct connection_in_use *connection)
{
	struct reading *reading = context;
	uint64_t address = connection->data;
	struct waiting_request *waiting;
	struct nginx_request served, main;

	if (!nginx_request_read(reading->memory, reading->members, address, &served))
		return true;
	if (served.connection != connection->address) {
		if (served.main != address && served.serves != address)
			note_background(reading, &served);
		return true;
	}
	if (!read_main(reading, &served, &main))
		return true;
	waiting = add(reading->waits);
	if (!waiting)
		return false;
	*waiting = (struct waiting_request){
		.request = main,
		.serves = address,
		.is_stream = connection->fd < 0,
		.client = connection_wait(reading->memory, connection->address),
	};
	nginx_request_upstream(reading->memory, &served, &waiting->upstream);
	return true;
}

static int compare_mains(const void *left, const void *right)
{
	uint64_t one = *(const uint64_t *)left, other = *(const uint64_t *)right;

	return (one > other) - (one < other);
}

static void read_behind(const struct reading *reading, struct waiting_request *waiting)
{
	const struct background *background = bsearch(&waiting->request.address, reading->backgrounds,
						      reading->background_count, sizeof(*background),
						      compare_mains);

	if (background && !name_upstream(&waiting->upstream))
		nginx_request_upstream(
			reading->memory,
			&(struct nginx_request){ .upstream_states = background->upstream_states },
			&waiting->behind);
}

bool request_waits_read(struct lua_process *process, struct request_waits *waits)
{
	struct reading reading = {
		.process = process,
		.memory = lua_process_memory(process),
		.members = lua_process_request_members(process),
		.waits = waits,
	};
	struct connections connections;
	bool is_read, has_flags;

	waits->count = 0;
	waits->is_cut = false;
	is_read = lua_process_connections(process, &connections) &&
		  connections_walk(reading.memory, &connections, take_request, &reading);
	has_flags = is_read && waits->count && lua_process_has_timer_flags(process);
	if (reading.background_count)
		qsort(reading.backgrounds, reading.background_count, sizeof(reading.backgrounds[0]),
		      compare_mains);
	for (size_t i = 0; is_read && i < waits->count; i++) {
		if (!has_flags)
			waits->requests[i].client = CONNECTION_WAIT_UNKNOWN;
		if (reading.background_count)
			read_behind(&reading, &waits->requests[i]);
	}
	free(reading.backgrounds);
	return is_read;
}

/*---- The loop ----*/

/* The time as timers count it. False if it is unknown. */
static bool read_clock(struct lua_process *process, uint64_t *ret_ms)
{
	const struct request_members *members = lua_process_request_members(process);
	uint64_t turn_ns = lua_process_loop_clock(process);

	/* nginx's own stands still during a turn. */
	if (turn_ns == 0 || members->loop_ms == 0 ||
	    !memory_u64(lua_process_memory(process), members->loop_ms, ret_ms))
		return false;
	*ret_ms += (clock_now_ns(CLOCK_MONOTONIC) - turn_ns) / NS_PER_MS;
	return true;
}

static void note_due(struct request_waits *waits, uint64_t thread)
{
	uint64_t *due = array_grow(waits->due, &waits->due_room, waits->due_count + 1, sizeof(*due));

	if (!due)
		return;
	waits->due = due;
	due[waits->due_count++] = thread;
}

static bool is_due(const struct request_waits *waits, uint64_t thread)
{
	for (size_t i = 0; i < waits->due_count; i++)
		if (waits->due[i] == thread)
			return true;
	return false;
}

void request_waits_note_due(struct lua_process *process, struct request_waits *waits)
{
	const struct request_members *members = lua_process_request_members(process);
	struct memory *memory = lua_process_memory(process);
	const struct layout *luajit;
	struct connections connections;
	struct timers timers;
	uint64_t now_ms, offset;

	waits->due_count = 0;
	if (lua_process_global_count(process) == 0 || members->timers == 0 ||
	    !lua_process_connections(process, &connections) || !read_clock(process, &now_ms) ||
	    timers_read(memory, members->timers, now_ms, &timers))
		return;
	luajit = &lua_process_global(process, 0)->vm->layout;
	offset = timers_offset(memory, &timers, &connections, luajit);
	for (size_t i = 0; i < timers.count; i++) {
		const struct timer_event event = timer_event_read(memory, &timers.timers[i], offset,
								  &connections, luajit);

		if (event.kind == TIMER_COROUTINE)
			note_due(waits, event.subject);
	}
	timers_clear(&timers);
}

/*---- Their Lua ----*/

void request_waits_know_nothing(size_t count, struct lua_waits *ret_waits)
{
	for (size_t i = 0; i < count; i++) {
		ret_waits->first[i] = ret_waits->count[i] = 0;
		ret_waits->phase[i] = NULL;
		ret_waits->is_there[i] = ret_waits->waits_for_cache[i] = false;
	}
}

/* Find the coroutines of a request that is still there, and their VM. False if that is not known. */
static bool find_lua(struct lua_process *process, const struct waiting_request *waiting,
		     const char **ret_phase, struct light_threads *ret_threads, size_t *ret_global)
{
	const struct request_members *members = lua_process_request_members(process);
	struct nginx_request now;

	ret_threads->count = 0;
	if (!nginx_request_read(lua_process_memory(process), members, waiting->serves, &now) ||
	    !nginx_requests_are_same(&now, &waiting->request))
		return false;
	lua_process_light_threads(process, waiting->serves, ret_phase, ret_threads);
	if (ret_threads->count == 0 || lua_process_find_global(process, ret_threads->g, ret_global))
		return true;
	ret_threads->count = 0;
	*ret_phase = NULL;
	return false;
}

/* While it waits for an upstream, its client or Lua, it does not. */
static bool waits_for_cache(struct lua_process *process, const struct waiting_request *waiting,
			    const struct light_threads *threads)
{
	return threads->count == 0 && waiting->client == CONNECTION_WAIT_NONE &&
	       !name_upstream(&waiting->upstream) &&
	       nginx_request_waits_for_cache(lua_process_memory(process),
					     lua_process_request_members(process), waiting->serves);
}

size_t request_waits_capture(struct lua_process *process, const struct request_waits *waits, size_t first,
			     size_t count, struct lua_waits *ret_waits)
{
	uint64_t threads[REQUEST_WAITS_COROUTINES] = { 0 };
	size_t captured = 0, global = 0, i;

	request_waits_know_nothing(count, ret_waits);
	for (i = 0; i < count && captured + LIGHT_THREADS_MAX <= REQUEST_WAITS_COROUTINES; i++) {
		struct light_threads of_one;
		size_t its_global = global;

		ret_waits->is_there[i] = find_lua(process, &waits->requests[first + i], &ret_waits->phase[i],
						  &of_one, &its_global);
		if (captured && its_global != global)
			break;
		ret_waits->waits_for_cache[i] = waits_for_cache(process, &waits->requests[first + i],
								&of_one);
		global = its_global;
		ret_waits->first[i] = captured;
		ret_waits->count[i] = of_one.count;
		for (size_t j = 0; j < of_one.count; j++, captured++) {
			threads[captured] = of_one.threads[j];
			lua_wait_read(process, threads[captured], &ret_waits->waits[captured]);
			ret_waits->is_due[captured] = is_due(waits, threads[captured]);
		}
	}
	/* Then no VM may be known. */
	if (captured == 0)
		return i;
	lua_process_capture_coroutines(process, global, threads, captured);
	/* One of them is no coroutine any more: which one is unknown. */
	for (size_t j = 0; j < i && lua_process_coroutine_count(process) != captured; j++)
		ret_waits->is_there[j] &= ret_waits->count[j] == 0;
	return i;
}

/*---- What they wait for ----*/

static const char *name_client_wait(const struct waiting_request *waiting)
{
	switch (waiting->client) {
	case CONNECTION_WAIT_READ: return "client read";
	case CONNECTION_WAIT_WRITE: return "client write";
	/* limit_req and auth_delay hold it back before there is an answer. */
	case CONNECTION_WAIT_DELAY: return waiting->request.status ? "limit_rate" : "delay";
	/* For a file, say, that a thread reads. All that waits for its client has a time limit. */
	case CONNECTION_WAIT_UNKNOWN:
	case CONNECTION_WAIT_NONE: break;
	}
	return "unknown: in nginx";
}

static bool has_client_wait(const struct waiting_request *waiting)
{
	return waiting->client != CONNECTION_WAIT_UNKNOWN && waiting->client != CONNECTION_WAIT_NONE;
}

/*
 * Does a request that an upstream works for wait for its client? By the time limit that nginx, from 1.18
 * to 1.31, has set for the client's connection.
 *
 * One to write: nginx has a part of the answer that the client does not take, or that limit_rate holds
 * back, so the next one from the upstream could not go on (ngx_event_pipe(), and
 * ngx_http_upstream_process_non_buffered_request()). If a name could not be resolved, the state stays as
 * it is, and nginx answers by itself.
 *
 * One to read, once the upstream is connected: nginx passes the client's body on as it comes, and sets no
 * limit for the upstream before its end (ngx_http_upstream_send_request()).
 */
static bool waits_for_client(const struct waiting_request *waiting)
{
	switch (waiting->upstream.state) {
	case NGINX_UPSTREAM_RESOLVING:
		return waiting->client == CONNECTION_WAIT_WRITE || waiting->client == CONNECTION_WAIT_DELAY;
	case NGINX_UPSTREAM_WAITING: return waiting->client == CONNECTION_WAIT_READ;
	case NGINX_UPSTREAM_READING: return has_client_wait(waiting);
	case NGINX_UPSTREAM_NONE:
	case NGINX_UPSTREAM_CONNECTING:
	case NGINX_UPSTREAM_DONE: break;
	}
	return false;
}

/*
 * Does it wait for the upstream as well? That may speak before the client's body ends: it has begun to
 * answer, or the client speaks HTTP/2, in which calls of gRPC go both ways.
 */
static bool waits_for_both(const struct waiting_request *waiting)
{
	return waiting->client == CONNECTION_WAIT_READ &&
	       (waiting->upstream.state == NGINX_UPSTREAM_READING || waiting->is_stream);
}

/* Takes the frames of a coroutine. 0 or -ENOMEM. */
static int take_frames(struct lua_process *process, size_t coroutine, struct request_wait *wait)
{
	const struct frame *frames = NULL;
	size_t count = 0;
	int error = lua_process_unwind_coroutine(process, coroutine, &frames, &count);

	if (error)
		return error;
	wait->frame_count = count < REQUEST_WAIT_FRAMES_MAX ? count : REQUEST_WAIT_FRAMES_MAX;
	if (wait->frame_count)
		memcpy(wait->frames, frames, wait->frame_count * sizeof(frames[0]));
	return 0;
}

/* Has the coroutine created another one of the request, which waits? */
static bool has_waiting_child(struct lua_process *process, const struct lua_waits *lua, size_t index,
			      size_t coroutine)
{
	for (size_t i = lua->first[index]; i < lua->first[index] + lua->count[index]; i++)
		if (i != coroutine && lua->waits[i].parent == lua->waits[coroutine].thread &&
		    lua_process_coroutine_state(process, i) == COROUTINE_SUSPENDED)
			return true;
	return false;
}

static int take_wait(struct lua_process *process, const struct lua_waits *lua, size_t coroutine,
		     struct request_wait *ret_wait)
{
	int error;

	*ret_wait = (struct request_wait){ .is_due = lua->is_due[coroutine] };
	error = take_frames(process, coroutine, ret_wait);
	if (!error)
		lua_wait_name(process, &lua->waits[coroutine], ret_wait->frames, ret_wait->frame_count,
			      ret_wait->name);
	return error;
}

/* Does the coroutine wait, and for no other one of the request? */
static bool is_own(struct lua_process *process, const struct lua_waits *lua, size_t index, size_t coroutine,
		   const struct request_wait *wait, bool has_upstream)
{
	if (lua_process_coroutine_state(process, coroutine) != COROUTINE_SUSPENDED)
		return false;
	switch (lua_wait_end(&lua->waits[coroutine], wait->frames, wait->frame_count)) {
	case LUA_WAIT_ENDS_OUTSIDE: return true;
	case LUA_WAIT_ENDS_INSIDE: return false;
	/* Lua that ngx.exit() has ended, and what has never gone on after coroutine.yield(), look so, too. */
	case LUA_WAIT_ENDS_UNKNOWN:
		return !has_upstream && !has_waiting_child(process, lua, index, coroutine);
	}
	return false;
}

static int take_waits(struct lua_process *process, const struct lua_waits *lua, size_t index,
		      bool has_upstream, struct request_wait ret_waits[static LIGHT_THREADS_MAX],
		      size_t *ret_count)
{
	size_t count = 0;

	for (size_t i = 0; i < lua->count[index]; i++) {
		size_t coroutine = lua->first[index] + i;
		int error = take_wait(process, lua, coroutine, &ret_waits[count]);

		if (error)
			return error;
		count += is_own(process, lua, index, coroutine, &ret_waits[count], has_upstream);
	}
	*ret_count = count;
	return 0;
}

static void name_upstream_wait(const struct nginx_upstream *upstream, struct request_wait *wait)
{
	snprintf(wait->name, sizeof(wait->name), "%s: %s", name_upstream(upstream),
		 upstream->peer[0] ? upstream->peer : "-");
}

/* Of a request that no Lua and no upstream work for. */
static void name_own_wait(const struct waiting_request *waiting, bool waits_for_cache,
			  struct request_wait *wait)
{
	if (waiting->client == CONNECTION_WAIT_NONE && !waits_for_cache && name_upstream(&waiting->behind))
		name_upstream_wait(&waiting->behind, wait);
	else
		snprintf(wait->name, sizeof(wait->name), "%s",
			 waits_for_cache ? "cache lock" : name_client_wait(waiting));
}

/* Of a request without Lua that waits. The first wait has its frames already. Returns how many there are. */
static size_t name_waits(const struct waiting_request *waiting, struct request_wait waits[static 2])
{
	bool for_client = waits_for_client(waiting), for_both = for_client && waits_for_both(waiting);
	struct request_wait *last = &waits[for_both];

	if (for_both)
		*last = waits[0];
	if (for_client)
		snprintf(waits[0].name, sizeof(waits[0].name), "%s", name_client_wait(waiting));
	if (!for_client || for_both)
		name_upstream_wait(&waiting->upstream, last);
	return 1 + for_both;
}

int request_waits_of(struct lua_process *process, const struct waiting_request *waiting,
		     const struct lua_waits *lua, size_t index,
		     struct request_wait ret_waits[static LIGHT_THREADS_MAX], size_t *ret_count)
{
	bool has_upstream = name_upstream(&waiting->upstream) != NULL;
	bool has_lua = lua->is_there[index] && lua->count[index];
	int error = 0;

	*ret_count = 0;
	/* Lua ends before nginx asks an upstream: if Lua waits, that one has failed. */
	if (has_lua)
		error = take_waits(process, lua, index, has_upstream, ret_waits, ret_count);
	if (error || *ret_count)
		return error;
	*ret_count = 1;
	ret_waits[0] = (struct request_wait){ .frame_count = 0 };
	if (has_lua)
		error = take_wait(process, lua, lua->first[index], &ret_waits[0]);
	if (has_upstream)
		*ret_count = name_waits(waiting, ret_waits);
	else if (!lua->is_there[index])
		snprintf(ret_waits[0].name, sizeof(ret_waits[0].name), "unknown");
	else if (!has_lua)
		name_own_wait(waiting, lua->waits_for_cache[index], &ret_waits[0]);
	return error;
}

struct sample_request request_waits_label(const struct waiting_request *waiting, uint64_t now_ns,
					  char route[static ROUTE_BYTES])
{
	const struct nginx_request *request = &waiting->request;
	uint64_t start_ns = request->start_ms * NS_PER_MS;

	nginx_request_route(request, route);
	return (struct sample_request){
		.route = route,
		.method = request->method[0] ? request->method : NULL,
		.host = request->host[0] ? request->host : NULL,
		.status = request->status,
		.connection = request->number,
		.number = request->ordinal,
		.age_ns = start_ns && now_ns > start_ns ? now_ns - start_ns : 0,
	};
}

/* SPDX-License-Identifier: MIT */
/* Requests of nginx in a process, and the Lua that works for them. */
#include "src/inspect/lua_process_parts.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "luajit-layouts/field.h"
#include "memory/page_cache.h"
#include "src/linux/clocks/clock.h"
#include "unwind/nginx/gateway.h"
#include "unwind/nginx/light_threads.h"
#include "unwind/nginx/timers.h"

enum {
	NS_PER_MS = 1000 * 1000,
	GATEWAY_TRIES_MAX = 16, /* a program loads its gateway as it begins */
	TIMER_FLAG_TRIES_MAX = 100,
};

const struct request_members *lua_process_request_members(const struct lua_process *process)
{
	return lua_image_request_members(process->lua);
}

void process_find_gateways(struct lua_process *process)
{
	/* The names of modules are many small objects close together. */
	struct page_cache *cache = NULL;

	if (lua_image_request_layout(process->lua)->ctx_ref == 0)
		return;
	for (size_t i = 0; i < lua_image_count(process->lua); i++) {
		struct global_state *global = lua_image_global(process->lua, i);

		if (global->gateway || global->gateway_tries == GATEWAY_TRIES_MAX)
			continue;
		if (!cache)
			cache = page_cache_new(process->memory);
		if (!cache)
			return;
		global->gateway_tries++;
		global->gateway = gateway_new(page_cache_memory(cache), &global->vm->layout, global->g);
	}
	page_cache_free(cache);
}

void lua_process_match_route(struct lua_process *process, struct nginx_request *request)
{
	const struct request_layout *layout = lua_image_request_layout(process->lua);
	const struct global_state *global = lua_image_gateway(process->lua);
	struct memory_range ranges[REQUEST_RANGES];
	struct request_context context;

	if (global && request_context(process->memory, layout, request->address, ranges, &context))
		gateway_route(process->memory, layout, &global->vm->layout, global->gateway, &context,
			      request->matched);
}

bool lua_process_read_request(struct lua_process *process, uint64_t address,
			      struct nginx_request *ret_request)
{
	if (!nginx_request_read(process->memory, lua_process_request_members(process), address, ret_request))
		return false;
	lua_process_match_route(process, ret_request);
	return true;
}

bool lua_process_connections(struct lua_process *process, struct connections *ret_connections)
{
	const struct request_members *members = lua_process_request_members(process);
	uint64_t cycle;

	if (!members->known || members->cycle == 0 || !memory_u64(process->memory, members->cycle, &cycle) ||
	    cycle == 0)
		return false;
	/* It is searched for once: nginx has the same connections until it has another cycle. */
	if (process->connections_cycle != cycle) {
		if (!connections_find(process->memory, members, &process->connections))
			return false;
		process->connections_cycle = cycle;
	}
	*ret_connections = process->connections;
	return true;
}

void process_find_request_places(struct lua_process *process)
{
	struct connections connections;
	struct request_places *places = process->places;

	if (process->core || !lua_process_connections(process, &connections))
		return;
	if (!places)
		places = process->places = calloc(1, sizeof(*places));
	if (!places)
		return;
	places->connections = connections;
	places->heap_count = 0;
	for (size_t i = 0; i < maps_count(process->maps) && places->heap_count < REQUEST_HEAPS_MAX; i++) {
		const struct mapping *mapping = maps_at(process->maps, i);
		struct request_heap *last = places->heap_count ? &places->heaps[places->heap_count - 1]
							       : NULL;

		if (mapping->inode || !(mapping->access & MAPPING_WRITE) ||
		    (mapping->path[0] && strcmp(mapping->path, "[heap]") != 0))
			continue;
		if (last && last->end == mapping->begin)
			last->end = mapping->end;
		else
			places->heaps[places->heap_count++] = (struct request_heap){ mapping->begin,
										     mapping->end };
	}
}

bool lua_process_has_timer_flags(struct lua_process *process)
{
	const struct request_members *members = lua_process_request_members(process);
	const struct layout *luajit = lua_image_count(process->lua)
					      ? &lua_image_global(process->lua, 0)->vm->layout
					      : NULL;
	struct connections connections;
	enum timer_flags flags;
	struct timers timers;

	if (process->has_timer_flags || members->timers == 0 ||
	    process->timer_flag_tries == TIMER_FLAG_TRIES_MAX ||
	    !lua_process_connections(process, &connections) ||
	    timers_read(process->memory, members->timers, TIMERS_ALL, &timers))
		return process->has_timer_flags;
	flags = timers_compare_flags(process->memory, &timers,
				     timers_offset(process->memory, &timers, &connections, luajit),
				     &connections);
	process->has_timer_flags = flags == TIMER_FLAGS_AGREE;
	process->timer_flag_tries += flags == TIMER_FLAGS_DIFFER;
	timers_clear(&timers);
	return process->has_timer_flags;
}

/* The coroutines of the request with this context, in whichever VM. VMs of one LuaJIT have one layout. */
static void find_light_threads(struct lua_process *process, uint64_t request,
			       const struct request_context *context, struct light_threads *ret_threads)
{
	const struct request_layout *layout = lua_image_request_layout(process->lua);
	const struct vm_code *tried = NULL;

	*ret_threads = (struct light_threads){ .count = 0 };
	for (size_t i = 0; i < lua_image_count(process->lua) && ret_threads->count == 0; i++) {
		const struct vm_code *vm = lua_image_global(process->lua, i)->vm;

		if (vm != tried)
			light_threads_find(process->memory, layout, &vm->layout, request, context,
					   ret_threads);
		tried = vm;
	}
}

bool lua_process_capture_request(struct lua_process *process, uint64_t request, const char **ret_phase,
				 size_t *ret_more)
{
	const struct request_layout *layout = lua_image_request_layout(process->lua);
	struct light_threads threads;
	struct memory_range ranges[REQUEST_RANGES];
	struct request_context context;
	size_t global;

	*ret_phase = NULL;
	if (!request_context(process->memory, layout, request, ranges, &context))
		return false;
	*ret_phase = request_phase(context.phase);
	find_light_threads(process, request, &context, &threads);
	if (threads.count == 0 || !lua_process_find_global(process, threads.g, &global))
		return false;
	lua_process_capture_coroutines(process, global, threads.threads, threads.count);
	if (process->capture.thread_count != threads.count)
		return false;
	*ret_more = threads.more;
	return true;
}

bool lua_process_light_thread(struct lua_process *process, uint64_t thread,
			      struct light_thread *ret_light_thread)
{
	struct global_state *first = lua_image_count(process->lua) ? lua_image_global(process->lua, 0) : NULL;
	struct global_state *global = NULL;
	uint64_t g;

	if (!first)
		return false;
	/* What hints say of a light userdata is true of one VM. */
	if (field_reference(process->memory, &first->vm->layout, thread + (uint64_t)first->vm->layout.L_glref,
			    &g))
		global = lua_image_find(process->lua, g);
	if (!global)
		global = first;
	return light_thread_read(process->memory, lua_image_request_layout(process->lua), &global->vm->layout,
				 thread, &global->request_hints, ret_light_thread);
}

void lua_process_light_threads(struct lua_process *process, uint64_t request, const char **ret_phase,
			       struct light_threads *ret_threads)
{
	struct memory_range ranges[REQUEST_RANGES];
	struct request_context context;

	ret_threads->count = 0;
	if (!request_context(process->memory, lua_image_request_layout(process->lua), request, ranges,
			     &context))
		return;
	find_light_threads(process, request, &context, ret_threads);
	if (ret_threads->count)
		*ret_phase = request_phase(context.phase);
}

/* The request that the captured thread works for, in Lua or in nginx's own code; NULL if there is none. */
static const struct nginx_request *captured_request(const struct capture *capture)
{
	if (capture->has_request_context)
		return capture->request.address ? &capture->request : NULL;
	return capture->on_stack.verdict == STACK_REQUEST_FOUND
		       ? &capture->on_stack.requests[capture->on_stack.found]
		       : NULL;
}

struct sample_request lua_process_request(struct lua_process *process, uint64_t time_ns)
{
	const struct nginx_request *request = captured_request(&process->capture);
	uint64_t start_ns, captured_ns;

	if (!request)
		return (struct sample_request){
			.route = process->capture.on_stack.verdict == STACK_REQUEST_UNKNOWN ? ROUTE_UNKNOWN
											    : NULL,
		};
	start_ns = request->start_ms * NS_PER_MS;
	/* nginx notes the time of day. */
	captured_ns = clock_now_ns(CLOCK_REALTIME) - (clock_now_ns(CLOCK_MONOTONIC) - time_ns);
	nginx_request_route(request, process->route);
	if (process->route[0] == '\0') /* nginx has not read its first line yet */
		return (struct sample_request){ .route = ROUTE_UNKNOWN };
	return (struct sample_request){
		.route = process->route,
		.method = request->method[0] ? request->method : NULL,
		.host = request->host[0] ? request->host : NULL,
		.status = request->status,
		.is_subrequest = request->main != request->address,
		.connection = request->number,
		.number = request->ordinal,
		.age_ns = start_ns && captured_ns > start_ns ? captured_ns - start_ns : 0,
	};
}

/* SPDX-License-Identifier: MIT */
/* Requests of nginx in a process, and the Lua that works for them. */
#include "src/inspect/lua_process_parts.h"

#include <time.h>

#include "src/linux/clocks/clock.h"
#include "unwind/nginx/light_threads.h"

enum { NS_PER_MS = 1000 * 1000 };

const struct request_members *lua_process_request_members(const struct lua_process *process)
{
	return lua_image_request_members(process->lua);
}

bool lua_process_capture_request(struct lua_process *process, uint64_t request, const char **ret_phase)
{
	const struct request_layout *layout = lua_image_request_layout(process->lua);
	uint64_t threads[LIGHT_THREADS_MAX];
	struct memory_range ranges[REQUEST_RANGES];
	struct request_context context;

	*ret_phase = NULL;
	if (!request_context(process->memory, layout, request, ranges, &context))
		return false;
	*ret_phase = request_phase(context.phase);
	for (size_t i = 0; i < lua_image_count(process->lua); i++) {
		const struct global_state *global = lua_image_global(process->lua, i);
		size_t count = light_threads_find(process->memory, layout, &global->vm->layout, request,
						  &context, threads);

		lua_process_capture_coroutines(process, i, threads, count);
		if (count && process->capture.thread_count == count)
			return true;
	}
	return false;
}

struct sample_request lua_process_request(struct lua_process *process, uint64_t time_ns)
{
	const struct nginx_request *request = &process->capture.request;
	uint64_t start_ns = request->start_ms * NS_PER_MS, captured_ns;

	if (!process->capture.has_request_context || request->address == 0)
		return (struct sample_request){ 0 };
	/* nginx notes the time of day. */
	captured_ns = clock_now_ns(CLOCK_REALTIME) - (clock_now_ns(CLOCK_MONOTONIC) - time_ns);
	route_of(request->uri, process->route);
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

/* SPDX-License-Identifier: MIT */
/* Requests of nginx in a process, and the Lua that works for them. */
#include "src/inspect/lua_process_parts.h"

#include "unwind/nginx/light_threads.h"

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

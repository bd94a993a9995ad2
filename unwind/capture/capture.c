/* SPDX-License-Identifier: MIT */
/* The order of a capture: what to copy first, in one go, and what then; the hints for the next. */
#include "unwind/capture/capture.h"

#include "unwind/capture/capture_parts.h"
#include "unwind/capture/lua_moved.h"

/*
 * Copy in one go: native stack, global fields of the global_States, and the Lua
 * thread and stack that were in use last time and most likely still are.
 */
static void capture_first(struct capture *capture, struct capture_hints *hints)
{
	enum { RANGES_MAX = STACK_PAGES_MAX + 2 * CAPTURE_GLOBALS_MAX + 2 + REQUEST_RANGES };
	size_t stack_bytes = hints->stack_bytes ? hints->stack_bytes : CAPTURE_STACK_BYTES;
	struct memory_range ranges[RANGES_MAX];
	struct global_state *globals[CAPTURE_GLOBALS_MAX];
	size_t global_count = 0, stack_count, count;

	stack_count = count = capture_stack_ranges(capture, hints, capture->stack_begin + stack_bytes,
						   ranges);
	for (size_t i = 0; i < lua_image_count(capture->lua) && global_count < CAPTURE_GLOBALS_MAX; i++) {
		struct global_state *global = lua_image_global(capture->lua, i);

		if (!capture_wants_global(capture, global, hints))
			continue;
		globals[global_count++] = global;
		ranges[count++] = capture_global_range(global);
		ranges[count++] = capture_traces_range(global);
	}
	ranges[count++] = hints->lua_thread;
	ranges[count++] = hints->lua_stack;
	for (size_t i = 0; i < REQUEST_RANGES; i++)
		ranges[count++] = hints->request[i];
	snapshot_capture_first(capture->snapshot, ranges, count, &hints->guesses);
	capture_note_stack(capture, hints, ranges, stack_count);
	for (size_t i = 0; i < global_count; i++)
		if (ranges[stack_count + 2 * i].status == MEMORY_OK)
			capture_view_global(capture, globals[i]);
}

const struct lua_thread *capture_find_thread(const struct capture *capture, uint64_t address)
{
	for (size_t i = 0; i < capture->thread_count; i++)
		if (capture->threads[i].address == address)
			return &capture->threads[i];
	return NULL;
}

const struct global_view *capture_find_global(const struct capture *capture,
					      const struct global_state *global)
{
	for (size_t i = 0; i < capture->global_count; i++)
		if (capture->globals[i].global == global)
			return &capture->globals[i];
	return NULL;
}

void capture_stacks(struct capture *capture, const struct capture_process *process,
		    const struct registers *registers, struct capture_hints *hints)
{
	capture->lua = process->lua;
	capture->registers = *registers;
	capture->snapshot = process->snapshot;
	capture->stack_begin = registers->sp - BELOW_STACK_BYTES;
	capture->stack_end = capture->stack_begin;
	capture->own_begin = capture->own_end = 0;
	capture->global_count = 0;
	capture->thread_count = 0;
	capture->running = NULL;
	capture->no_unknown_state = false;
	stack_requests_begin(&capture->on_stack);
	capture->request_reads = 0;

	capture_first(capture, hints);
	capture_other_globals(capture);
	capture_threads(capture, hints);
	capture_request(capture, hints);
	capture_parents(capture);
	capture_lua_stacks(capture);
	for (size_t i = 0; i < capture->thread_count; i++)
		lua_moved_capture(process->snapshot, registers, &capture->threads[i]);
}

void capture_functions(struct capture *capture, struct lua_objects *objects)
{
	for (size_t i = 0; i < capture->thread_count; i++)
		capture_stack_functions(capture, objects, &capture->threads[i]);
}

/*
 * The next sample most likely reads the same memory. If no Lua ran, the hints on it stay
 * for the next time that some does.
 */
static void note_hints(const struct capture *capture, bool is_trial, struct capture_hints *hints)
{
	const struct lua_thread *thread = &capture->threads[0];

	if (capture->thread_count == 0 && capture->on_stack.count == 0)
		return;
	snapshot_note_guesses(capture->snapshot, capture->stack_begin, capture->stack_end, is_trial,
			      &hints->guesses);
	if (capture->thread_count == 0)
		return;
	if (!is_trial)
		hints->reads = snapshot_read_count(capture->snapshot) - capture->request_reads;
	hints->g = thread->global->g;
	hints->lua_thread = (struct memory_range){ .address = thread->address,
						   .length = (size_t)thread->layout->L_size };
	hints->lua_stack = capture_lua_stack_range(thread);
}

void capture_finish(struct capture *capture, struct capture_hints *hints)
{
	snapshot_seal(capture->snapshot);
	note_hints(capture, false, hints);
	hints->sp = capture->registers.sp;
	for (size_t i = 0; i < capture->thread_count; i++)
		lua_thread_view(&capture->threads[i], capture->snapshot);
}

/*
 * Only the stack pointer is needed, to tell which Lua threads run here; the lowest
 * address that it may have in the page serves as well. How much of the native stack to
 * copy stays as it was: the stack may be another one by now. Where a stack ends can only
 * be found here: a page that is not in memory is not read while a thread is held.
 */
void capture_rehearse(struct capture *capture, const struct capture_process *process,
		      struct capture_hints *hints)
{
	struct registers registers = { .sp = hints->sp };
	struct capture_hints found = *hints;

	if (hints->sp % PAGE_SIZE > BELOW_STACK_BYTES)
		registers.sp -= hints->sp % PAGE_SIZE - BELOW_STACK_BYTES;
	lua_objects_begin(process->objects, false);
	capture_stacks(capture, process, &registers, &found);
	capture_functions(capture, process->objects);
	note_hints(capture, true, &found);
	found.stack_bytes = hints->stack_bytes;
	*hints = found;
}

void capture_thread(struct capture *capture, const struct capture_process *process,
		    const struct registers *registers, struct capture_hints *hints)
{
	lua_objects_begin(process->objects, true);
	capture_stacks(capture, process, registers, hints);
	capture_stack_requests(capture, process, hints);
	capture_functions(capture, process->objects);
	for (size_t i = 0; i < capture->global_count; i++)
		capture_traces(capture, process->objects, &capture->globals[i]);
	capture_made_code(capture);
	capture_values(capture, process, true);
	capture_finish(capture, hints);
}

void capture_reload(struct capture *capture)
{
	for (size_t i = 0; i < capture->global_count; i++)
		capture_load_view(snapshot_memory(capture->snapshot), capture->globals[i].global,
				  &capture->globals[i]);
	for (size_t i = 0; i < capture->thread_count; i++) {
		struct lua_thread *thread = &capture->threads[i];
		const uint8_t *bytes = snapshot_view(capture->snapshot, thread->address,
						     (size_t)thread->layout->L_size);
		uint64_t parent = thread->parent;

		if (bytes && lua_thread_load(thread, thread->global, thread->address, bytes)) {
			lua_thread_view(thread, capture->snapshot);
			thread->parent = parent;
		}
	}
}

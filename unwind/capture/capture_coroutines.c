/* SPDX-License-Identifier: MIT */
/* Capture coroutines that no native code runs, many at a time. */
#include "memory/array.h"
#include "unwind/capture/capture_parts.h"

#include <stdlib.h>

#include "unwind/lua/luajit.h"

struct function_list {
	uint64_t *addresses; /* owned */
	size_t count, size;
};

static bool add_function(struct function_list *list, uint64_t function)
{
	uint64_t *addresses = array_grow(list->addresses, &list->size, list->count + 1, sizeof(*addresses));

	if (!addresses)
		return false;
	list->addresses = addresses;
	list->addresses[list->count++] = function;
	return true;
}

/* List the functions on a thread's stack up to its top; nothing above will run on. */
static void list_functions(struct capture *capture, struct lua_thread *thread, struct function_list *list)
{
	uint64_t end = thread->top < thread->stack_end ? thread->top : thread->stack_end;

	lua_thread_view(thread, capture->snapshot);
	for (uint64_t at = thread->stack; thread->slots && at < end; at += SLOT_SIZE) {
		uint64_t object = capture_function_in_slot(
			thread->layout, load_bytes(thread->slots, (int32_t)(at - thread->stack), SLOT_SIZE));

		if (object && !add_function(list, object))
			return;
	}
}

static void add_coroutines(struct capture *capture, struct global_state *global, const uint64_t *addresses,
			   size_t count)
{
	struct memory_range ranges[CAPTURE_THREADS_MAX];

	for (size_t i = 0; i < count; i++)
		ranges[i] = (struct memory_range){ .address = addresses[i],
						   .length = (size_t)global->vm->layout.L_size };
	snapshot_capture(capture->snapshot, ranges, count);
	for (size_t i = 0; i < count; i++)
		if (ranges[i].status == MEMORY_OK && lua_thread_load(&capture->threads[capture->thread_count],
								     global, addresses[i], ranges[i].copy))
			capture->thread_count++;
}

void capture_coroutines(struct capture *capture, const struct capture_process *process,
			struct global_state *global, const uint64_t *addresses, size_t count)
{
	struct snapshot *snapshot = process->snapshot;
	struct function_list functions = { 0 };

	capture->snapshot = snapshot;
	capture->stack_begin = capture->stack_end = 0;
	capture->own_begin = capture->own_end = 0;
	capture->global_count = 0;
	capture->thread_count = 0;
	capture->running = NULL;
	capture->no_unknown_state = false;
	capture->request.address = 0;
	stack_requests_begin(&capture->on_stack);
	lua_objects_begin(process->objects, true);
	capture_view_global(capture, global);
	add_coroutines(capture, global, addresses, count < CAPTURE_THREADS_MAX ? count : CAPTURE_THREADS_MAX);
	capture_lua_stacks(capture);
	/* Capture all functions in one go: copies move when more is copied. */
	for (size_t i = 0; i < capture->thread_count; i++)
		list_functions(capture, &capture->threads[i], &functions);
	lua_objects_capture(process->objects, snapshot, &global->vm->layout, functions.addresses,
			    functions.count);
	free(functions.addresses);
	capture_values(capture, process, false);
	snapshot_seal(snapshot);
	for (size_t i = 0; i < capture->thread_count; i++)
		lua_thread_view(&capture->threads[i], snapshot);
}

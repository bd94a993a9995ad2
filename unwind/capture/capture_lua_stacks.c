/* SPDX-License-Identifier: MIT */
/* Capture Lua stacks: all of their slots, and the functions in them. */
#include "unwind/capture/capture_parts.h"

#include "unwind/lua/luajit.h"

enum { FUNCTIONS_BATCH = 4096 };

struct memory_range capture_lua_stack_range(const struct lua_thread *thread)
{
	return (struct memory_range){ .address = thread->stack,
				      .length = (size_t)(thread->stack_end - thread->stack) };
}

void capture_lua_stacks(struct capture *capture)
{
	struct memory_range ranges[CAPTURE_THREADS_MAX];
	size_t count = 0;

	for (size_t i = 0; i < capture->thread_count; i++) {
		struct memory_range range = capture_lua_stack_range(&capture->threads[i]);

		if (!snapshot_view(capture->snapshot, range.address, range.length))
			ranges[count++] = range;
	}
	if (count)
		snapshot_capture(capture->snapshot, ranges, count);
}

uint64_t capture_function_in_slot(const struct layout *layout, uint64_t value)
{
	bool is_function = tvalue_tag(layout->gc64, value) == TAG_FUNC;

	/* Without GC64 a frame slot has no tag: its low half may be the address of any object. */
	if (!is_function && (layout->gc64 || (value & UINT32_MAX) % SLOT_SIZE))
		return 0;
	return tvalue_object(layout->gc64, value);
}

void capture_stack_functions(struct capture *capture, struct lua_objects *objects, struct lua_thread *thread)
{
	const struct layout *layout = thread->layout;
	uint64_t functions[FUNCTIONS_BATCH], last = 0;
	size_t count = 0;

	lua_thread_view(thread, capture->snapshot);
	if (!thread->slots)
		return;
	for (uint64_t at = thread->stack; at < thread->stack_end; at += SLOT_SIZE) {
		uint64_t object = capture_function_in_slot(
			layout, load_bytes(thread->slots, (int32_t)(at - thread->stack), SLOT_SIZE));

		if (object == 0 || object == last)
			continue;
		last = object;
		functions[count++] = object;
		if (count == FUNCTIONS_BATCH) {
			lua_objects_capture(objects, capture->snapshot, layout, functions, count);
			lua_thread_view(thread, capture->snapshot);
			count = 0;
		}
	}
	lua_objects_capture(objects, capture->snapshot, layout, functions, count);
}

/* SPDX-License-Identifier: MIT */
/* Capture what the values in Lua stacks lead to. */
#include "unwind/capture/capture_parts.h"

#include "unwind/lua/luajit.h"
#include "unwind/lua/value_capture.h"

enum {
	SLOTS_MAX = 16384,     /* of one stack, the innermost first */
	ABOVE_SLOTS_MAX = 256, /* a frame has no more (LJ_MAX_SLOTS) */
	NEAR_SLOTS = 64,       /* to both sides of a thread's base */
	TAG_CDATA = ~10,
	BELOW_STACK_WORDS = 64, /* of native stack, where compiled code has its values */
};

/* The end of the slots that may be in use: a frame's length above the highest pointer into the stack. */
static uint64_t used_end(const struct capture *capture, const struct lua_thread *thread, bool has_registers)
{
	struct registers registers = capture->registers;
	uint64_t end = thread->base > thread->top ? thread->base : thread->top;

	for (int number = 0; has_registers && number < REGISTER_NUMBERS; number++) {
		const uint64_t *value = registers_locate(&registers, number);

		if (value && *value >= thread->stack && *value<thread->stack_end && * value> end)
			end = *value;
	}
	end += (uint64_t)ABOVE_SLOTS_MAX * SLOT_SIZE;
	return end < thread->stack_end ? end : thread->stack_end;
}

/* Take the values of the innermost slots. */
static void add_slots(struct value_capture *values, const struct lua_thread *thread, uint64_t end)
{
	uint64_t at = (end - thread->stack) / SLOT_SIZE;
	uint64_t lowest = at > SLOTS_MAX ? at - SLOTS_MAX : 0;

	while (at-- > lowest)
		if (!value_capture_add(values,
				       load_bytes(thread->slots, (int32_t)(at * SLOT_SIZE), SLOT_SIZE)))
			return;
}

/* Without GC64 a frame's function has no tag. */
static void add_functions(struct value_capture *values, const struct lua_objects *objects,
			  const struct lua_thread *thread, uint64_t end)
{
	uint64_t at = (end - thread->stack) / SLOT_SIZE;
	uint64_t lowest = at > SLOTS_MAX ? at - SLOTS_MAX : 0;

	while (!thread->layout->gc64 && at-- > lowest) {
		uint64_t object = capture_function_in_slot(
			thread->layout, load_bytes(thread->slots, (int32_t)(at * SLOT_SIZE), SLOT_SIZE));

		if (object && lua_objects_function(objects, object) &&
		    !value_capture_add_object(values, object))
			return;
	}
}

/*
 * Take the strings and cdata near the base: arguments of the C function that runs, and its caller's
 * variables.
 */
static void add_near(struct value_capture *values, const struct lua_thread *thread)
{
	const uint64_t reach = (uint64_t)NEAR_SLOTS * SLOT_SIZE;
	uint64_t at = thread->base - thread->stack > reach ? thread->base - reach : thread->stack;

	for (; at < thread->stack_end && at < thread->base + reach; at += SLOT_SIZE) {
		uint64_t value = load_bytes(thread->slots, (int32_t)(at - thread->stack), SLOT_SIZE);
		int32_t tag = tvalue_tag(thread->layout->gc64, value);

		if ((tag == TAG_STR || tag == TAG_CDATA) && !value_capture_add(values, value))
			return;
	}
}

void capture_values(struct capture *capture, const struct capture_process *process, bool has_registers)
{
	for (size_t i = 0; process->values && i < capture->thread_count; i++) {
		struct lua_thread *thread = &capture->threads[i];
		uint64_t end;

		lua_thread_view(thread, capture->snapshot);
		if (!thread->slots || !lua_thread_contains_base(thread, thread->base))
			continue;
		value_capture_begin(process->values, capture->snapshot, thread->layout);
		if (process->only_near_values) {
			add_near(process->values, thread);
			value_capture_copy(process->values);
			continue;
		}
		end = used_end(capture, thread, has_registers);
		if (end <= thread->stack)
			continue;
		add_functions(process->values, process->objects, thread, end);
		add_slots(process->values, thread, end);
		value_capture_copy(process->values);
	}
}

/* SPDX-License-Identifier: MIT */
#include "src/survey/dump_stacks.h"

#include <errno.h>
#include <stdlib.h>

#include "luajit-layouts/field.h"
#include "memory/hash.h"
#include "unwind/lua/object_walk.h"

enum {
	BATCH = 64,                   /* coroutines read per slice */
	BATCH_VALUES = 8,             /* the same with what their values lead to */
	FRAMES_WITH_VARIABLES = 4096, /* of one stack */
	VARIABLES_MAX = 1 << 20,      /* in a report */
	WALKS_MAX = 3,                /* an incomplete walk starts again; it reports no coroutine twice */
};

int dump_lost_thread(const struct dump_thread *thread, enum lost_reason reason, struct dump_process *report)
{
	struct frame frame = { .function = lost_function(reason) };

	return dump_process_add_thread(report, thread, &(struct dump_stack){ .frames = &frame, .count = 1 });
}

bool dump_is_whole(const struct frame *frames, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (frames[i].function->kind == FRAME_LOST)
			return false;
	return true;
}

/*
 * Add the variables of the frames unwound last, the innermost first, as many as the report
 * has room for; none if they are not wanted. 0 or -ENOMEM.
 */
static int add_variables(struct lua_process *process, struct dump_process *report, struct dump_stack *stack)
{
	if (!lua_process_wants_values(process) || stack->count == 0)
		return 0;
	stack->variables = calloc(stack->count, sizeof(*stack->variables));
	if (!stack->variables)
		return -ENOMEM;
	for (size_t i = 0; i < stack->count; i++) {
		if (i == FRAMES_WITH_VARIABLES || report->variable_count >= VARIABLES_MAX) {
			report->variables_cut = true;
			break;
		}
		if (lua_process_variables(process, i, &stack->variables[i])) {
			dump_stack_free_variables(stack);
			return -ENOMEM;
		}
		report->variable_count += stack->variables[i].count;
	}
	return 0;
}

static int add_thread(struct lua_process *process, const struct dump_thread *thread,
		      const struct frame *frames, size_t count, struct dump_process *report)
{
	struct dump_stack stack = { .frames = (struct frame *)(uintptr_t)frames, .count = count };
	int error = add_variables(process, report, &stack);

	return error ? error : dump_process_add_thread(report, thread, &stack);
}

int dump_thread(struct lua_process *process, const struct dump_thread *thread, bool only_whole,
		struct dump_process *report, bool *ret_whole)
{
	struct dump_thread found = *thread;
	const struct frame *frames;
	enum vm_state vm_state;
	size_t count;
	int error = lua_process_unwind(process, &frames, &count, &vm_state);

	if (error)
		return error;
	*ret_whole = dump_is_whole(frames, count);
	found.phase = lua_process_phase(process);
	if (*ret_whole || !only_whole)
		error = add_thread(process, &found, frames, count, report);
	return error;
}

/*---- Coroutines ----*/

/* A coroutine that is in the report. */
struct seen {
	uint64_t address;
	UT_hash_handle hh;
};

struct search {
	struct lua_process *process;
	struct hold *hold;
	struct object_walk *walk;
	struct dump_process *report;
	struct dump_vm *vm;
	struct seen *seen;
	size_t global;
	enum object_walk_step step; /* the last one of the last slice */
	uint64_t found[BATCH];
	size_t found_count, batch;
};

static bool is_seen(const struct search *search, uint64_t address)
{
	struct seen *seen;

	HASH_FIND(hh, search->seen, &address, sizeof(address), seen);
	return seen != NULL;
}

static bool note_seen(struct search *search, uint64_t address)
{
	struct seen *seen = calloc(1, sizeof(*seen));

	if (!seen)
		return false;
	seen->address = address;
	HASH_ADD(hh, search->seen, address, sizeof(seen->address), seen);
	if (hash_added(&seen->hh))
		return true;
	free(seen);
	return false;
}

static void forget_seen(struct search *search)
{
	HASH_FREE_ALL(search->seen);
}

/* Find the next coroutines and copy them. */
static void read_slice(void *context)
{
	struct search *search = context;
	enum object_walk_step step = OBJECT_WALK_FOUND;
	uint64_t address;

	search->found_count = 0;
	object_walk_begin_slice(search->walk);
	while (step == OBJECT_WALK_FOUND) {
		step = object_walk_next(search->walk, &address);
		if (step != OBJECT_WALK_FOUND || is_seen(search, address))
			continue;
		search->found[search->found_count++] = address;
		if (search->found_count == search->batch / 2)
			object_walk_rest(search->walk);
		if (search->found_count == search->batch)
			break;
	}
	lua_process_capture_coroutines(search->process, search->global, search->found, search->found_count);
	search->step = step;
}

static void undo_slice(void *context)
{
	struct search *search = context;

	object_walk_undo_slice(search->walk);
}

static int report_coroutine(struct search *search, size_t index)
{
	enum coroutine_state state = lua_process_coroutine_state(search->process, index);
	struct dump_stack stack = { .count = 0 };
	const struct frame *frames = NULL;
	const char *phase = NULL;
	int error = 0;

	if (state == COROUTINE_SUSPENDED || state == COROUTINE_NOT_STARTED || state == COROUTINE_DEAD ||
	    state == COROUTINE_PARKED)
		error = lua_process_unwind_coroutine(search->process, index, &frames, &stack.count);
	if (!error && stack.count) {
		stack.frames = (struct frame *)(uintptr_t)frames;
		phase = lua_process_phase(search->process);
		error = add_variables(search->process, search->report, &stack);
	}
	return error ? error : dump_vm_add(search->vm, state, phase, &stack);
}

static int report_slice(struct search *search)
{
	size_t count = lua_process_coroutine_count(search->process);

	if (count != search->found_count)
		search->vm->complete = false;
	for (size_t i = 0; i < count; i++) {
		int error = report_coroutine(search, i);

		if (error)
			return error;
	}
	for (size_t i = 0; i < search->found_count; i++)
		if (!note_seen(search, search->found[i]))
			return -ENOMEM;
	return 0;
}

static int search_global(struct search *search)
{
	do {
		int error;

		if (!search->hold) {
			read_slice(search);
		} else if (!hold_while(search->hold, read_slice, undo_slice, search)) {
			search->vm->complete = false;
			return 0;
		}
		error = report_slice(search);
		if (error)
			return error;
	} while (search->step != OBJECT_WALK_END && search->step != OBJECT_WALK_BROKEN);
	search->vm->complete &= search->step == OBJECT_WALK_END;
	return 0;
}

static int dump_global(struct lua_process *process, struct hold *hold, size_t index,
		       struct dump_process *report)
{
	const struct global_state *global = lua_process_global(process, index);
	struct search search = { .process = process, .hold = hold, .report = report, .global = index };
	int error = -ENOMEM;

	search.batch = lua_process_wants_values(process) ? BATCH_VALUES : BATCH;
	search.vm = dump_process_add_vm(report, global->g, lua_process_global_path(process, index));
	for (unsigned int i = 0; search.vm && !search.vm->complete && i < WALKS_MAX; i++) {
		search.walk = object_walk_new(lua_process_memory(process), global, GCT_THREAD);
		search.vm->complete = true;
		error = search.walk ? search_global(&search) : -ENOMEM;
		object_walk_free(search.walk);
		if (error)
			break;
	}
	forget_seen(&search);
	return error;
}

int dump_coroutines(struct lua_process *process, struct hold *hold, struct dump_process *report)
{
	int error = 0;

	for (size_t i = 0; !error && i < lua_process_global_count(process); i++)
		error = dump_global(process, hold, i, report);
	if (hold) {
		report->holds = hold_count(hold);
		report->longest_hold_ns = hold_longest_ns(hold);
	}
	dump_process_sort(report);
	return error;
}

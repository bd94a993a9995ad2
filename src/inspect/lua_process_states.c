/* SPDX-License-Identifier: MIT */
/* The states of a process, as they come and go. */
#include "src/inspect/lua_process_parts.h"

#include "src/inspect/stack_states.h"
#include "unwind/capture/unknown_states.h"

/* How many stacks ljspy searches for C frames after it has found one of an unknown state. */
enum { SEARCHES = 1000 };

void process_find_states(struct lua_process *process, struct luajit_module *luajit)
{
	vm_states_search(&luajit->states, process->memory, &luajit->known.vm, process->maps,
			 process->core ? 0 : process->pid);
	if (luajit->known.vm.confirmed)
		process_add_globals(process, luajit);
}

/* What a clue led to; of several, the last of these counts. */
enum led_to {
	LED_NOWHERE, /* no state is there */
	LED_UNSURE,  /* a state, perhaps, that cannot be told yet */
	LED_TO_STATE,
};

/* If the clue leads to a state, make it known. */
static enum led_to take_up(struct lua_process *process, const struct state_clue *clue)
{
	struct luajit_module *luajit = process_luajit_module(process, clue->vm);

	if (!luajit || luajit->known.status != RECOGNISE_OK || process->clues_left == 0)
		return LED_UNSURE;
	process->clues_left--;
	if (!recognise_is_state(process->memory, clue->vm, clue->g))
		return LED_NOWHERE;
	if (!vm_states_add(&luajit->states, clue->g))
		return LED_UNSURE;
	process->clues_left++;
	/* Confirm now: the state may be gone when the next thread is held. */
	if (!luajit->known.vm.confirmed && !process_confirm_by(process, luajit, clue->g)) {
		if (++luajit->tries == CONFIRM_TRIES_MAX)
			luajit->known.status = RECOGNISE_UNKNOWN_LAYOUT;
		return LED_UNSURE;
	}
	process_add_globals(process, luajit);
	return lua_image_find(process->lua, clue->g) ? LED_TO_STATE : LED_UNSURE;
}

static enum led_to take_up_all(struct lua_process *process, const struct state_clue *clues, size_t count)
{
	enum led_to most = LED_NOWHERE;

	for (size_t i = 0; i < count; i++) {
		enum led_to led = take_up(process, &clues[i]);

		if (led > most)
			most = led;
	}
	return most;
}

bool process_take_up_running(struct lua_process *process)
{
	struct state_clue clues[STATE_CLUES_MAX];
	size_t count = unknown_states_in_registers(&process->capture, process->image, clues);
	enum led_to in_registers = take_up_all(process, clues, count), on_stack = LED_NOWHERE;

	if (in_registers != LED_TO_STATE &&
	    (process->searches_left > 0 || unknown_states_may_compile(&process->capture, process->image))) {
		bool complete;

		if (process->searches_left > 0)
			process->searches_left--;
		count = unknown_states_on_stack(&process->capture, process->image, process->memory, clues,
						&complete);
		on_stack = take_up_all(process, clues, count);
		process->capture.no_unknown_state = complete && in_registers == LED_NOWHERE &&
						    on_stack == LED_NOWHERE;
	}
	if (in_registers != LED_TO_STATE && on_stack != LED_TO_STATE)
		return false;
	process->searches_left = SEARCHES;
	return true;
}

bool process_take_up_on_stack(struct lua_process *process, const struct memory_range *stack)
{
	struct state_clue clues[STATE_CLUES_MAX];
	size_t count;

	if (stack->length == 0 || process->stack_searches_left == 0)
		return false;
	process->stack_searches_left--;
	count = stack_states_find(process->snapshot, process->lua, process->memory, process->pid, stack,
				  clues);
	if (take_up_all(process, clues, count) != LED_TO_STATE)
		return false;
	process->stack_searches_left = STACK_SEARCHES;
	return true;
}

static bool has_lost(const struct merged_stack *stack, enum lost_reason reason)
{
	for (size_t i = 0; i < stack->count; i++)
		if (stack->frames[i].kind == MERGED_LOST && stack->frames[i].lost == reason)
			return true;
	return false;
}

/* Is there compiled code, and a VM whose layout only traces can confirm? Then a refresh confirms it. */
static bool wants_traces_confirmed(const struct lua_process *process)
{
	for (const struct luajit_module *luajit = process->luajits; luajit; luajit = luajit->next)
		if (luajit->known.status == RECOGNISE_OK && luajit->known.vm.traces_open)
			return has_lost(&process->stack, LOST_IN_TRACE);
	return false;
}

void process_note_unknown(struct lua_process *process)
{
	if (has_lost(&process->stack, LOST_STATE_UNKNOWN))
		process->searches_left = SEARCHES;
	process->wants_refresh = has_lost(&process->stack, LOST_NATIVE_UNWIND);
	/* A trace of an unknown state may have called what cannot be unwound. */
	if (process->wants_refresh && process->stack.vm_state == VM_STATE_NONE && process->searches_left == 0)
		process->searches_left = 1;
	process->wants_refresh |= wants_traces_confirmed(process);
}

bool lua_process_wants_refresh(const struct lua_process *process)
{
	return process->wants_refresh;
}

static void drop_global(struct lua_process *process, const struct global_state *global)
{
	struct luajit_module *luajit = process_luajit_module(process, global->vm);
	uint64_t g = global->g;

	if (luajit)
		vm_states_drop(&luajit->states, g);
	namer_forget_global(process->namer, g);
	lua_image_forget(process->lua, g);
	process->capture.thread_count = process->capture.global_count = 0;
	process->capture.running = NULL;
	process->stack.count = 0;
}

void process_drop_closed(struct lua_process *process)
{
	for (size_t i = lua_image_count(process->lua); i-- > 0;) {
		const struct global_state *global = lua_image_global(process->lua, i);

		if (!recognise_is_state(process->memory, global->vm, global->g))
			drop_global(process, global);
	}
}

void process_drop_vm(struct lua_process *process, const struct vm_code *vm)
{
	for (size_t i = lua_image_count(process->lua); i-- > 0;)
		if (lua_image_global(process->lua, i)->vm == vm)
			drop_global(process, lua_image_global(process->lua, i));
}

bool process_has_global(const struct lua_process *process, const struct vm_code *vm)
{
	for (size_t i = 0; i < lua_image_count(process->lua); i++)
		if (lua_image_global(process->lua, i)->vm == vm)
			return true;
	return false;
}

size_t lua_process_global_count(const struct lua_process *process)
{
	return lua_image_count(process->lua);
}

const struct global_state *lua_process_global(const struct lua_process *process, size_t index)
{
	return lua_image_global(process->lua, index);
}

bool lua_process_find_global(const struct lua_process *process, uint64_t g, size_t *ret_index)
{
	for (size_t i = 0; i < lua_image_count(process->lua); i++)
		if (lua_image_global(process->lua, i)->g == g) {
			*ret_index = i;
			return true;
		}
	return false;
}

const char *lua_process_global_path(const struct lua_process *process, size_t index)
{
	const struct module *module = image_find(process->image,
						 lua_image_global(process->lua, index)->vm->begin);

	return module ? module->path : "?";
}

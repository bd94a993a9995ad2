/* SPDX-License-Identifier: MIT */
/* How the objects of a state confirm a layout, and how a layout comes into doubt again. */
#include "src/inspect/lua_process_parts.h"

#include "memory/page_cache.h"

enum {
	/*
	 * Confirming takes milliseconds, so ljspy tries it while the target
	 * runs: an object in the middle of a change fails it then, but nothing
	 * passes it wrongly. After these tries ljspy confirms while a thread is
	 * held. If that fails CONFIRM_TRIES_MAX times, the layout is wrong.
	 */
	CONFIRM_TRIES_RUNNING = 8,
	/* Stacks that do not fit. Fewer are no reason to doubt: every layout leaves something open. */
	DOUBTS_MIN = 3,
	DOUBT_ONE_IN = 20,
};

void process_add_globals(struct lua_process *process, const struct luajit_module *luajit)
{
	for (size_t i = 0; i < luajit->states.count; i++)
		lua_image_add(process->lua, luajit->states.g[i], &luajit->known.vm);
}

static bool is_open(const struct luajit_module *luajit)
{
	return luajit->known.status == RECOGNISE_OK && luajit->states.count &&
	       (!luajit->known.vm.confirmed || luajit->known.vm.traces_open);
}

/* The checks make thousands of small reads, so they use a page cache. */
static bool confirm(struct lua_process *process, struct luajit_module *luajit, uint64_t g)
{
	struct page_cache *cache = page_cache_new(process->memory);
	bool confirmed = cache && recognise_confirm(page_cache_memory(cache), &luajit->known.vm, g,
						    process_keep_verdict, luajit) == RECOGNISE_OK;

	page_cache_free(cache);
	return confirmed;
}

static bool is_trusted(const struct lua_process *process)
{
	return process->given && process->given->is_trusted;
}

bool process_confirm_by(struct lua_process *process, struct luajit_module *luajit, uint64_t g)
{
	if (!is_trusted(process) && !confirm(process, luajit, g))
		return false;
	luajit->known.vm.confirmed = true;
	luajit->tries = 0;
	process_pass_on(process, luajit);
	process_add_globals(process, luajit);
	return true;
}

/* Each state gets its turn: one may just be opened or closed, or have no trace. */
static bool confirm_by_next(struct lua_process *process, struct luajit_module *luajit)
{
	uint64_t g = vm_states_next(&luajit->states, process->memory, &luajit->known.vm);

	return g && process_confirm_by(process, luajit, g);
}

/* Another process may have had the state or the traces that confirm the layout. */
static void take_over_confirmed(struct lua_process *process, struct luajit_module *luajit)
{
	bool was_confirmed = luajit->known.vm.confirmed;

	process_take_over(process, luajit);
	if (luajit->known.vm.confirmed && !was_confirmed)
		process_add_globals(process, luajit);
}

void process_confirm_running(struct lua_process *process, struct luajit_module *luajit)
{
	if (is_open(luajit))
		take_over_confirmed(process, luajit);
	for (unsigned i = 0; i < CONFIRM_TRIES_RUNNING && is_open(luajit); i++)
		if (confirm_by_next(process, luajit))
			return;
}

bool process_is_unconfirmed(const struct luajit_module *luajit)
{
	return is_open(luajit) && !luajit->known.vm.confirmed;
}

bool lua_process_needs_confirming(const struct lua_process *process)
{
	for (const struct luajit_module *luajit = process->luajits; luajit; luajit = luajit->next)
		if (process_is_unconfirmed(luajit))
			return true;
	return false;
}

/* Does the stack look as it would with a wrong layout? */
static bool speaks_against_layout(const struct merged_stack *stack)
{
	static const bool against[LOST_COUNT] = {
		[LOST_UNREADABLE] = true,
		[LOST_BROKEN_CHAIN] = true,
		[LOST_HALF_DONE] = true,
		[LOST_IN_TRACE] = true,
	};

	for (size_t i = 0; i < stack->count; i++)
		if (stack->frames[i].kind == MERGED_LOST && against[stack->frames[i].lost])
			return true;
	return false;
}

static bool is_doubtful(const struct luajit_module *luajit)
{
	return luajit->doubts >= DOUBTS_MIN && luajit->doubts > luajit->doubts_until_check &&
	       luajit->doubts * DOUBT_ONE_IN > luajit->samples;
}

/* The next check, which costs milliseconds, takes twice as many doubts. */
static void dispel_doubts(struct luajit_module *luajit)
{
	luajit->doubts_until_check = 2 * luajit->doubts;
	luajit->samples = luajit->doubts = luajit->doubted = 0;
	luajit->tries = 0;
}

/* The VM of the thread captured last, if its layout is confirmed; else NULL. */
static struct luajit_module *running_vm(const struct lua_process *process, uint64_t *ret_g)
{
	const struct capture *capture = &process->capture;
	const struct global_state *global = capture->thread_count   ? capture->threads[0].global
					    : capture->global_count ? capture->globals[0].global
								    : NULL;

	for (struct luajit_module *luajit = process->luajits; global && luajit; luajit = luajit->next) {
		if (&luajit->known.vm == global->vm && luajit->known.vm.confirmed) {
			*ret_g = global->g;
			return luajit;
		}
	}
	return NULL;
}

void process_weigh_stack(struct lua_process *process)
{
	uint64_t g;
	struct luajit_module *luajit = running_vm(process, &g);

	if (!luajit || is_trusted(process))
		return;
	luajit->samples++;
	if (!speaks_against_layout(&process->stack))
		return;
	luajit->doubts++;
	if (!is_doubtful(luajit) || luajit->doubted)
		return;
	if (confirm(process, luajit, g))
		dispel_doubts(luajit);
	else
		luajit->doubted = g;
}

/* Runs while the target is held. */
static void check_again(struct lua_process *process, struct luajit_module *luajit)
{
	if (!is_doubtful(luajit) ||
	    !recognise_is_state(process->memory, &luajit->known.vm, luajit->doubted) ||
	    confirm(process, luajit, luajit->doubted)) {
		dispel_doubts(luajit);
		return;
	}
	if (++luajit->tries < CONFIRM_TRIES_MAX)
		return;
	luajit->known.status = RECOGNISE_UNKNOWN_LAYOUT;
	process_drop_vm(process, &luajit->known.vm);
}

void lua_process_confirm(struct lua_process *process)
{
	for (struct luajit_module *luajit = process->luajits; luajit; luajit = luajit->next) {
		if (luajit->known.status == RECOGNISE_OK && luajit->doubted)
			check_again(process, luajit);
		if (!is_open(luajit) || luajit->known.vm.confirmed || confirm_by_next(process, luajit))
			continue;
		/* A state that is gone meanwhile proves nothing against the layout. */
		if (is_open(luajit) && ++luajit->tries == CONFIRM_TRIES_MAX)
			luajit->known.status = RECOGNISE_UNKNOWN_LAYOUT;
	}
}

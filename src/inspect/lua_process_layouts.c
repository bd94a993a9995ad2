/* What only the objects of a state can tell of a layout: confirmed, and in doubt again. */
#include "src/inspect/lua_process_parts.h"

#include "memory/page_cache.h"

enum {
	/*
	 * It takes milliseconds, so it is tried while the target runs: an
	 * object in the middle of a change fails it then, but nothing passes
	 * it wrongly. After that it is done while a thread is held, and if
	 * that fails so often the layout is held to be wrong.
	 */
	SETTLE_TRIES_RUNNING = 8,
	/* Stacks that do not fit: of fewer, every layout leaves something open. */
	DOUBTS_MIN = 3,
	DOUBT_ONE_IN = 20,
};

void process_add_universes(struct lua_process *process, const struct looked_at *one)
{
	for (size_t i = 0; i < one->states.count; i++)
		lua_image_add(process->lua, one->states.g[i], &one->known.vm);
}

static bool is_open(const struct looked_at *one)
{
	return one->known.status == RECOGNISE_OK && one->states.count &&
	       (!one->known.vm.confirmed || one->known.vm.traces_open);
}

/* The self-tests look at thousands of small things. */
static bool confirm(struct lua_process *process, struct looked_at *one, uint64_t g)
{
	struct page_cache *cache = page_cache_new(process->memory);
	bool confirmed = cache && recognise_settle(page_cache_memory(cache), &one->known.vm, g,
						   process_keep_verdict, one) == RECOGNISE_OK;

	page_cache_free(cache);
	return confirmed;
}

static bool is_trusted(const struct lua_process *process)
{
	return process->given && process->given_is_trusted;
}

bool process_settle_by(struct lua_process *process, struct looked_at *one, uint64_t g)
{
	if (!is_trusted(process) && !confirm(process, one, g))
		return false;
	one->known.vm.confirmed = true;
	one->tries = 0;
	process_pass_on(process, one);
	process_add_universes(process, one);
	return true;
}

/* One state may just be opened, closed, or have no trace: each gets its turn. */
static bool settle(struct lua_process *process, struct looked_at *one)
{
	uint64_t g = vm_states_next(&one->states, process->memory, &one->known.vm);

	return g && process_settle_by(process, one, g);
}

/* Another process may have had what it takes to tell: a state, or traces. */
static void take_over_settled(struct lua_process *process, struct looked_at *one)
{
	bool was_confirmed = one->known.vm.confirmed;

	process_take_over(process, one);
	if (one->known.vm.confirmed && !was_confirmed)
		process_add_universes(process, one);
}

void process_settle_running(struct lua_process *process, struct looked_at *one)
{
	if (is_open(one))
		take_over_settled(process, one);
	for (unsigned i = 0; i < SETTLE_TRIES_RUNNING && is_open(one); i++)
		if (settle(process, one))
			return;
}

bool lua_process_needs_settling(const struct lua_process *process)
{
	for (const struct looked_at *one = process->looked_at; one; one = one->next)
		if (is_open(one) && !one->known.vm.confirmed)
			return true;
	return false;
}

/* Does the stack look as one does if the layout is wrong? */
static bool speaks_against_layout(const struct merged_stack *stack)
{
	static const bool against[LOST_COUNT] = {
		[LOST_NO_VM_FRAME] = true,
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

static bool is_doubtful(const struct looked_at *one)
{
	return one->doubts >= DOUBTS_MIN && one->doubts > one->doubts_until_look &&
	       one->doubts * DOUBT_ONE_IN > one->samples;
}

/* From then on it takes more for another look, which costs milliseconds. */
static void dispel_doubts(struct looked_at *one)
{
	one->doubts_until_look = 2 * one->doubts;
	one->samples = one->doubts = one->doubted = 0;
	one->tries = 0;
}

/* The VM of the thread captured last, if its layout is held to be right. */
static struct looked_at *running_vm(const struct lua_process *process, uint64_t *ret_g)
{
	const struct capture *capture = &process->capture;
	const struct lua_universe *universe =
		capture->thread_count ? capture->threads[0].universe :
		capture->universe_count ? capture->universes[0].universe : NULL;

	for (struct looked_at *one = process->looked_at; universe && one; one = one->next) {
		if (&one->known.vm == universe->vm && one->known.vm.confirmed) {
			*ret_g = universe->g;
			return one;
		}
	}
	return NULL;
}

void process_weigh_stack(struct lua_process *process)
{
	uint64_t g;
	struct looked_at *one = running_vm(process, &g);

	if (!one || is_trusted(process))
		return;
	one->samples++;
	if (!speaks_against_layout(&process->stack))
		return;
	one->doubts++;
	if (!is_doubtful(one) || one->doubted)
		return;
	if (confirm(process, one, g))
		dispel_doubts(one);
	else
		one->doubted = g;
}

/* While the target is held. */
static void look_again(struct lua_process *process, struct looked_at *one)
{
	if (!is_doubtful(one) ||
	    !recognise_is_state(process->memory, &one->known.vm, one->doubted) ||
	    confirm(process, one, one->doubted)) {
		dispel_doubts(one);
		return;
	}
	if (++one->tries < SETTLE_TRIES_MAX)
		return;
	one->known.status = RECOGNISE_UNKNOWN_LAYOUT;
	lua_image_forget_vm(process->lua, &one->known.vm);
	process->capture.thread_count = process->capture.universe_count = 0;
	process->stack.count = 0;
}

void lua_process_settle(struct lua_process *process)
{
	for (struct looked_at *one = process->looked_at; one; one = one->next) {
		if (one->known.status == RECOGNISE_OK && one->doubted)
			look_again(process, one);
		if (!is_open(one) || one->known.vm.confirmed || settle(process, one))
			continue;
		/* A state that has gone meanwhile says nothing against the layout. */
		if (is_open(one) && ++one->tries == SETTLE_TRIES_MAX)
			one->known.status = RECOGNISE_UNKNOWN_LAYOUT;
	}
}

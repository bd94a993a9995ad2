#include "src/dump_stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "unwind/coroutine_walk.h"

enum {
	BATCH = 64,		/* coroutines read in a slice */
	FAILURES_MAX = 1000,	/* slices in a row in which something ran */
	REST_FACTOR = 1,	/* how long threads run on, for the time that they were held */
	REST_AFTER_FAILURE_NS = 1000 * 1000,
};

int dump_lost_thread(const struct dump_thread *thread, enum lost_reason reason,
		     struct dump_process *report)
{
	struct frame frame = { .function = functions_lost(reason) };

	return dump_process_add_thread(report, thread, &frame, 1);
}

int dump_thread(struct lua_process *process, const struct dump_thread *thread,
		struct dump_process *report, bool *ret_whole)
{
	struct dump_thread found = *thread;
	const struct frame *frames;
	enum vm_state vm_state;
	bool whole = true;
	size_t count;
	int error = lua_process_unwind(process, &frames, &count, &vm_state);

	if (error)
		return error;
	found.phase = lua_process_phase(process);
	error = dump_process_add_thread(report, &found, frames, count);
	if (error)
		return error;
	for (size_t i = 0; i < count; i++)
		whole &= frames[i].function->kind != FRAME_LOST;
	*ret_whole = whole;
	return 0;
}

/*---- Coroutines ----*/

static const uint64_t second_ns = 1000000000u;

/* Coroutines that are in the report. */
struct seen {
	uint64_t address;
	UT_hash_handle hh;
};

struct search {
	struct lua_process *process;
	struct hold *hold;
	struct coroutine_walk *walk;
	struct dump_vm *vm;
	struct seen *seen;
	size_t universe;
	uint64_t found[BATCH];
	size_t found_count;
};

static void rest(uint64_t ns)
{
	struct timespec time = { .tv_sec = (time_t)(ns / second_ns),
				 .tv_nsec = (long)(ns % second_ns) };

	nanosleep(&time, NULL);
}

static bool is_seen(const struct search *search, uint64_t address)
{
	struct seen *seen;

	HASH_FIND(hh, search->seen, &address, sizeof(address), seen);
	return seen != NULL;
}

static bool note_seen(struct search *search, uint64_t address)
{
	struct seen *seen = calloc(1, sizeof(*seen));
	bool added = true;

	if (!seen)
		return false;
	seen->address = address;
#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) (added = false)
	HASH_ADD(hh, search->seen, address, sizeof(seen->address), seen);
	if (!added)
		free(seen);
	return added;
}

static void forget_seen(struct search *search)
{
	struct seen *seen, *next;

	HASH_ITER(hh, search->seen, seen, next) {
		HASH_DEL(search->seen, seen);
		free(seen);
	}
}

/* Find the next coroutines and copy them. */
static enum coroutine_walk_step read_slice(struct search *search)
{
	enum coroutine_walk_step step = COROUTINE_WALK_FOUND;
	uint64_t address;

	search->found_count = 0;
	coroutine_walk_begin_slice(search->walk);
	while (step == COROUTINE_WALK_FOUND) {
		step = coroutine_walk_next(search->walk, &address);
		if (step != COROUTINE_WALK_FOUND || is_seen(search, address))
			continue;
		search->found[search->found_count++] = address;
		if (search->found_count == BATCH / 2)
			coroutine_walk_rest(search->walk);
		if (search->found_count == BATCH)
			break;
	}
	lua_process_capture_coroutines(search->process, search->universe, search->found,
				       search->found_count);
	return step;
}

static int report_slice(struct search *search)
{
	size_t count = lua_process_coroutine_count(search->process);

	if (count != search->found_count)
		search->vm->complete = false;
	for (size_t i = 0; i < count; i++) {
		enum coroutine_state state = lua_process_coroutine_state(search->process, i);
		const struct frame *frames = NULL;
		size_t frame_count = 0;
		int error = 0;

		if (state == COROUTINE_SUSPENDED || state == COROUTINE_NOT_STARTED ||
		    state == COROUTINE_DEAD)
			error = lua_process_unwind_coroutine(search->process, i, &frames,
							     &frame_count);
		if (!error)
			error = dump_vm_add(search->vm, state, frames, frame_count);
		if (error)
			return error;
	}
	for (size_t i = 0; i < search->found_count; i++)
		if (!note_seen(search, search->found[i]))
			return -ENOMEM;
	return 0;
}

/* One slice: true if nothing ran in it. */
static bool take_slice(struct search *search, enum coroutine_walk_step *ret_step)
{
	if (!search->hold) {
		*ret_step = read_slice(search);
		return true;
	}
	if (hold_begin(search->hold)) {
		rest(REST_AFTER_FAILURE_NS);
		return false;
	}
	*ret_step = read_slice(search);
	if (!hold_end(search->hold)) {
		coroutine_walk_undo_slice(search->walk);
		rest(REST_AFTER_FAILURE_NS);
		return false;
	}
	return true;
}

static int search_universe(struct search *search)
{
	enum coroutine_walk_step step = COROUTINE_WALK_PAUSE;
	unsigned int failures = 0;

	while (step != COROUTINE_WALK_END) {
		int error;

		if (!take_slice(search, &step)) {
			if (++failures == FAILURES_MAX)
				step = COROUTINE_WALK_BROKEN;
			else
				continue;
		} else {
			failures = 0;
			error = report_slice(search);
			if (error)
				return error;
			if (search->hold)
				rest(REST_FACTOR * hold_last_ns(search->hold));
		}
		if (step == COROUTINE_WALK_BROKEN) {
			search->vm->complete = false;
			return 0;
		}
	}
	return 0;
}

static int dump_universe(struct lua_process *process, struct hold *hold, size_t index,
			 struct dump_process *report)
{
	const struct lua_universe *universe = lua_process_universe(process, index);
	struct search search = { .process = process, .hold = hold, .universe = index };
	int error = -ENOMEM;

	search.walk = coroutine_walk_new(lua_process_memory(process), universe);
	search.vm = dump_process_add_vm(report, universe->g,
					lua_process_universe_path(process, index));
	if (search.walk && search.vm) {
		search.vm->complete = true;
		error = search_universe(&search);
	}
	coroutine_walk_free(search.walk);
	forget_seen(&search);
	return error;
}

int dump_coroutines(struct lua_process *process, struct hold *hold, struct dump_process *report)
{
	int error = 0;

	for (size_t i = 0; !error && i < lua_process_universe_count(process); i++)
		error = dump_universe(process, hold, i, report);
	if (hold) {
		report->holds = hold_count(hold);
		report->longest_hold_ns = hold_longest_ns(hold);
	}
	dump_process_sort(report);
	return error;
}

/* SPDX-License-Identifier: MIT */
#include "src/heap/heap_holding.h"

#include <errno.h>
#include <stdlib.h>

#include "src/linux/clocks/clock.h"
#include "src/linux/proc/maps.h"
#include "src/linux/proc/resident.h"

enum {
	SPEED_BYTES = 16 << 20, /* copied to see how fast that goes, SPEEDS times */
	SPEEDS = 4,
	SHORT_NS = 8 * 1000 * 1000, /* a hold that is not worth to be made shorter */
	/* Leave out so much of the limit: for stopping threads, mappings and pages that are new. */
	RESERVE_PART = 4,
	LONG_HOLDS_MAX = 3,  /* that are given up at the limit */
	COMPARISONS_MAX = 8, /* holds, if pages changed that were not copied in them */
	LOOKS_MAX = 3,       /* at all of it, if there is no hold */
	NAPS_MAX = 100,      /* copies of all while it seems to sleep, if it wakes in each */
	WOKEN_HOLDS_MAX = 8, /* likewise with threads stopped, which copies in vain cost time */
};

/*---- Mappings ----*/

int heap_holding_set_regions(struct heap_holding *holding)
{
	const struct maps *maps = lua_process_maps(holding->process);
	struct heap_range *ranges = calloc(maps_count(maps) + 1, sizeof(*ranges));
	size_t count = 0;
	int error;

	if (!ranges)
		return -ENOMEM;
	for (size_t i = 0; i < maps_count(maps); i++) {
		const struct mapping *mapping = maps_at(maps, i);

		if ((mapping->access & MAPPING_WRITE) && (mapping->access & MAPPING_READ))
			ranges[count++] = (struct heap_range){ mapping->begin, mapping->end,
							       mapping->access & MAPPING_SHARED };
	}
	error = heap_copy_set_regions(holding->copy, ranges, count);
	free(ranges);
	return error;
}

int heap_holding_refresh(struct heap_holding *holding)
{
	bool changed;

	return lua_process_refresh_maps(holding->process, &changed) == 0 && changed
		       ? heap_holding_set_regions(holding)
		       : 0;
}

static bool next_resident(void *context, uint64_t *at, uint64_t end, uint64_t *ret_begin, uint64_t *ret_end)
{
	return resident_next(((struct heap_holding *)context)->pagemap, at, end, ret_begin, ret_end);
}

int heap_holding_fill(struct heap_holding *holding)
{
	int error = heap_holding_refresh(holding);

	if (!error && holding->pagemap >= 0)
		heap_copy_fill(holding->copy, holding->fill, next_resident, holding);
	return error;
}

/*---- Time ----*/

/* How fast some pages are copied again. */
static double speed_now(struct heap_holding *holding)
{
	uint64_t begin_ns = clock_now_ns(CLOCK_MONOTONIC), bytes = heap_copy_bytes(holding->copy), took_ns;

	heap_copy_again(holding->copy, SPEED_BYTES);
	took_ns = clock_now_ns(CLOCK_MONOTONIC) - begin_ns;
	bytes = heap_copy_bytes(holding->copy) - bytes;
	return took_ns && bytes ? (double)bytes / (double)took_ns : 1;
}

/* Whoever takes the CPU in the middle makes it slower, nobody makes it faster. */
static void measure_speed(struct heap_holding *holding)
{
	holding->bytes_per_ns = 0;
	for (unsigned int i = 0; i < SPEEDS; i++) {
		const double speed = speed_now(holding);

		if (speed > holding->bytes_per_ns)
			holding->bytes_per_ns = speed;
	}
}

static uint64_t time_for(const struct heap_holding *holding, uint64_t bytes)
{
	return (uint64_t)((double)bytes / holding->bytes_per_ns);
}

static uint64_t limit_of_copying(const struct heap_holding *holding)
{
	return holding->limit_ns - holding->limit_ns / RESERVE_PART;
}

static bool fits(const struct heap_holding *holding, uint64_t bytes, uint64_t limit_ns)
{
	return time_for(holding, bytes) <= limit_ns;
}

/*---- One hold ----*/

/* What a hold copies besides what is new. */
enum extent {
	EXTENT_SHORT,   /* all, if that is short or nothing is stopped */
	EXTENT_WRITTEN, /* what the kernel has marked, if that fits the limit */
	EXTENT_ALL,
	EXTENT_MARKED, /* what is seen to change, as far as it fits the limit */
};

static bool has_all(enum extent extent)
{
	return extent == EXTENT_SHORT || extent == EXTENT_ALL;
}

struct attempt {
	struct heap_holding *holding;
	enum extent extent;
	unsigned int copies; /* of all, also in vain */
	bool is_left_out;    /* not all was copied: it would take too long */
	bool is_awake;       /* likewise: its naps, or those of a thread of it, are shorter */
	int error;
};

/* Whoever is stopped does not wait for a ljspy that waits for a CPU itself. */
static bool is_in_time(void *context)
{
	const struct attempt *attempt = context;

	return !hold_has_stopped(attempt->holding->hold) ||
	       clock_now_ns(CLOCK_MONOTONIC) - hold_began_ns(attempt->holding->hold) <
		       attempt->holding->limit_ns;
}

/* Other processes' writes to what they share leave no marks. */
static bool next_written(void *context, uint64_t *at, uint64_t end, uint64_t *ret_begin, uint64_t *ret_end)
{
	const struct heap_holding *holding = context;
	const struct mapping *mapping = maps_find(lua_process_maps(holding->process), *at);

	if (!mapping || !(mapping->access & MAPPING_SHARED))
		return resident_next_written(holding->pagemap, at, end, ret_begin, ret_end);
	if (*at >= end)
		return false;
	*ret_begin = *at;
	*ret_end = *at = end;
	return true;
}

/* Copy what the extent says. False if that takes too long. */
static bool copy_extent(struct heap_holding *holding, enum extent extent)
{
	const uint64_t limit_ns = limit_of_copying(holding);

	if (extent == EXTENT_SHORT && hold_has_stopped(holding->hold) &&
	    !fits(holding, heap_copy_kept(holding->copy), limit_ns < SHORT_NS ? limit_ns : SHORT_NS))
		return false;
	if (has_all(extent)) {
		heap_copy_again(holding->copy, UINT64_MAX);
		return true;
	}
	if (extent == EXTENT_WRITTEN) {
		heap_copy_mark(holding->copy, next_written, holding);
		if (!fits(holding, heap_copy_marked(holding->copy), limit_ns))
			return false;
	}
	heap_copy_again_marked(holding->copy, (uint64_t)(holding->bytes_per_ns * (double)limit_ns));
	return true;
}

static void copy_in_hold(void *context)
{
	struct attempt *attempt = context;
	struct heap_holding *holding = attempt->holding;
	const uint64_t bytes = heap_copy_bytes(holding->copy);

	running_stack_forget(&holding->stack);
	attempt->is_awake = has_all(attempt->extent) &&
			    attempt->copies++ >=
				    (hold_has_stopped(holding->hold) ? WOKEN_HOLDS_MAX : NAPS_MAX);
	if (attempt->is_awake)
		return;
	heap_copy_begin_hold(holding->copy, is_in_time, attempt);
	attempt->is_left_out = !copy_extent(holding, attempt->extent);
	attempt->error = attempt->is_left_out ? 0 : heap_holding_fill(holding);
	attempt->is_left_out |= !heap_copy_end_hold(holding->copy) && attempt->extent != EXTENT_MARKED;
	if (!attempt->is_left_out && !attempt->error && is_in_time(attempt))
		running_stack_capture(&holding->stack, holding->process, heap_copy_memory(holding->copy),
				      holding->global, holding->hold);
	holding->held_bytes += heap_copy_bytes(holding->copy) - bytes;
}

/* 0, -ENOMEM, -EBUSY, -EFBIG, or -EAGAIN if its naps are too short for a copy of all. */
static int hold_once(struct heap_holding *holding, enum extent extent)
{
	struct attempt attempt = { .holding = holding, .extent = extent };

	running_stack_prepare(&holding->stack, holding->process, holding->global);
	/* Where holds are long, few of them take all the time that is granted. */
	if (!hold_while(holding->hold, copy_in_hold, NULL, &attempt))
		return attempt.copies ? -EAGAIN : -EBUSY;
	if (attempt.is_awake)
		return -EAGAIN;
	return attempt.is_left_out ? -EFBIG : attempt.error;
}

/*---- Ways ----*/

/* Copy all, with marks cleared before: what the hold finds marked was written since. */
static int hold_for_written(struct heap_holding *holding)
{
	int error;

	if (!holding->has_marks || !resident_clear_marks(holding->pid))
		return -EFBIG;
	heap_copy_again(holding->copy, UINT64_MAX);
	error = heap_holding_fill(holding);
	return error ? error : hold_once(holding, EXTENT_WRITTEN);
}

/* What changed after one hold is copied in the next. */
static int hold_and_compare(struct heap_holding *holding, uint64_t *ret_changed)
{
	uint64_t changed = UINT64_MAX, before;
	unsigned int holds = 0;
	int error;

	heap_copy_follow(holding->copy);
	do {
		before = changed;
		error = heap_holding_fill(holding);
		if (!error)
			error = hold_once(holding, EXTENT_MARKED);
		if (error)
			return error;
		changed = heap_copy_check(holding->copy);
	} while (changed && changed < before && ++holds < COMPARISONS_MAX);
	*ret_changed = changed;
	return 0;
}

/* The same for those who are shown no page of another time: -EBUSY if there is one. */
static int hold_and_compare_all(struct heap_holding *holding)
{
	uint64_t changed;
	int error = hold_and_compare(holding, &changed);

	return !error && changed ? -EBUSY : error;
}

/* Copy all that is copied. A hold that took too long, as others had the CPU, is tried again. */
static int hold_for_all(struct heap_holding *holding)
{
	int error = -EFBIG;

	if (!fits(holding, heap_copy_kept(holding->copy), limit_of_copying(holding)))
		return error;
	for (unsigned int i = 0; i < LONG_HOLDS_MAX && error == -EFBIG; i++)
		error = hold_once(holding, EXTENT_ALL);
	return error;
}

/*
 * Without a hold: copy all, and look again. What has not changed in between was so at one moment, unless it
 * changed and changed back. 0, -ENOMEM, or -EAGAIN if something has changed at each look.
 */
static int copy_unchanged(struct heap_holding *holding)
{
	struct attempt attempt = { .holding = holding };
	int error = -EAGAIN;

	for (unsigned int i = 0; i < LOOKS_MAX && error == -EAGAIN && hold_may_go_on(holding->hold); i++) {
		/* Forget what was copied in a hold, and what the look before has found: it may be old. */
		heap_copy_begin_hold(holding->copy, is_in_time, &attempt);
		heap_copy_end_hold(holding->copy);
		heap_copy_follow(holding->copy);
		error = heap_holding_fill(holding);
		if (!error && heap_copy_check(holding->copy))
			error = -EAGAIN;
	}
	return error;
}

static int hold_long(struct heap_holding *holding, enum heap_method *ret_method, uint64_t *ret_changed)
{
	int error;

	if (!holding->has_helpers)
		parallel_memory_start(holding->parallel);
	holding->has_helpers = true;
	measure_speed(holding);
	*ret_method = HEAP_WRITTEN_PAGES;
	error = hold_for_written(holding);
	if (error != -EFBIG)
		return error;
	*ret_method = HEAP_ONE_HOLD;
	error = hold_for_all(holding);
	if (error != -EFBIG && error != -EAGAIN)
		return error;
	*ret_method = HEAP_COMPARED;
	if (holding->may_leave_out)
		return hold_and_compare(holding, ret_changed);
	if (error == -EAGAIN)
		return hold_and_compare_all(holding);
	holding->too_long_ns = time_for(holding, heap_copy_kept(holding->copy));
	if (holding->too_long_ns < holding->limit_ns)
		holding->too_long_ns = holding->limit_ns;
	return -EFBIG;
}

static int copy_held(struct heap_holding *holding, enum heap_method *ret_method, uint64_t *ret_changed)
{
	const uint64_t stops = hold_count(holding->hold);
	int error;

	if (holding->is_unheld)
		return -EBUSY;
	if (!holding->has_helpers)
		measure_speed(holding);
	error = hold_once(holding, EXTENT_SHORT);
	*ret_method = hold_count(holding->hold) == stops ? HEAP_WHILE_ASLEEP : HEAP_ONE_HOLD;
	if (error == -EFBIG || error == -EAGAIN)
		error = hold_long(holding, ret_method, ret_changed);
	return error;
}

int heap_holding_copy(struct heap_holding *holding, enum heap_method *ret_method, uint64_t *ret_changed)
{
	int error, looked;

	*ret_changed = 0;
	error = copy_held(holding, ret_method, ret_changed);
	if (*ret_changed)
		running_stack_forget(&holding->stack);
	if (error != -EFBIG && error != -EAGAIN && error != -EBUSY)
		return error;
	running_stack_forget(&holding->stack);
	looked = copy_unchanged(holding);
	if (looked == -EAGAIN)
		return error == -EAGAIN ? -EBUSY : error;
	if (looked)
		return looked;
	*ret_method = HEAP_UNCHANGED;
	*ret_changed = 0;
	return 0;
}

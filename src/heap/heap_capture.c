/* SPDX-License-Identifier: MIT */
#include "src/heap/heap_capture.h"

#include <errno.h>
#include <unistd.h>

#include "output/heap/heap_builder.h"
#include "src/linux/clocks/clock.h"
#include "src/linux/proc/maps.h"
#include "src/linux/proc/resident.h"
#include "unwind/heap/heap_copy.h"

enum {
	TRIES_MAX = 20,
	SLICE_BYTES_MIN = 256 << 10, /* copied in one hold */
	SLICES_MAX = 100000,
	SPEED_BYTES = 16 << 20, /* copied to see how fast that goes */
	/* No more tries after all holds together took so long. */
	HELD_NS_MAX = 1000 * 1000 * 1000,
};

struct heap_copying {
	struct lua_process *process;
	struct hold *hold;
	const struct global_state *global;
	const struct heap_capture_options *options;
	struct heap_copy *copy;
	struct heap_account *account;
	int pagemap;         /* or -1 */
	double bytes_per_ns; /* how fast pages were copied last */
	uint64_t cursor;     /* where the next slice begins */
	uint64_t slice_bytes;
	uint64_t held_bytes;
	bool too_long; /* the process is not asleep, and copying would hold it for too long */
};

/* Everything that a program may write to: allocators may be of any kind. */
static int add_regions(struct heap_copying *capture)
{
	const struct maps *maps = lua_process_maps(capture->process);
	int error = 0;

	for (size_t i = 0; i < maps_count(maps) && !error; i++) {
		const struct mapping *mapping = maps_at(maps, i);

		if ((mapping->access & MAPPING_WRITE) && (mapping->access & MAPPING_READ))
			error = heap_copy_add_region(capture->copy, mapping->begin, mapping->end);
	}
	return error;
}

static bool next_resident(void *context, uint64_t *at, uint64_t end, uint64_t *ret_begin, uint64_t *ret_end)
{
	return resident_next(((struct heap_copying *)context)->pagemap, at, end, ret_begin, ret_end);
}

/* Copy what has content and lies beside what is copied already: the program may have begun to use it. */
static void copy_rest(struct heap_copying *capture)
{
	if (capture->pagemap >= 0)
		heap_copy_fill(capture->copy, next_resident, capture);
}

/*---- While it runs ----*/

/* Copy the pages of all objects. What the objects say meanwhile is of no account. */
static int copy_running(struct heap_copying *capture)
{
	struct heap_account unsure = { 0 };
	int error;

	heap_copy_unseal(capture->copy);
	error = heap_measure(capture->copy, capture->global->vm, capture->global->g, &unsure);
	if (!error)
		copy_rest(capture);
	return error;
}

/* How fast pages are copied: by copying some again. */
static void measure_speed(struct heap_copying *capture)
{
	uint64_t begin_ns = clock_now_ns(CLOCK_MONOTONIC), bytes = heap_copy_bytes(capture->copy), took_ns;

	heap_copy_again(capture->copy, 0, SPEED_BYTES);
	took_ns = clock_now_ns(CLOCK_MONOTONIC) - begin_ns;
	bytes = heap_copy_bytes(capture->copy) - bytes;
	if (took_ns && bytes)
		capture->bytes_per_ns = (double)bytes / (double)took_ns;
}

/*---- While it is held ----*/

static uint64_t expected_hold_ns(const struct heap_copying *capture)
{
	return (uint64_t)((double)heap_copy_kept(capture->copy) / capture->bytes_per_ns);
}

static bool fits_one_hold(const struct heap_copying *capture)
{
	uint64_t limit_ns = capture->options->max_pause_ns;

	return expected_hold_ns(capture) <= (limit_ns ? limit_ns : HEAP_CAPTURE_PAUSE_NS);
}

static void copy_again(void *context)
{
	struct heap_copying *capture = context;
	uint64_t begin_ns = clock_now_ns(CLOCK_MONOTONIC), took_ns, bytes = heap_copy_bytes(capture->copy);

	capture->too_long = hold_has_stopped(capture->hold) && !fits_one_hold(capture);
	if (capture->too_long)
		return;
	heap_copy_again(capture->copy, 0, UINT64_MAX);
	copy_rest(capture);
	took_ns = clock_now_ns(CLOCK_MONOTONIC) - begin_ns;
	bytes = heap_copy_bytes(capture->copy) - bytes;
	capture->held_bytes += bytes;
	if (took_ns)
		capture->bytes_per_ns = (double)bytes / (double)took_ns;
}

static void copy_slice(void *context)
{
	struct heap_copying *capture = context;
	uint64_t bytes = heap_copy_bytes(capture->copy);

	capture->cursor = heap_copy_again(capture->copy, capture->cursor, capture->slice_bytes);
	capture->held_bytes += heap_copy_bytes(capture->copy) - bytes;
}

/* Hold for a slice of the pages, again and again. The pages are then of different times. */
static bool hold_for_slices(struct heap_copying *capture)
{
	capture->account->method = HEAP_IN_SLICES;
	capture->slice_bytes = (uint64_t)(capture->bytes_per_ns * (double)capture->options->max_pause_ns / 2);
	if (capture->slice_bytes < SLICE_BYTES_MIN)
		capture->slice_bytes = SLICE_BYTES_MIN;
	capture->cursor = 0;
	for (unsigned int i = 0; i < SLICES_MAX && capture->cursor != UINT64_MAX; i++) {
		uint64_t before = capture->cursor;

		if (!hold_while(capture->hold, copy_slice, NULL, capture))
			return false;
		if (capture->cursor == before)
			return false;
	}
	return true;
}

/* 0, -EAGAIN or -EFBIG. */
static int copy_held(struct heap_copying *capture)
{
	uint64_t stops = hold_count(capture->hold);

	if (!hold_while(capture->hold, copy_again, NULL, capture))
		return -EAGAIN;
	capture->account->method = hold_count(capture->hold) == stops ? HEAP_WHILE_ASLEEP : HEAP_ONE_HOLD;
	if (!capture->too_long)
		return 0;
	if (capture->options->max_pause_ns == 0)
		return -EFBIG;
	return hold_for_slices(capture) ? 0 : -EAGAIN;
}

/*---- The whole ----*/

/* Why the copy is not of one time; NULL if it is. */
static const char *unsound(const struct heap_copying *capture)
{
	const struct heap_account *account = capture->account;
	const struct heap_uncertain *uncertain = &account->uncertain;

	if (heap_copy_missed(capture->copy) || uncertain->unread_objects || uncertain->unread_bytes)
		return "memory was new";
	if (uncertain->broken_chains || uncertain->unknown_objects || uncertain->left_out)
		return "a chain of objects was broken";
	if (account->gc_total != account->sum)
		return "sizes did not add up";
	return NULL;
}

static int try_to_capture(struct heap_copying *capture, struct heap_graph *ret_graph, const char **ret_reason)
{
	struct heap_account *account = capture->account;
	uint64_t changed;
	int error = copy_running(capture);

	if (error && error != -EIO)
		return error;
	heap_copy_seal(capture->copy);
	measure_speed(capture);
	error = copy_held(capture);
	if (error)
		return error;
	heap_copy_seal(capture->copy);
	changed = account->method == HEAP_IN_SLICES ? heap_copy_count_changed(capture->copy) : 0;
	error = heap_read(capture->copy, capture->global->vm, capture->global->g, &capture->options->read,
			  ret_graph, account);
	account->uncertain.changed_pages = changed;
	*ret_reason = error ? "global_State could not be read" : unsound(capture);
	return error;
}

/* After something was mapped or unmapped. 0 or -ENOMEM. */
static int begin_anew(struct heap_copying *capture)
{
	struct heap_copy *copy = heap_copy_new(lua_process_memory(capture->process));

	if (!copy)
		return -ENOMEM;
	heap_copy_free(capture->copy);
	capture->copy = copy;
	return add_regions(capture);
}

static int capture_live(struct heap_copying *capture, struct heap_graph *ret_graph)
{
	struct heap_account *account = capture->account;
	const uint64_t holds = hold_count(capture->hold), held_ns = hold_total_ns(capture->hold);
	int error = 0;

	for (unsigned int i = 0; i < TRIES_MAX; i++) {
		const char *reason = NULL;
		bool changed;

		account->attempts = i + 1;
		error = try_to_capture(capture, ret_graph, &reason);
		if (error == -ENOMEM || error == -EAGAIN || error == -EFBIG || !reason)
			break;
		account->retry_reason = reason;
		/* Slices are of different times, however often they are read. */
		if (i + 1 == TRIES_MAX || hold_total_ns(capture->hold) - held_ns > HELD_NS_MAX ||
		    (!error && account->method == HEAP_IN_SLICES))
			break;
		if (!error)
			heap_graph_free(ret_graph);
		if (lua_process_refresh_maps(capture->process, &changed) == 0 && changed &&
		    begin_anew(capture))
			return -ENOMEM;
	}
	account->holds = hold_count(capture->hold) - holds;
	account->held_ns = hold_total_ns(capture->hold) - held_ns;
	account->longest_hold_ns = error == -EFBIG ? expected_hold_ns(capture)
						   : hold_longest_ns(capture->hold);
	account->copied_bytes = heap_copy_bytes(capture->copy);
	account->copied_held_bytes = capture->held_bytes;
	return error;
}

int heap_capture(struct lua_process *process, struct hold *hold, size_t global,
		 const struct heap_capture_options *options, struct heap_graph *ret_graph,
		 struct heap_account *account)
{
	struct heap_copying capture = {
		.process = process,
		.hold = hold,
		.global = lua_process_global(process, global),
		.options = options,
		.copy = heap_copy_new(lua_process_memory(process)),
		.account = account,
		.pagemap = hold ? resident_open(account->pid) : -1,
		.bytes_per_ns = 1,
	};
	int error = capture.copy ? add_regions(&capture) : -ENOMEM;

	if (!error && hold) {
		error = capture_live(&capture, ret_graph);
	} else if (!error) {
		account->method = HEAP_FROM_CORE;
		account->attempts = 1;
		error = heap_read(capture.copy, capture.global->vm, capture.global->g, &options->read,
				  ret_graph, account);
		account->copied_bytes = heap_copy_bytes(capture.copy);
	}
	heap_copy_free(capture.copy);
	if (capture.pagemap >= 0)
		close(capture.pagemap);
	return error;
}

/* SPDX-License-Identifier: MIT */
#include "src/heap/heap_capture.h"

#include <errno.h>
#include <unistd.h>

#include "output/heap/heap_builder.h"
#include "output/labels/frame_label.h"
#include "src/heap/heap_holding.h"
#include "src/heap/parallel_memory.h"
#include "src/linux/proc/resident.h"
#include "unwind/allocation/allocated.h"
#include "unwind/heap/heap_copy.h"

enum {
	TRIES_MAX = 20,
	/* More do not help where pages change that were not copied in the hold. */
	COMPARED_TRIES_MAX = 3,
	/* No more tries after all holds together took so many times the limit of one. */
	HELD_LIMITS_MAX = 10,
	/* While it runs: copy what is new until that is a small part of the whole, or so many times. */
	NEW_PART = 50,
	FILLS_MAX = 6,
	/* Where there are other VMs, whose memory lies beside it: so many tries without theirs. */
	NEAR_TRIES = 4,
};

struct heap_copying {
	struct heap_holding holding;
	size_t index; /* of the state, among those of its process */
	const struct global_state *global;
	const struct heap_capture_options *options;
	struct heap_account *account;
};

/*---- One try ----*/

/* Copy the pages of all objects. What the objects say meanwhile is of no account. */
static int copy_running(struct heap_copying *capture)
{
	struct heap_copy *copy = capture->holding.copy;
	struct heap_account unsure = { 0 };
	int error;

	heap_copy_unseal(copy);
	error = heap_holding_refresh(&capture->holding);
	if (!error)
		error = heap_measure(copy, capture->global->vm, capture->global->g, &unsure);
	for (unsigned int i = 0; i < FILLS_MAX && !error; i++) {
		const uint64_t kept = heap_copy_kept(copy);

		error = heap_holding_fill(&capture->holding);
		if (heap_copy_kept(copy) - kept < kept / NEW_PART)
			break;
	}
	return error;
}

/* Why the copy is not of one time; NULL if it is. */
static const char *unsound(const struct heap_copying *capture)
{
	const struct heap_account *account = capture->account;
	const struct heap_uncertain *uncertain = &account->uncertain;

	if (heap_copy_missed(capture->holding.copy) || uncertain->unread_objects || uncertain->unread_bytes)
		return "memory was new";
	if (uncertain->broken_chains || uncertain->unknown_objects || uncertain->left_out)
		return "a chain of objects was broken";
	if (account->gc_total != account->sum)
		return "sizes did not add up";
	if (uncertain->changed_pages)
		return "pages had changed";
	return NULL;
}

/* 0 or -ENOMEM. */
static int name_c(void *context, const struct function_object *object, char ret_text[static FRAME_LABEL_SIZE])
{
	struct heap_copying *capture = context;
	const struct function *function = lua_process_function(capture->holding.process, capture->index,
							       object);

	if (!function)
		return -ENOMEM;
	frame_label(function, 0, false, ret_text);
	return 0;
}

/*
 * After the hold. 0, -ENOMEM or -EIO: without room for its copy, a state cannot be read, but was not closed.
 */
static int read_copy(struct heap_copying *capture, struct heap_graph *ret_graph)
{
	struct heap_holding *holding = &capture->holding;
	struct heap_read_options options = capture->options->read;
	int error;

	running_stack_unwind(&holding->stack, holding->process, capture->global);
	options.running = &holding->stack.frames;
	options.name_c = name_c;
	options.context = capture;
	error = heap_read(holding->copy, capture->global->vm, capture->global->g, &options, ret_graph,
			  capture->account);
	return error == -EIO && heap_copy_is_short(holding->copy) ? -ENOMEM : error;
}

static int try_to_capture(struct heap_copying *capture, struct heap_graph *ret_graph, const char **ret_reason)
{
	struct heap_account *account = capture->account;
	struct heap_copy *copy = capture->holding.copy;
	uint64_t changed;
	int error = copy_running(capture);

	if (error && error != -EIO)
		return error;
	error = heap_holding_copy(&capture->holding, &account->method, &changed);
	if (error)
		return error;
	heap_copy_seal(copy);
	error = read_copy(capture, ret_graph);
	if (error == -ENOMEM)
		return error;
	account->uncertain.changed_pages = changed;
	*ret_reason = error ? "global_State could not be read" : unsound(capture);
	return error;
}

/*---- The whole ----*/

/* Is the VM there still? What has been closed may have left its memory to anything. */
static bool is_open(const struct heap_copying *capture)
{
	struct allocation_counters counters;

	return allocation_counters_read(lua_process_memory(capture->holding.process), capture->global,
					&counters);
}

static int capture_live(struct heap_copying *capture, struct heap_graph *ret_graph)
{
	struct heap_holding *holding = &capture->holding;
	struct heap_account *account = capture->account;
	int error = heap_holding_set_regions(holding);

	hold_count_anew(holding->hold);
	for (unsigned int i = 0; i < TRIES_MAX && error != -ENOMEM; i++) {
		const char *reason = NULL;

		account->attempts = i + 1;
		holding->fill = i < NEAR_TRIES && lua_process_global_count(holding->process) > 1
					? HEAP_FILL_NEAR
					: HEAP_FILL_ALL;
		error = try_to_capture(capture, ret_graph, &reason);
		if (error == -ENOMEM || error == -EBUSY || error == -EFBIG || !reason)
			break;
		account->retry_reason = reason;
		if (!is_open(capture)) {
			if (!error)
				heap_graph_free(ret_graph);
			error = -EIO;
			break;
		}
		if (i + 1 == (account->method == HEAP_COMPARED ? COMPARED_TRIES_MAX : TRIES_MAX) ||
		    hold_total_ns(holding->hold) > HELD_LIMITS_MAX * holding->limit_ns)
			break;
		if (!error)
			heap_graph_free(ret_graph);
	}
	account->holds = hold_count(holding->hold);
	account->held_ns = hold_total_ns(holding->hold);
	account->longest_hold_ns = error == -EFBIG ? holding->too_long_ns : hold_longest_ns(holding->hold);
	account->copied_held_bytes = holding->held_bytes;
	return error;
}

static int capture_core(struct heap_copying *capture, struct heap_graph *ret_graph)
{
	int error = heap_holding_set_regions(&capture->holding);

	capture->account->method = HEAP_FROM_CORE;
	capture->account->attempts = 1;
	running_stack_capture_core(&capture->holding.stack, capture->holding.process, capture->global);
	return error ? error : read_copy(capture, ret_graph);
}

/* Open what a live process needs besides. 0 or -ENOMEM. */
static int open_live(struct heap_holding *holding, uint64_t max_pause_ns)
{
	holding->parallel = parallel_memory_new(holding->pid, lua_process_memory(holding->process),
						lua_process_maps(holding->process));
	holding->pagemap = resident_open(holding->pid);
	holding->has_marks = holding->pagemap >= 0 && resident_has_marks();
	holding->limit_ns = max_pause_ns ? max_pause_ns : HEAP_CAPTURE_PAUSE_NS;
	holding->may_leave_out = max_pause_ns != 0;
	return holding->parallel ? 0 : -ENOMEM;
}

int heap_capture(struct lua_process *process, struct hold *hold, size_t global,
		 const struct heap_capture_options *options, struct heap_graph *ret_graph,
		 struct heap_account *account)
{
	struct heap_copying capture = {
		.holding = { .process = process,
			     .hold = hold,
			     .global = lua_process_global(process, global),
			     .pid = account->pid,
			     .pagemap = -1,
			     .is_unheld = options->is_unheld,
			     .bytes_per_ns = 1 },
		.index = global,
		.global = lua_process_global(process, global),
		.options = options,
		.account = account,
	};
	struct heap_holding *holding = &capture.holding;
	int error = hold ? open_live(holding, options->max_pause_ns) : 0;

	if (!error) {
		holding->copy = heap_copy_new(hold ? parallel_memory_memory(holding->parallel)
						   : lua_process_memory(process));
		error = holding->copy ? 0 : -ENOMEM;
	}
	if (!error)
		error = hold ? capture_live(&capture, ret_graph) : capture_core(&capture, ret_graph);
	if (holding->copy)
		account->copied_bytes = heap_copy_bytes(holding->copy);
	heap_copy_free(holding->copy);
	running_stack_clear(&holding->stack);
	parallel_memory_free(holding->parallel);
	if (holding->pagemap >= 0)
		close(holding->pagemap);
	return error;
}

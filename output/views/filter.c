/* SPDX-License-Identifier: MIT */
#include "output/views/filter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "memory/hash.h"
#include "output/labels/frame_label.h"
#include "output/labels/module_path.h"
#include "output/labels/names.h"
#include "output/recording/stack_cache.h"
#include "unwind/nginx/route.h"

/* What the filter knows about a function, computed once. */
struct verdict {
	const struct function *function;
	bool included, excluded;
	const struct function *identity; /* the same without its line or root, as the options want it */
	UT_hash_handle hh;
};

/*
 * What else decides on the frames that the filter adds to a stack. No padding, because it is hashed as bytes.
 */
struct addition_key {
	const struct function *wait;
	const char *text;
	uint64_t number;
};

struct addition {
	struct addition_key key;
	uint64_t number;
	UT_hash_handle hh;
};

/* Bits in the number of a stack with an addition. Larger numbers become 0. */
enum { ADDITION_BITS = 16, STACK_BITS = 32 };

/*
 * A request of a client, by its process and nginx's numbers. It has no padding, because it is compared as
 * bytes.
 */
struct slow_key {
	uint64_t pid, connection, number;
};

struct slow {
	struct slow_key key;
	uint64_t age_ns; /* the greatest that was seen */
	UT_hash_handle hh;
};

enum { REQUEST_TEXT_MAX = 512, PARTS = 1000000 };

struct filter {
	struct sample_source source; /* first: the source and the filter are one address */
	struct sample_source *from;
	struct functions *functions;
	struct filter_options options;
	struct verdict *verdicts;
	struct addition *additions;
	struct stack_cache changed; /* recent stacks as passed on, by their new number */
	struct slow *slow;          /* requests that may be slow */
	uint64_t slow_ns;           /* those of this age or older are */
	bool knows_slow;
	bool *passed;         /* for each place of the cache: does the stack pass? */
	struct frame *frames; /* of the last changed sample */
	size_t size;
};

/*---- Which samples pass ----*/

static bool is_among(pid_t id, const pid_t *ids, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (ids[i] == id)
			return true;
	return count == 0;
}

static bool is_in_state(const struct filter_options *options, const struct sample *sample)
{
	if (options->thread_states == 0 && options->vm_states == 0)
		return true;
	return (options->thread_states >> sample->thread_state & 1) ||
	       (options->vm_states >> sample->vm_state & 1);
}

enum filter_time filter_time_by(enum weight_kind shown, enum weight_kind recorded)
{
	if (shown == WEIGHT_OFF_CPU_TIME)
		return TIME_OFF_CPU;
	return weights[shown].clock == recorded ? TIME_ALL : TIME_ON_CPU;
}

static bool has_time(const struct filter_options *options, const struct sample *sample)
{
	switch (options->time) {
	case TIME_ALL: return true;
	case TIME_ON_CPU: return sample->thread_state == THREAD_RUNNING || sample->cpu_ns > 0;
	case TIME_OFF_CPU:
		return sample->wall_ns > sample->cpu_ns &&
		       (sample->thread_state != THREAD_IDLE || options->thread_states != 0);
	}
	return true;
}

static bool matches(const regex_t *pattern, const char *label)
{
	return pattern && regexec(pattern, label, 0, NULL, 0) == 0;
}

static bool changes_functions(const struct filter_options *options)
{
	return options->without_line || options->without_root;
}

/*
 * The function without its package root and without its first line, unless it has no other
 * identity. NULL when memory is short.
 */
static const struct function *identity_of(struct filter *filter, const struct function *function)
{
	struct function identity = *function;
	char *file = NULL;
	size_t root;

	if (!changes_functions(&filter->options) || function->kind != FRAME_LUA)
		return function;
	if (filter->options.without_line && function->name)
		identity.firstline = 0;
	if (filter->options.without_root && function->file) {
		const char *path = module_path_file(function, &root);

		if (root && asprintf(&file, "@%s", path + root) < 0)
			return NULL;
		identity.file = root ? file : function->file;
		identity.root = 0;
	}
	function = functions_intern(filter->functions, &identity);
	free(file);
	return function;
}

/* The verdict on a function. NULL when memory is short. */
static const struct verdict *judge(struct filter *filter, const struct function *function)
{
	struct verdict *verdict;
	char label[FRAME_LABEL_SIZE];

	HASH_FIND_PTR(filter->verdicts, &function, verdict);
	if (verdict)
		return verdict;
	verdict = calloc(1, sizeof(*verdict));
	if (!verdict)
		return NULL;
	frame_label(function, 0, false, label);
	verdict->function = function;
	verdict->included = matches(filter->options.include, label);
	verdict->excluded = matches(filter->options.exclude, label);
	verdict->identity = identity_of(filter, function);
	HASH_ADD_PTR(filter->verdicts, function, verdict);
	if (hash_added(&verdict->hh) && verdict->identity)
		return verdict;
	if (hash_added(&verdict->hh))
		HASH_DEL(filter->verdicts, verdict);
	free(verdict);
	return NULL;
}

/* What a runnable thread waits for. */
static const struct function want_of_cpu = {
	.kind = FRAME_NATIVE,
	.name = WAITING_FOR_CPU,
	.module = "kernel",
};

/* The frame on top of the stack for what the thread waits for; NULL if there is none. */
static const struct function *wait_frame(const struct filter *filter, const struct sample *sample)
{
	if (filter->options.time != TIME_OFF_CPU)
		return NULL;
	return sample->thread_state == THREAD_RUNNABLE ? &want_of_cpu : sample->wait;
}

/* 1 if include and exclude let the stack pass, 0 if not, or -ENOMEM. */
static int stack_passes(struct filter *filter, const struct sample *sample)
{
	const struct filter_options *options = &filter->options;
	const struct function *wait = wait_frame(filter, sample);
	bool included = options->include == NULL;

	if (!options->include && !options->exclude)
		return 1;
	for (size_t i = 0; i < sample->frame_count + (wait ? 1 : 0); i++) {
		const struct verdict *verdict = judge(
			filter, i < sample->frame_count ? sample->frames[i].function : wait);

		if (!verdict)
			return -ENOMEM;
		if (verdict->excluded)
			return 0;
		included |= verdict->included;
	}
	return included;
}

static bool is_of_time(const struct filter_options *options, const struct sample *sample)
{
	return sample->time_ns >= options->since_ns &&
	       (options->until_ns == 0 || sample->time_ns < options->until_ns);
}

/*---- Requests ----*/

static struct slow_key slow_key(const struct sample *sample)
{
	return (struct slow_key){ (uint64_t)sample->pid, sample->request.connection, sample->request.number };
}

static bool asks_for_slow(const struct filter_options *options)
{
	return options->slower_than_ns || options->slower_than_ppm;
}

/* Note the age of a request. 0 or -ENOMEM. */
static int note_age(struct filter *filter, const struct sample *sample)
{
	struct slow_key key = slow_key(sample);
	struct slow *slow;

	HASH_FIND(hh, filter->slow, &key, sizeof(key), slow);
	if (slow) {
		if (sample->request.age_ns > slow->age_ns)
			slow->age_ns = sample->request.age_ns;
		return 0;
	}
	slow = calloc(1, sizeof(*slow));
	if (!slow)
		return -ENOMEM;
	slow->key = key;
	slow->age_ns = sample->request.age_ns;
	HASH_ADD(hh, filter->slow, key, sizeof(slow->key), slow);
	if (hash_added(&slow->hh))
		return 0;
	free(slow);
	return -ENOMEM;
}

static bool request_matches(const regex_t *pattern, const struct sample_request *request)
{
	char text[REQUEST_TEXT_MAX];

	if (!request->route)
		return false;
	snprintf(text, sizeof(text), "%s %s%s%s", request->method ? request->method : "-",
		 request->host ? request->host : "-", route_separator(request->route), request->route);
	return matches(pattern, text);
}

/* Is the request one of those whose slowest are asked for, or old enough by itself? */
static bool may_be_slow(const struct filter_options *options, const struct sample *sample)
{
	const struct sample_request *request = &sample->request;

	if (!request->route)
		return false;
	if (options->slower_than_ppm == 0)
		return request->age_ns >= options->slower_than_ns;
	return is_of_time(options, sample) && is_among(sample->pid, options->pids, options->pid_count) &&
	       (!options->include_request || request_matches(options->include_request, request));
}

static int compare_ages(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x < y) - (x > y);
}

/* Find the age of the fastest of the slowest requests, of which there is one at least. 0 or -ENOMEM. */
static int find_limit(struct filter *filter)
{
	size_t count = HASH_COUNT(filter->slow), place = 0;
	uint64_t slowest = (count * (PARTS - filter->options.slower_than_ppm) + PARTS - 1) / PARTS;
	uint64_t *ages;

	if (filter->options.slower_than_ppm == 0 || count == 0)
		return 0;
	ages = calloc(count, sizeof(ages[0]));
	if (!ages)
		return -ENOMEM;
	for (const struct slow *slow = filter->slow; slow; slow = slow->hh.next)
		ages[place++] = slow->age_ns;
	qsort(ages, count, sizeof(ages[0]), compare_ages);
	filter->slow_ns = ages[slowest - 1];
	free(ages);
	return 0;
}

/* Read all samples once, to know which requests took long: the early samples of these pass, too. */
static int find_slow(struct filter *filter)
{
	struct sample sample;
	int result;

	while ((result = filter->from->next(filter->from, &sample)) > 0)
		if (may_be_slow(&filter->options, &sample) && note_age(filter, &sample))
			return -ENOMEM;
	if (result == 0)
		result = find_limit(filter);
	filter->knows_slow = true;
	return result < 0 ? result : filter->from->rewind(filter->from);
}

static bool is_slow(const struct filter *filter, const struct sample *sample)
{
	struct slow_key key = slow_key(sample);
	struct slow *slow;

	HASH_FIND(hh, filter->slow, &key, sizeof(key), slow);
	return slow && slow->age_ns >= filter->slow_ns;
}

static bool request_passes(const struct filter *filter, const struct sample *sample)
{
	const struct filter_options *options = &filter->options;

	return (options->number == 0 || (sample->request.connection == options->connection &&
					 sample->request.number == options->number)) &&
	       (!options->include_request || request_matches(options->include_request, &sample->request)) &&
	       (!asks_for_slow(options) ||
		(sample->request.route && is_slow(filter, sample) != options->is_faster));
}

/* All conditions except those on the stack and on the request. */
static bool may_pass(const struct filter_options *options, const struct sample *sample)
{
	return is_of_time(options, sample) && is_among(sample->pid, options->pids, options->pid_count) &&
	       is_among(sample->tid, options->tids, options->tid_count) &&
	       (!options->thread ||
		(sample->thread_name && strcmp(sample->thread_name, options->thread) == 0)) &&
	       is_in_state(options, sample) && has_time(options, sample);
}

/*---- Stacks ----*/

/* Copy the frames, with the frame of the wait on top and room for one more frame. 0 or -ENOMEM. */
static int copy_frames(struct filter *filter, struct sample *sample)
{
	const struct function *leaf = wait_frame(filter, sample);
	struct frame *frames = array_grow(filter->frames, &filter->size, sample->frame_count + 2,
					  sizeof(*frames));

	if (!frames)
		return -ENOMEM;
	filter->frames = frames;
	if (leaf)
		filter->frames[0] = (struct frame){ .function = leaf };
	if (sample->frame_count)
		memcpy(filter->frames + (leaf ? 1 : 0), sample->frames,
		       sample->frame_count * sizeof(*filter->frames));
	sample->frames = filter->frames;
	sample->frame_count += leaf ? 1 : 0;
	return 0;
}

/* Are the first count frames the same functions as the next count frames? */
static bool repeats(const struct frame *frames, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (frames[i].function != frames[count + i].function)
			return false;
	return true;
}

/*
 * Work from the root to the leaf. The root at the end of the array stays in
 * place; the remaining frames gather before it.
 */
static void merge_recursion(struct frame *frames, struct sample *sample)
{
	size_t end = sample->frame_count, top = end;

	for (size_t i = end; i-- > 0;) {
		frames[--top] = frames[i];
		for (size_t cycle = 1; cycle <= FILTER_CYCLE_MAX && 2 * cycle <= end - top; cycle++) {
			if (!repeats(frames + top, cycle))
				continue;
			memmove(frames + top + cycle, frames + top, cycle * sizeof(*frames));
			top += cycle;
			break;
		}
	}
	sample->frames = frames + top;
	sample->frame_count = end - top;
}

/* Replace each function by its verdict's identity. 0 or -ENOMEM. */
static int change_functions(struct filter *filter, const struct sample *sample)
{
	for (size_t i = 0; i < sample->frame_count; i++) {
		const struct verdict *verdict = judge(filter, filter->frames[i].function);

		if (!verdict)
			return -ENOMEM;
		filter->frames[i].function = verdict->identity;
	}
	return 0;
}

static const char *state_name(const struct sample *sample)
{
	return sample->thread_state == THREAD_RUNNING ? vm_state_name(sample->vm_state)
						      : thread_state_name(sample->thread_state);
}

static const char *gc_name(const struct sample *sample)
{
	return sample->gc.phase == GC_PHASE_NONE ? "no collection" : gc_phase_name(sample->gc.phase);
}

static const char *module_name(const struct sample *sample, char text[static MODULE_PATH_SIZE])
{
	const struct function *owner = module_path_owner(sample->frames, sample->frame_count);

	if (!owner)
		return "no Lua";
	module_path(owner, text);
	return text;
}

static const char *request_group(enum filter_group group, const struct sample_request *request,
				 char text[static MODULE_PATH_SIZE])
{
	if (!request->route)
		return "no request";
	if (group == GROUP_ROUTE || strcmp(request->route, ROUTE_UNKNOWN) == 0)
		return request->route;
	if (group == GROUP_HOST)
		return request->host ? request->host : "no host";
	if (request->status == 0)
		return "no status yet";
	snprintf(text, MODULE_PATH_SIZE, "%u", request->status);
	return text;
}

/*
 * The peer behind the kind of a request's wait: "upstream first byte: 127.0.0.1:8080", "socket receive: ..."
 */
static const char *upstream_name(const struct sample *sample)
{
	static const char upstream[] = "upstream ", cosocket[] = "socket ";
	const struct function *top = sample->frame_count ? sample->frames[0].function : NULL;
	const char *colon;

	if (sample->thread_state != THREAD_PARKED || !sample->request.route || !top || !top->name ||
	    (strncmp(top->name, upstream, sizeof(upstream) - 1) != 0 &&
	     strncmp(top->name, cosocket, sizeof(cosocket) - 1) != 0))
		return "no upstream";
	colon = strstr(top->name, ": ");
	return colon ? colon + 2 : "no upstream";
}

/* Add the frame of the group at the root. 0 or -ENOMEM. */
static int add_group(struct filter *filter, struct sample *sample)
{
	char text[MODULE_PATH_SIZE];
	const char *process = sample->process_name ? sample->process_name : "process";
	const char *thread = sample->thread_name ? sample->thread_name : "thread";
	struct function function = { .kind = FRAME_NATIVE, .name = text };
	struct frame *root =
		&filter->frames[sample->frames - filter->frames + (ptrdiff_t)sample->frame_count];

	switch (filter->options.group) {
	case GROUP_PID: snprintf(text, sizeof(text), "%s (pid %d)", process, (int)sample->pid); break;
	case GROUP_TID: snprintf(text, sizeof(text), "%s (tid %d)", thread, (int)sample->tid); break;
	case GROUP_COMM: function.name = thread; break;
	case GROUP_STATE: function.name = state_name(sample); break;
	case GROUP_PHASE: function.name = sample->phase ? sample->phase : "no phase"; break;
	case GROUP_GC_PHASE: function.name = gc_name(sample); break;
	case GROUP_MODULE: function.name = module_name(sample, text); break;
	case GROUP_ROUTE:
	case GROUP_HOST:
	case GROUP_STATUS:
		function.name = request_group(filter->options.group, &sample->request, text);
		break;
	case GROUP_UPSTREAM: function.name = upstream_name(sample); break;
	case GROUP_NONE:
	case GROUP_COUNT: return 0;
	}
	*root = (struct frame){ .function = functions_intern(filter->functions, &function) };
	sample->frame_count++;
	return root->function ? 0 : -ENOMEM;
}

/* Do the added frames depend on more than the stack? */
static bool depends_on_sample(const struct filter_options *options)
{
	return options->group != GROUP_NONE || options->time == TIME_OFF_CPU;
}

static bool changes_stacks(const struct filter_options *options)
{
	return changes_functions(options) || options->merge_recursion || depends_on_sample(options);
}

/* 0 or -ENOMEM. */
static int change_stack(struct filter *filter, struct sample *sample)
{
	if (copy_frames(filter, sample))
		return -ENOMEM;
	if (changes_functions(&filter->options) && change_functions(filter, sample))
		return -ENOMEM;
	if (filter->options.merge_recursion)
		merge_recursion(filter->frames, sample);
	return add_group(filter, sample);
}

/* Which name stands for what is not known of a request? */
static uint64_t request_kind(const struct sample_request *request)
{
	return !request->route ? 0 : strcmp(request->route, ROUTE_UNKNOWN) == 0 ? 1 : 2;
}

/* What decides on the added frames besides the stack. */
static struct addition_key addition_key(const struct filter *filter, const struct sample *sample)
{
	struct addition_key key = { .wait = wait_frame(filter, sample) };

	switch (filter->options.group) {
	case GROUP_PID:
		key.text = sample->process_name;
		key.number = (uint64_t)sample->pid;
		break;
	case GROUP_TID:
		key.text = sample->thread_name;
		key.number = (uint64_t)sample->tid;
		break;
	case GROUP_COMM: key.text = sample->thread_name; break;
	case GROUP_STATE: key.text = state_name(sample); break;
	case GROUP_PHASE: key.text = sample->phase; break;
	case GROUP_GC_PHASE: key.text = gc_name(sample); break;
	case GROUP_ROUTE: key.text = sample->request.route; break;
	case GROUP_HOST:
		key.text = sample->request.host;
		key.number = request_kind(&sample->request);
		break;
	case GROUP_STATUS: key.number = request_kind(&sample->request) << 32 | sample->request.status; break;
	case GROUP_UPSTREAM:
		key.number = sample->request.route && sample->thread_state == THREAD_PARKED;
		break;
	case GROUP_MODULE:
	case GROUP_NONE:
	case GROUP_COUNT: break;
	}
	return key;
}

/* The addition of a sample, made if new. NULL when memory is short. */
static const struct addition *find_addition(struct filter *filter, const struct sample *sample)
{
	struct addition_key key = addition_key(filter, sample);
	struct addition *addition;

	HASH_FIND(hh, filter->additions, &key, sizeof(key), addition);
	if (addition)
		return addition;
	addition = calloc(1, sizeof(*addition));
	if (!addition)
		return NULL;
	addition->key = key;
	addition->number = HASH_COUNT(filter->additions);
	HASH_ADD(hh, filter->additions, key, sizeof(addition->key), addition);
	if (hash_added(&addition->hh))
		return addition;
	free(addition);
	return NULL;
}

/* Set the number of the stack as passed on, or 0 for no number. Returns 0 or -ENOMEM. */
static int number_stack(struct filter *filter, const struct sample *sample, uint64_t *ret_number)
{
	const struct addition *addition;

	*ret_number = 0;
	if (sample->stack == 0 || sample->stack >> STACK_BITS ||
	    HASH_COUNT(filter->additions) >> ADDITION_BITS)
		return 0;
	addition = find_addition(filter, sample);
	if (!addition)
		return -ENOMEM;
	*ret_number = sample->stack << ADDITION_BITS | addition->number;
	return 0;
}

/* Remember a changed stack and whether it passes, if the cache has room. */
static void keep(struct filter *filter, size_t place, uint64_t number, const struct sample *sample,
		 bool passed)
{
	size_t frame_count = passed ? sample->frame_count : 0;

	filter->passed[place] = passed;
	if (stack_cache_take(&filter->changed, place, number, frame_count) && frame_count)
		memcpy(filter->changed.places[place].frames, sample->frames,
		       frame_count * sizeof(*sample->frames));
}

/* Make the cache, if it is not there. 0 or -ENOMEM. */
static int begin_cache(struct filter *filter)
{
	if (filter->passed)
		return 0;
	filter->passed = calloc(STACK_CACHE_PLACES, sizeof(*filter->passed));
	return filter->passed && stack_cache_init(&filter->changed) == 0 ? 0 : -ENOMEM;
}

static void end_cache(struct filter *filter)
{
	stack_cache_clear(&filter->changed);
	free(filter->passed);
	filter->passed = NULL;
}

/* Test the sample's stack and change it. 1 if the sample passes, 0 if not, or -ENOMEM. */
static int pass_stack(struct filter *filter, struct sample *sample)
{
	const struct cached_stack *known;
	uint64_t number;
	size_t place = 0;
	int result;

	if (!filter->options.include && !filter->options.exclude && !changes_stacks(&filter->options))
		return 1;
	if (begin_cache(filter) || number_stack(filter, sample, &number))
		return -ENOMEM;
	if (number) {
		place = stack_cache_place(&filter->changed, number);
		known = &filter->changed.places[place];
		if (known->number == number) {
			sample->frames = known->frames;
			sample->frame_count = known->frame_count;
			sample->stack = number;
			return filter->passed[place];
		}
	}
	result = stack_passes(filter, sample);
	if (result > 0 && change_stack(filter, sample))
		return -ENOMEM;
	sample->stack = number;
	if (result >= 0 && number)
		keep(filter, place, number, sample, result > 0);
	return result;
}

/*---- The source ----*/

static int next_sample(struct sample_source *source, struct sample *ret_sample)
{
	struct filter *filter = (struct filter *)source;
	struct sample sample;
	int result = asks_for_slow(&filter->options) && !filter->knows_slow ? find_slow(filter) : 0;

	if (result < 0)
		return result;
	do {
		result = filter->from->next(filter->from, &sample);
		/* Many filters, read one after the other, need the cache of one. */
		if (result == 0)
			end_cache(filter);
		if (result <= 0)
			return result;
		result = may_pass(&filter->options, &sample) && request_passes(filter, &sample)
				 ? pass_stack(filter, &sample)
				 : 0;
	} while (result == 0);
	if (result < 0)
		return result;
	if (filter->options.time == TIME_OFF_CPU) {
		sample.wall_ns -= sample.cpu_ns;
		sample.cpu_ns = 0;
	}
	*ret_sample = sample;
	return 1;
}

static int rewind_samples(struct sample_source *source)
{
	struct filter *filter = (struct filter *)source;

	/* After a rewind, the source may give its numbers to other stacks. */
	end_cache(filter);
	return filter->from->rewind(filter->from);
}

struct filter *filter_new(struct sample_source *source, struct functions *functions,
			  const struct filter_options *options)
{
	struct filter *filter = calloc(1, sizeof(*filter));

	if (!filter)
		return NULL;
	filter->source.next = next_sample;
	filter->source.rewind = rewind_samples;
	filter->from = source;
	filter->functions = functions;
	filter->options = *options;
	return filter;
}

void filter_free(struct filter *filter)
{
	if (!filter)
		return;
	HASH_FREE_ALL(filter->additions);
	HASH_FREE_ALL(filter->slow);
	HASH_FREE_ALL(filter->verdicts);
	end_cache(filter);
	free(filter->frames);
	free(filter);
}

bool filter_passes_all(const struct filter *filter)
{
	const struct filter_options *options = &filter->options;

	return options->since_ns == 0 && options->until_ns == 0 && options->pid_count == 0 &&
	       options->tid_count == 0 && !options->thread && options->thread_states == 0 &&
	       options->vm_states == 0 && !options->include && !options->exclude &&
	       !options->include_request && !asks_for_slow(options) && options->number == 0 &&
	       options->time == TIME_ALL && !options->merge_recursion && options->group == GROUP_NONE;
}

struct sample_source *filter_samples(struct filter *filter)
{
	return &filter->source;
}

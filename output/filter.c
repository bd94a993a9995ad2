#include "output/filter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "output/frame_label.h"
#include "output/module_path.h"
#include "output/names.h"

/* What is to be known of a function is found out once. */
struct verdict {
	const struct function *function;
	bool included, excluded;
	const struct function *anywhere;	/* the same without the line of its definition */
	UT_hash_handle hh;
};

struct filter {
	struct sample_source source;	/* first: the source and the filter are one address */
	struct sample_source *from;
	struct functions *functions;
	struct filter_options options;
	struct verdict *verdicts;
	struct frame *frames;		/* of the sample that passed last */
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

enum filter_time filter_time_by(enum profile_weight shown, enum profile_weight recorded)
{
	if (shown == recorded)
		return TIME_ALL;
	return shown == PROFILE_OFF_CPU_TIME ? TIME_OFF_CPU : TIME_ON_CPU;
}

static bool has_time(const struct filter_options *options, const struct sample *sample)
{
	switch (options->time) {
	case TIME_ALL:
		return true;
	case TIME_ON_CPU:
		return sample->thread_state == THREAD_RUNNING || sample->cpu_ns > 0;
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

/* One without a name has nothing else to go by. NULL when memory is short. */
static const struct function *forget_line(struct filter *filter, const struct function *function)
{
	struct function anywhere = *function;

	if (!filter->options.anywhere || function->kind != FRAME_LUA || !function->name)
		return function;
	anywhere.firstline = 0;
	return functions_intern(filter->functions, &anywhere);
}

/* NULL when memory is short. */
static const struct verdict *judge(struct filter *filter, const struct function *function)
{
	struct verdict *verdict;
	char label[FRAME_LABEL_SIZE];
	bool added = true;

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
	verdict->anywhere = forget_line(filter, function);
#undef uthash_nonfatal_oom
#define uthash_nonfatal_oom(element) (added = false)
	HASH_ADD_PTR(filter->verdicts, function, verdict);
	if (added && verdict->anywhere)
		return verdict;
	if (added)
		HASH_DEL(filter->verdicts, verdict);
	free(verdict);
	return NULL;
}

/* What a thread that wants a CPU waits for. */
static const struct function want_of_cpu = {
	.kind = FRAME_NATIVE, .name = "waiting for a CPU", .module = "kernel",
};

/* What the thread waits for, where that is a frame on top of its stack; else NULL. */
static const struct function *wait_frame(const struct filter *filter, const struct sample *sample)
{
	if (filter->options.time != TIME_OFF_CPU)
		return NULL;
	return sample->thread_state == THREAD_RUNNABLE ? &want_of_cpu : sample->wait;
}

/* 1 if it does, 0 if not, or -ENOMEM. */
static int stack_passes(struct filter *filter, const struct sample *sample)
{
	const struct filter_options *options = &filter->options;
	const struct function *wait = wait_frame(filter, sample);
	bool included = options->include == NULL;

	if (!options->include && !options->exclude)
		return 1;
	for (size_t i = 0; i < sample->frame_count + (wait ? 1 : 0); i++) {
		const struct verdict *verdict = judge(filter, i < sample->frame_count
						      ? sample->frames[i].function : wait);

		if (!verdict)
			return -ENOMEM;
		if (verdict->excluded)
			return 0;
		included |= verdict->included;
	}
	return included;
}

static int passes(struct filter *filter, const struct sample *sample)
{
	const struct filter_options *options = &filter->options;

	if (sample->time_ns < options->since_ns ||
	    (options->until_ns && sample->time_ns >= options->until_ns) ||
	    !is_among(sample->pid, options->pids, options->pid_count) ||
	    !is_among(sample->tid, options->tids, options->tid_count) ||
	    (options->thread && (!sample->thread_name || strcmp(sample->thread_name, options->thread) != 0)) ||
	    !is_in_state(options, sample) || !has_time(options, sample))
		return 0;
	return stack_passes(filter, sample);
}

/*---- Stacks ----*/

/* And what the thread waits for, if that is wanted; with room for one more frame. 0 or -ENOMEM. */
static int copy_frames(struct filter *filter, struct sample *sample)
{
	const struct function *leaf = wait_frame(filter, sample);
	size_t needed = sample->frame_count + 2;

	if (needed > filter->size) {
		struct frame *bigger = realloc(filter->frames, 2 * needed * sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		filter->frames = bigger;
		filter->size = 2 * needed;
	}
	if (leaf)
		filter->frames[0] = (struct frame){ .function = leaf };
	if (sample->frame_count)
		memcpy(filter->frames + (leaf ? 1 : 0), sample->frames,
		       sample->frame_count * sizeof(*filter->frames));
	sample->frames = filter->frames;
	sample->frame_count += leaf ? 1 : 0;
	return 0;
}

/* Are the first of these frames, so many, the same functions as the next so many? */
static bool repeats(const struct frame *frames, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (frames[i].function != frames[count + i].function)
			return false;
	return true;
}

/*
 * From the root to the leaf: the end of the array, which is the root, stays
 * where it is, and what remains is gathered before it.
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

/* 0 or -ENOMEM. */
static int forget_lines(struct filter *filter, const struct sample *sample)
{
	for (size_t i = 0; i < sample->frame_count; i++) {
		const struct verdict *verdict = judge(filter, filter->frames[i].function);

		if (!verdict)
			return -ENOMEM;
		filter->frames[i].function = verdict->anywhere;
	}
	return 0;
}

static const char *state_name(const struct sample *sample)
{
	return sample->thread_state == THREAD_RUNNING ? vm_state_name(sample->vm_state)
						      : thread_state_name(sample->thread_state);
}

static const char *module_name(const struct sample *sample, char text[static MODULE_PATH_SIZE])
{
	const struct function *owner = module_path_owner(sample->frames, sample->frame_count);

	if (!owner)
		return "no Lua";
	module_path(owner->file, text);
	return text;
}

/* Add the frame of the group at the root. 0 or -ENOMEM. */
static int add_group(struct filter *filter, struct sample *sample)
{
	char text[MODULE_PATH_SIZE];
	const char *process = sample->process_name ? sample->process_name : "process";
	const char *thread = sample->thread_name ? sample->thread_name : "thread";
	struct function function = { .kind = FRAME_NATIVE, .name = text };
	struct frame *root = &filter->frames[sample->frames - filter->frames + (ptrdiff_t)sample->frame_count];

	switch (filter->options.group) {
	case GROUP_PID:
		snprintf(text, sizeof(text), "%s (pid %d)", process, (int)sample->pid);
		break;
	case GROUP_TID:
		snprintf(text, sizeof(text), "%s (tid %d)", thread, (int)sample->tid);
		break;
	case GROUP_COMM:
		function.name = process;
		break;
	case GROUP_STATE:
		function.name = state_name(sample);
		break;
	case GROUP_PHASE:
		function.name = sample->phase ? sample->phase : "no phase";
		break;
	case GROUP_MODULE:
		function.name = module_name(sample, text);
		break;
	case GROUP_NONE:
	case GROUP_COUNT:
		return 0;
	}
	*root = (struct frame){ .function = functions_intern(filter->functions, &function) };
	sample->frame_count++;
	return root->function ? 0 : -ENOMEM;
}

/* Is there a frame of what is the sample's, not the stack's? */
static bool depends_on_sample(const struct filter_options *options)
{
	return options->group != GROUP_NONE || options->time == TIME_OFF_CPU;
}

static bool changes_stacks(const struct filter_options *options)
{
	return options->anywhere || options->merge_recursion || depends_on_sample(options);
}

/* 0 or -ENOMEM. */
static int change_stack(struct filter *filter, struct sample *sample)
{
	if (depends_on_sample(&filter->options))
		sample->stack = 0;
	if (copy_frames(filter, sample))
		return -ENOMEM;
	if (filter->options.anywhere && forget_lines(filter, sample))
		return -ENOMEM;
	if (filter->options.merge_recursion)
		merge_recursion(filter->frames, sample);
	return add_group(filter, sample);
}

/*---- The source ----*/

static int next_sample(struct sample_source *source, struct sample *ret_sample)
{
	struct filter *filter = (struct filter *)source;
	struct sample sample;
	int result;

	do {
		result = filter->from->next(filter->from, &sample);
		if (result <= 0)
			return result;
		result = passes(filter, &sample);
	} while (result == 0);
	if (result < 0)
		return -ENOMEM;
	if (filter->options.time == TIME_OFF_CPU) {
		sample.wall_ns -= sample.cpu_ns;
		sample.cpu_ns = 0;
	}
	if (changes_stacks(&filter->options) && change_stack(filter, &sample))
		return -ENOMEM;
	*ret_sample = sample;
	return 1;
}

static int rewind_samples(struct sample_source *source)
{
	struct filter *filter = (struct filter *)source;

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
	struct verdict *verdict, *next;

	if (!filter)
		return;
	HASH_ITER(hh, filter->verdicts, verdict, next) {
		HASH_DEL(filter->verdicts, verdict);
		free(verdict);
	}
	free(filter->frames);
	free(filter);
}

bool filter_passes_all(const struct filter *filter)
{
	const struct filter_options *options = &filter->options;

	return options->since_ns == 0 && options->until_ns == 0 && options->pid_count == 0 &&
	       options->tid_count == 0 && !options->thread && options->thread_states == 0 &&
	       options->vm_states == 0 && !options->include && !options->exclude &&
	       options->time == TIME_ALL && !options->merge_recursion && options->group == GROUP_NONE;
}

struct sample_source *filter_samples(struct filter *filter)
{
	return &filter->source;
}

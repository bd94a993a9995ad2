/* SPDX-License-Identifier: MIT */
#include "output/heap_reports/heap_profile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/heap_views/heap_words.h"

/* The frames of the deepest path, a group, and a process and VM. */
enum { FRAMES_MAX = HEAP_DEPTH_MAX + 4 };

/* The frames of one heap's paths: each path's own, NULL until it is needed. */
struct frames {
	const struct heap_side *side;
	size_t subject; /* the heap, of the side's */
	const struct heap_paths *paths;
	struct functions *functions;
	const struct function **of; /* by path */
	enum heap_grouping group;
	bool retained;
};

static enum frame_kind frame_kind_of(enum heap_kind kind)
{
	if (kind == HEAP_KIND_FUNCTION || kind == HEAP_KIND_PROTO)
		return FRAME_LUA;
	return kind == HEAP_KIND_THREAD ? FRAME_C_FUNCTION : FRAME_NATIVE;
}

static const struct function *intern(struct functions *functions, enum frame_kind kind, const char *name)
{
	struct function function = { .kind = kind, .name = *name ? name : "(value)" };

	return functions_intern(functions, &function);
}

/* The node that a frame's caller is for. */
static uint32_t caller_of(const struct frames *frames, uint32_t node)
{
	const struct heap_path *path = &frames->paths->nodes[node];

	return frames->retained && path->dominator != HEAP_NO_NODE ? path->dominator : path->parent;
}

static const struct function *frame_of(struct frames *frames, uint32_t node)
{
	const struct heap_path *path = &frames->paths->nodes[node];
	char text[HEAP_PATH_SIZE];

	if (frames->of[node])
		return frames->of[node];
	/* What is not right below its holder has its whole path. */
	if (caller_of(frames, node) == path->parent)
		heap_step_text(frames->paths, node, text);
	else
		heap_path_text(frames->paths, node, text);
	frames->of[node] = intern(frames->functions, frame_kind_of((enum heap_kind)path->kind), text);
	return frames->of[node];
}

/* The name of the group that a path is in; NULL if it is in none and is left out. */
static const char *group_of(const struct heap_paths *paths, uint32_t node, enum heap_grouping group,
			    char text[static HEAP_PATH_SIZE])
{
	const char *module = heap_paths_text(paths, paths->nodes[node].module);

	if (group == HEAP_GROUP_MODULE)
		return *module ? module : "no module";
	if (group == HEAP_GROUP_TYPE)
		return heap_kind_plural((enum heap_kind)paths->nodes[node].kind);
	for (uint32_t at = node; at != HEAP_PATHS_ROOT; at = paths->nodes[at].parent) {
		if (paths->nodes[at].kind != HEAP_KIND_THREAD)
			continue;
		if (heap_path_is_main_thread(paths, at))
			return "main thread";
		snprintf(text, HEAP_PATH_SIZE, "%s", heap_paths_text(paths, paths->nodes[at].what));
		return *text ? text : "coroutine";
	}
	return NULL;
}

static int add_frame(struct frame *frames, size_t *count, const struct function *function)
{
	if (!function)
		return -ENOMEM;
	frames[(*count)++] = (struct frame){ .function = function };
	return 0;
}

/* Frames that tell where a heap is from, if there are several. */
static int add_place(const struct frames *frames, struct frame *list, size_t *count)
{
	const struct heap_account *account = &frames->side->subjects[frames->subject].summary.account;
	char text[HEAP_WORDS_SIZE];

	if (frames->side->count < 2)
		return 0;
	snprintf(text, sizeof(text), "%s %d, VM %u", account->process ? account->process : "process",
		 (int)account->pid, account->vm);
	return add_frame(list, count, intern(frames->functions, FRAME_NATIVE, text));
}

/* The frames of a path, leaf first. *ret_count 0: it is left out. 0 or -ENOMEM. */
static int list_frames(struct frames *frames, uint32_t node, struct frame *list, size_t *ret_count)
{
	char text[HEAP_PATH_SIZE];
	size_t count = 0;
	int error = 0;

	for (uint32_t at = node; at != HEAP_PATHS_ROOT && !error; at = caller_of(frames, at))
		if (caller_of(frames, at) < heap_path_top(frames->paths, at))
			error = add_frame(list, &count, frame_of(frames, at));
	if (!error && frames->group != HEAP_GROUP_NONE) {
		const char *group = group_of(frames->paths, node, frames->group, text);

		if (!group) {
			*ret_count = 0;
			return 0;
		}
		error = add_frame(list, &count, intern(frames->functions, FRAME_NATIVE, group));
	}
	if (!error)
		error = add_place(frames, list, &count);
	*ret_count = count;
	return error;
}

static int each_of_subject(struct frames *frames,
			   int (*each)(void *context, const struct frame *frames, size_t count,
				       const struct heap_sum *sum),
			   void *context)
{
	struct frame list[FRAMES_MAX];
	size_t count;
	int error = 0;

	for (uint32_t i = 1; i < frames->paths->count && !error; i++) {
		const struct heap_path *path = &frames->paths->nodes[i];

		if (path->own.count == 0)
			continue;
		error = list_frames(frames, i, list, &count);
		if (!error && count > 0)
			error = each(context, list, count, &path->own);
	}
	return error;
}

int heap_profile_each(const struct heap_side *side, const struct heap_view *view, struct functions *functions,
		      int (*each)(void *context, const struct frame *frames, size_t count,
				  const struct heap_sum *sum),
		      void *context)
{
	int error = 0;

	for (size_t i = 0; i < side->count && !error; i++) {
		struct frames frames = {
			.side = side,
			.subject = i,
			.paths = &side->subjects[i].summary.paths,
			.functions = functions,
			.group = view->group,
			.retained = view->measure == HEAP_BY_RETAINED,
		};

		frames.of = calloc(frames.paths->count, sizeof(const struct function *));
		error = frames.of ? each_of_subject(&frames, each, context) : -ENOMEM;
		free(frames.of);
	}
	return error;
}

enum weight_kind heap_profile_weight(const struct heap_view *view)
{
	return view->measure == HEAP_BY_COUNT ? WEIGHT_HEAP_OBJECTS : WEIGHT_HEAP_BYTES;
}

struct adder {
	struct profile *profile;
	bool objects, with_nothing;
};

static int add_stack(void *context, const struct frame *frames, size_t count, const struct heap_sum *sum)
{
	const struct adder *adder = context;
	const struct profile_node *leaf;
	struct profile_sum added = { 0 };

	if (!adder->with_nothing) {
		added.ns = adder->objects ? sum->count : sum->bytes;
		added.samples = sum->count;
		added.state_ns[VM_STATE_NONE] = added.ns;
	}
	return profile_add_sum(adder->profile, frames, count, &added, &leaf);
}

int heap_profile_add(struct profile *profile, const struct heap_side *side, const struct heap_view *view,
		     struct functions *functions, bool with_nothing)
{
	struct adder adder = {
		.profile = profile,
		.objects = view->measure == HEAP_BY_COUNT,
		.with_nothing = with_nothing,
	};

	return heap_profile_each(side, view, functions, add_stack, &adder);
}

struct session heap_profile_session(const struct heap_side *side, const struct heap_view *view)
{
	const struct heap_account *first = side->count ? &side->subjects[0].summary.account : NULL;
	struct session session = { .clock = heap_profile_weight(view), .command_line = view->command_line };

	if (!first)
		return session;
	session.start_unix_ns = (uint64_t)first->time * 1000000000;
	session.target = first->process;
	session.pid = first->pid;
	for (size_t i = 1; i < side->count; i++)
		if (side->subjects[i].summary.account.pid != first->pid)
			session.pid = 0;
	return session;
}

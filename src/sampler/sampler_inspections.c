/* SPDX-License-Identifier: MIT */
/* What the sampler finds out about a process: whether, and which, LuaJIT is in it. */
#include "src/sampler/sampler_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/linux/proc/process.h"
#include "src/linux/tracer/tracer_looks.h"
#include "src/survey/puc_lua.h"

enum {
	/* For files, in a search: looks at other targets wait meanwhile. */
	SEARCH_WAITS_NS = 500 * 1000 * 1000,
};

/*
 * A process that was found is sampled while it runs LuaJIT; the accounts, those of its threads, too, leave
 * out what it uses otherwise.
 */
static void note_luajit(struct sampler *sampler, struct target *target, uint64_t now)
{
	bool runs_luajit = lua_process_module_count(target->process) > 0;

	sampler->result->saw_luajit |= runs_luajit;
	if (!target->attached || target->sampled || !runs_luajit)
		return;
	target->sampled = true;
	target_open_accounts(sampler, target, now);
}

/* What the user means to profile may run another Lua: search what has just been loaded. */
static void note_other_lua(struct sampler *sampler, const struct target *target)
{
	struct sampler_result *result = sampler->result;

	if (!sampler->options->launch || result->saw_luajit || *result->other_lua || target->refusal ||
	    lua_process_lacks_luajit(target->process) == -ENODATA ||
	    !lua_process_has_new_modules(target->process))
		return;
	if (!sampler->start_ns)
		known_files_allow_ns(sampler->files, SEARCH_WAITS_NS);
	puc_lua_find(target->pid, known_files_errands(sampler->files), result->other_lua);
}

void target_note_unknown_layout(struct sampler *sampler, const struct target *target)
{
	struct sampler_result *result = sampler->result;
	const char *verdict = target->process ? lua_process_unknown_layout(target->process) : NULL;

	if (!verdict || result->unknown_pid)
		return;
	result->unknown_pid = target->pid;
	snprintf(result->unknown_reason, sizeof(result->unknown_reason), "%s", verdict);
}

void target_inspect_later(struct target *target, uint64_t now)
{
	target->inspect_at_ns = now + target->inspect_interval_ns;
	if (target->inspect_interval_ns < HOUSEKEEPING_NS)
		target->inspect_interval_ns *= 2;
}

void target_hasten_inspection(struct target *target, uint64_t now)
{
	target->is_hasty = true;
	if (now + target->haste_ns < target->inspect_at_ns)
		target->inspect_at_ns = now + target->haste_ns;
}

/* Code may stay unknown for good: inspect with less haste each time. */
static void note_haste(struct target *target)
{
	if (!target->is_hasty || lua_process_has_new_modules(target->process))
		target->haste_ns = INSPECT_AGAIN_NS;
	else if (target->haste_ns < HOUSEKEEPING_NS)
		target->haste_ns *= 2;
	target->is_hasty = false;
}

void target_note_roots(const struct sampler *sampler, const struct target *target)
{
	if (target->process)
		lua_process_add_roots(target->process, sampler->result->roots,
				      sizeof(sampler->result->roots));
}

static int open_process(struct sampler *sampler, struct target *target)
{
	int error = lua_process_open(target->pid, sampler->options->functions, sampler->files,
				     &sampler->options->namer, &target->process);

	if (!error)
		lua_process_give_layout(target->process, sampler->options->layout);
	return error;
}

static bool inspect(struct sampler *sampler, struct target *target, uint64_t now)
{
	bool is_unsearched;
	int error = target->process ? 0 : open_process(sampler, target);

	if (!error)
		error = lua_process_refresh(target->process, false);
	if (error == -ESRCH)
		return false;
	if (!target->process) {
		target->refusal = error;
		return true;
	}
	/* Many that are found have nothing to do with LuaJIT, and are large: that is no fault. */
	is_unsearched = !error && lua_process_lacks_luajit(target->process) == -ENODATA;
	/* It ended meanwhile: nothing refuses, there is just no memory to read any more. */
	if ((error || is_unsearched) && process_thread_with_memory(target->pid) == 0)
		return false;
	target->unsearched_looks = is_unsearched ? target->unsearched_looks + 1 : 0;
	target->is_searched |= !error && !is_unsearched;
	if (is_unsearched && !target->found)
		error = -ENODATA;
	target->refusal = error;
	note_haste(target);
	note_luajit(sampler, target, now);
	target_note_roots(sampler, target);
	note_other_lua(sampler, target);
	if (lua_process_global_count(target->process) && !*sampler->result->layout)
		memcpy(sampler->result->layout, lua_process_global(target->process, 0)->vm->layout.name,
		       LAYOUT_NAME_MAX);
	if (lua_process_global_count(target->process) || lua_process_needs_confirming(target->process))
		target->inspect_at_ns = now + HOUSEKEEPING_NS;
	return true;
}

/*
 * A signal that is to end the recording ends a search. So do, once there is something to sample, files that
 * are slow to read: the next search asks again for what this one has not got.
 */
bool target_inspect(struct sampler *sampler, struct target *target, uint64_t now)
{
	bool is_there;

	/* This takes a while, and may start a process. */
	tracer_take_time(sampler->tracer);
	target_inspect_later(target, now);
	sampler->searches = true;
	if (sampler->start_ns)
		known_files_allow_ns(sampler->files, SEARCH_WAITS_NS);
	is_there = inspect(sampler, target, now);
	known_files_allow_ns(sampler->files, UINT64_MAX);
	sampler->searches = false;
	return is_there;
}

/* SPDX-License-Identifier: MIT */
/* What C functions work on: nginx's zones, who holds their locks, and the frames that tell it. */
#include "src/inspect/lua_process_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/linux/proc/process.h"
#include "unwind/details/details.h"

struct detail_capture {
	struct zones zones;
	pid_t own_pid;    /* of the process in its own pid namespace; 0 if unknown */
	bool sees_others; /* that namespace is ljspy's own */
	/* Of the moment of the last capture. */
	bool has_holders;
	uint64_t holders[ZONES_MAX];
	uint64_t sleeps_at;
};

int process_open_details(struct lua_process *process)
{
	const struct namer_options *options = &process->options;

	if (!options->details && options->errors != ERRORS_VALUES)
		return 0;
	process->values = value_capture_new();
	process->details = calloc(1, sizeof(*process->details));
	return process->values && process->details ? 0 : -ENOMEM;
}

bool lua_process_wants_details(const struct lua_process *process)
{
	return process->options.details;
}

void process_close_details(struct lua_process *process)
{
	free(process->details);
	free(process->zones);
}

/*---- Locks ----*/

bool lua_process_find_lock(struct lua_process *process, struct resty_lock *ret_lock)
{
	return resty_lock_find(process->memory, &process->stack, &process->lock, ret_lock);
}

void lua_process_find_zones(struct lua_process *process)
{
	if (!process->zones)
		process->zones = calloc(1, sizeof(*process->zones));
	if (process->zones && process->zones->count == 0)
		zones_find(process->memory, lua_image_request_members(process->lua)->cycle, process->zones);
}

bool lua_process_sleeps_at_zone(const struct lua_process *process, uint64_t sleeps_at)
{
	return process->zones && zones_of_mutex(process->zones, sleeps_at) != NULL;
}

bool lua_process_find_zone_lock(struct lua_process *process, uint64_t sleeps_at,
				char ret_name[static ZONE_NAME_BYTES])
{
	const struct detail_source source = {
		.capture = &process->capture,
		.stack = &process->stack,
		.namer = process->namer,
		.live = process->memory,
		.zones = process->zones,
		.sleeps_at = sleeps_at,
	};
	const struct zone *zone = process->zones ? details_find_lock(&source) : NULL;

	if (zone)
		memcpy(ret_name, zone->name, sizeof(zone->name));
	return zone != NULL;
}

/*---- Details ----*/

void process_refresh_details(struct lua_process *process)
{
	struct detail_capture *details = process->details;
	struct process known;

	if (!details || !process->options.details || details->zones.count)
		return;
	zones_find(process->memory, lua_image_request_members(process->lua)->cycle, &details->zones);
	if (process->core || process_read(process->pid, &known))
		return;
	details->own_pid = known.own_pid;
	details->sees_others = known.own_pid == process->pid;
	process_clear(&known);
}

void process_capture_details(struct lua_process *process, const struct capture_hints *hints)
{
	struct detail_capture *details = process->details;

	if (!details)
		return;
	details->sleeps_at = hints->sleeps_at;
	details->has_holders = details->zones.count > 0;
	if (details->has_holders)
		zones_read_holders(process->memory, &details->zones, details->holders);
}

void process_forget_details(struct lua_process *process)
{
	if (!process->details)
		return;
	process->details->has_holders = false;
	process->details->sleeps_at = 0;
}

/* What a process does that holds a lock. */
static bool describe_process(void *context, uint64_t pid, char ret_text[static DETAIL_PROCESS_BYTES])
{
	const struct lua_process *process = context;
	struct process holder;
	const char *state;
	int error;

	if (!process->details->sees_others || pid > INT32_MAX)
		return false;
	error = process_read((pid_t)pid, &holder);
	if (error && error != -ESRCH)
		return false;
	switch (error ? 'X' : holder.state) {
	case 'R': state = "running"; break;
	case 'S': state = "asleep"; break;
	case 'D': state = "uninterruptible"; break;
	case 'T': state = "stopped"; break;
	/* ljspy may hold it, too, and holds only what runs. */
	case 't': state = holder.tracer_pid == gettid() ? "running" : "stopped"; break;
	default: state = "dead"; break;
	}
	snprintf(ret_text, DETAIL_PROCESS_BYTES, "%s", state);
	if (!error)
		process_clear(&holder);
	return true;
}

static int insert(struct lua_process *process, const struct detail *details, size_t count,
		  const struct frame **ret_frames, size_t *ret_count)
{
	int error = 0;

	for (size_t i = 0; i < count && !error; i++)
		error = namer_insert(process->namer, details[i].merged_index, details[i].text, ret_frames,
				     ret_count);
	return error;
}

int process_add_details(struct lua_process *process, bool runs, const struct frame **ret_frames,
			size_t *ret_count)
{
	static const struct zones no_zones = { .count = 0 };
	const struct detail_capture *known = process->details;
	const struct detail_source source = {
		.capture = &process->capture,
		.stack = &process->stack,
		.namer = process->namer,
		.live = process->memory,
		.zones = known ? &known->zones : &no_zones,
		.holders = known && known->has_holders ? known->holders : NULL,
		.own_pid = known ? (uint64_t)known->own_pid : 0,
		.sleeps_at = known ? known->sleeps_at : 0,
		.describe_process = describe_process,
		.context = process,
	};
	struct detail details[DETAILS_MAX];
	size_t count = 0;
	int error;

	if (runs && process->options.errors != ERRORS_HIDDEN)
		count = details_find_errors(&source, process->options.errors == ERRORS_VALUES, details);
	error = insert(process, details, count, ret_frames, ret_count);
	if (error || !process->options.details)
		return error;
	count = details_find(&source, details);
	return insert(process, details, count, ret_frames, ret_count);
}

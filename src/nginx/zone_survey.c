/* SPDX-License-Identifier: MIT */
#include "src/nginx/zone_survey.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "src/footprint/pieces/slab_zone.h"
#include "src/footprint/pieces/window.h"
#include "src/footprint/pieces/zone_names.h"
#include "src/linux/clocks/clock.h"
#include "src/linux/files/same_file.h"
#include "src/linux/pages/present_memory.h"
#include "src/linux/proc/maps.h"
#include "src/linux/proc/process.h"
#include "src/linux/proc/resident.h"
#include "unwind/nginx/request_members.h"
#include "unwind/nginx/shared_dict.h"
#include "unwind/nginx/zones.h"

/* Larger mappings are only reserved. */
static const uint64_t mapping_bytes_max = UINT64_C(64) << 30;

enum { NS_PER_MS = 1000 * 1000, PATH_BYTES = 64 };

struct survey {
	struct lua_process *process;
	struct zone_report *report;
	struct page_runs runs;
	struct window window;
	struct present_memory present;
	uint64_t cycle; /* ngx_cycle_t; 0 if unknown */
};

/*---- Who holds a lock ----*/

static bool namespace_of(pid_t pid, struct stat *ret_status)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
	return stat(path, ret_status) == 0;
}

static bool shares_namespace(pid_t pid, const struct stat *own)
{
	struct stat other;

	return namespace_of(pid, &other) && same_file(&other, own);
}

static void note_holder(const struct process *process, struct zone_lock *lock)
{
	lock->state = process_is_zombie(process) ? ZONE_HOLDER_DEAD : ZONE_HOLDER_ALIVE;
	lock->pid = process->pid;
	snprintf(lock->name, sizeof(lock->name), "%s", process->name);
}

static void find_among(const struct process *processes, size_t count, const struct stat *namespace,
		       struct zone_lock *lock)
{
	for (size_t i = 0; i < count; i++)
		if (processes[i].own_pid == lock->holder && shares_namespace(processes[i].pid, namespace))
			note_holder(&processes[i], lock);
}

/* In the pid namespace of nginx, which may be another than that of ljspy. */
static void find_holder(pid_t nginx, struct zone_lock *lock)
{
	struct process_list list;
	struct process process;
	struct stat own;

	lock->state = ZONE_HOLDER_UNKNOWN;
	if (!namespace_of(nginx, &own))
		return;
	if (shares_namespace(getpid(), &own)) {
		/* /proc may hide other users' processes. */
		if (kill(lock->holder, 0) != 0 && errno == ESRCH)
			lock->state = ZONE_HOLDER_DEAD;
		else if (process_read_outside(lock->holder, &process) == 0) {
			note_holder(&process, lock);
			process_clear(&process);
		}
		return;
	}
	if (process_find(".", &list, NULL))
		return;
	/* All processes of a namespace are seen from one above it: this one is not among them if it ended. */
	lock->state = ZONE_HOLDER_DEAD;
	find_among(list.processes, list.count, &own, lock);
	find_among(list.unread, list.unread_count, &own, lock);
	process_list_clear(&list);
}

/*---- Zones ----*/

static int add_zone(struct survey *survey, const struct mapping *mapping)
{
	struct zone_row row = { 0 };
	struct shared_dict dict;
	struct slab_zone zone = { .size = mapping->end - mapping->begin };
	bool is_slab = slab_zone_read(&survey->window, mapping->begin, mapping->end, &zone);
	bool is_named = survey->cycle && zone_names_find(&survey->window, survey->cycle, mapping->begin,
							 mapping->end, zone.name);

	/* A worker may have none of a zone's pages, and know its name all the same. */
	if (!is_slab && !is_named)
		return 0;
	snprintf(row.name, sizeof(row.name), "%s", zone.name);
	snprintf(row.kind, sizeof(row.kind), "%s", zone.kind);
	row.size = zone.size;
	row.usable = zone.usable;
	row.free = zone.free;
	row.knows_free = zone.knows_free;
	/* Other owners keep trees and queues, too. */
	row.is_dict = strcmp(zone.kind, "lua_shared_dict zone") == 0;
	if (row.is_dict && shared_dict_read(&survey->present.memory, mapping->begin, mapping->end,
					    clock_now_ns(CLOCK_REALTIME) / NS_PER_MS, &dict)) {
		row.knows_keys = dict.is_whole;
		row.is_exact = dict.is_quiet;
		row.keys = dict.keys;
		row.expired = dict.expired;
	}
	row.lock.is_known = zones_read_holder(&survey->present.memory, mapping->begin, &row.lock.holder);
	if (row.lock.is_known && row.lock.holder)
		find_holder(survey->report->pid, &row.lock);
	return zone_report_add(survey->report, &row);
}

static int read_runs(struct survey *survey, const struct maps *maps)
{
	int pagemap = resident_open(process_thread_with_memory(survey->report->pid)), error = 0;

	if (pagemap < 0)
		return pagemap;
	for (size_t i = 0; i < maps_count(maps) && !error; i++) {
		const struct mapping *mapping = maps_at(maps, i);

		if ((mapping->access & MAPPING_WRITE) && mapping->end - mapping->begin <= mapping_bytes_max)
			error = page_runs_read(&survey->runs, pagemap, mapping->begin, mapping->end, true);
	}
	close(pagemap);
	return error;
}

static int add_zones(struct survey *survey, const struct maps *maps)
{
	const unsigned int shared = MAPPING_SHARED | MAPPING_READ | MAPPING_WRITE;
	const struct request_members *members = lua_process_request_members(survey->process);
	struct memory *memory = lua_process_memory(survey->process);
	int error = window_open(memory, &survey->runs, &survey->window);

	if (error)
		return error;
	survey->present = present_memory(memory, &survey->runs);
	if (members->known && members->cycle)
		memory_u64(memory, members->cycle, &survey->cycle);
	for (size_t i = 0; i < maps_count(maps) && !error; i++)
		if ((maps_at(maps, i)->access & shared) == shared)
			error = add_zone(survey, maps_at(maps, i));
	window_close(&survey->window);
	return error;
}

int zone_survey_take(struct lua_process *process, struct zone_report *report)
{
	struct survey survey = { .process = process, .report = report };
	const struct maps *maps = lua_process_maps(process);
	int error = read_runs(&survey, maps);

	report->count = 0;
	report->is_cut = false;
	if (!error)
		error = add_zones(&survey, maps);
	page_runs_clear(&survey.runs);
	return error ? error : report->count == 0 ? -ENOTSUP : 0;
}

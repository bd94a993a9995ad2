/* SPDX-License-Identifier: MIT */
#include "src/footprint/footprint.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "src/footprint/taking.h"
#include "src/linux/proc/process.h"
#include "src/linux/proc/resident.h"

enum { TRIES = 4, PAUSE_MS = 30 };

/* Pages of so large a mapping are not told apart: 64 GiB have 128 MiB of entries. */
static const uint64_t mapping_bytes_max = UINT64_C(64) << 30;

int taking_claim(struct taking *taking, const struct heap_piece *piece, enum footprint_kind kind,
		 enum footprint_kind free_kind, const char *name, uint64_t g)
{
	struct claim claim = { .begin = piece->begin, .end = piece->end, .free = piece->free_here };
	int error = footprint_row(taking->report, kind, name, g, &claim.row);

	if (!error)
		error = footprint_row(taking->report, free_kind, name, g, &claim.free_row);
	if (!error)
		error = claims_add(&taking->claims, &claim);
	if (!error) {
		taking->report->rows[claim.row].count++;
		taking->report->rows[claim.row].size += claim.end - claim.begin - piece->free;
		taking->report->rows[claim.free_row].size += piece->free;
	}
	return error == -EEXIST ? 0 : error;
}

bool taking_is_plain(const struct mapping *mapping)
{
	return mapping->inode == 0 && !*mapping->path &&
	       (mapping->access & (MAPPING_READ | MAPPING_WRITE | MAPPING_EXECUTE | MAPPING_SHARED)) ==
		       (MAPPING_READ | MAPPING_WRITE);
}

static int read_pages(struct taking *taking)
{
	int pagemap = resident_open(taking->tid), error = 0;

	if (pagemap < 0)
		return pagemap;
	for (size_t i = 0; i < maps_count(taking->smaps.maps) && !error; i++) {
		const struct mapping *mapping = maps_at(taking->smaps.maps, i);
		const struct smaps_figures *figures = &taking->smaps.figures[i];

		if (figures->rss && mapping->end - mapping->begin <= mapping_bytes_max)
			error = page_runs_read(&taking->runs, pagemap, mapping->begin, mapping->end,
					       figures->shared > 0);
	}
	close(pagemap);
	return error;
}

static int claim_all(struct taking *taking)
{
	static int (*const parts[])(struct taking *) = {
		taking_lua, taking_nginx, taking_malloc, taking_stacks, taking_data, taking_large,
	};
	int error = 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && !error; i++)
		error = parts[i](taking);
	return error;
}

static void finish(struct taking *taking)
{
	smaps_clear(&taking->smaps);
	page_runs_clear(&taking->runs);
	window_close(&taking->window);
	claims_clear(&taking->claims);
}

/* How many bytes of files have come into memory since. */
static uint64_t count_looked(const struct smaps *before, const struct smaps *now)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < maps_count(now->maps); i++) {
		const struct mapping *mapping = maps_at(now->maps, i);
		const struct mapping *old = maps_find(before->maps, mapping->begin);
		uint64_t rss = old ? before->figures[old - maps_at(before->maps, 0)].rss : 0;

		if (old && mapping->inode && !(mapping->access & MAPPING_WRITE) && now->figures[i].rss > rss)
			sum += now->figures[i].rss - rss;
	}
	return sum;
}

/* *ret_changed: the process has changed its memory meanwhile. */
static int take_once(struct taking *taking, const struct smaps *before, bool *ret_changed)
{
	struct smaps after;
	int error = smaps_read(taking->tid, &taking->smaps);

	if (!error)
		error = read_pages(taking);
	if (!error)
		error = window_open(lua_process_memory(taking->process), &taking->runs, &taking->window);
	if (!error)
		error = claim_all(taking);
	if (!error)
		error = taking_account(taking);
	if (!error)
		error = smaps_read(taking->tid, &after);
	if (error)
		return error;
	*ret_changed = !smaps_are_equal(&taking->smaps, &after);
	taking->report->looked = count_looked(before, &taking->smaps);
	smaps_clear(&after);
	return 0;
}

/* Beside others a process may have to wait for a CPU halfway through a change: let it run on. */
static void let_run_on(void)
{
	const struct timespec pause = { .tv_nsec = PAUSE_MS * 1000000 };

	nanosleep(&pause, NULL);
}

int footprint_take(struct lua_process *process, const struct smaps *before, struct footprint *report)
{
	bool changed = true, unsteady = false;
	int error = 0;

	for (unsigned i = 0; i < TRIES && (changed || unsteady) && !error; i++) {
		struct taking taking = {
			.process = process,
			.report = report,
			.tid = process_thread_with_memory(report->pid),
		};

		if (taking.tid == 0)
			return -ESRCH;
		if (unsteady)
			let_run_on();
		footprint_reset(report);
		error = take_once(&taking, before, &changed);
		unsteady = taking.unsteady;
		finish(&taking);
	}
	if (error)
		return error;
	report->changed = changed;
	report->unconfirmed = lua_process_lacks_luajit(process) == -ENODATA ||
			      (lua_process_module_count(process) > 0 &&
			       (lua_process_needs_confirming(process) ||
				lua_process_global_count(process) == 0));
	footprint_sort(report);
	return 0;
}

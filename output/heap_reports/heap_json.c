/* SPDX-License-Identifier: MIT */
#include "output/heap_reports/heap_json.h"

#include <errno.h>

#include "output/heap/heap_method.h"
#include "output/heap_views/heap_rows.h"
#include "output/heap_views/heap_words.h"
#include "output/labels/json_values.h"

/* Paths that retain less than this part of all are left out. */
enum { SMALLEST_PART = 10000 };

static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static json_t *figure(const struct heap_figure *value)
{
	return value->known ? number(value->value) : json_null();
}

static json_t *objects_json(const struct heap_summary *summary)
{
	json_t *objects = json_array();

	for (size_t i = HEAP_KIND_ROOT + 1; objects && i < HEAP_KIND_COUNT; i++) {
		const struct heap_kind_sum *kind = &summary->kinds[i];

		if (kind->sum.count)
			objects = json_value_append(objects, json_pack("{s:s, s:o, s:o, s:o}", "type",
								       heap_kind_name((enum heap_kind)i),
								       "count", number(kind->sum.count),
								       "bytes", number(kind->sum.bytes),
								       "largest", number(kind->largest)));
	}
	return objects;
}

/* Groups under this name. retained: with what they retain. */
static json_t *groups_json(const struct heap_group *groups, const char *name, bool retained)
{
	json_t *array = json_array();
	size_t count = 0;

	for (const struct heap_group *group = groups; array && group && count < HEAP_JSON_ROWS;
	     group = group->hh.next, count++) {
		json_t *value = json_pack("{s:o, s:o, s:o}", name, json_value_text(group->name), "count",
					  number(group->sum.count), "bytes", number(group->sum.bytes));

		if (retained)
			value = json_value_set(value, "retained", number(group->retained));
		if (group->finalizers)
			value = json_value_set(value, "finalizers", number(group->finalizers));
		array = json_value_append(array, value);
	}
	return array;
}

/* Who holds most of a group; null is not known. */
static json_t *holder_json(const struct heap_group *group, const struct heap_paths *paths)
{
	char place[HEAP_PATH_SIZE];

	return group->held.path == HEAP_PATHS_ROOT
		       ? json_null()
		       : json_value_text(heap_path_place(paths, group->held.path, place));
}

/* What finalizes most of a group; null is not known. */
static json_t *finalizer_json(const struct heap_group *group, const struct heap_paths *paths)
{
	uint32_t finalizer = paths->nodes[group->finalizer.path].what;

	return group->finalizer.path == HEAP_PATHS_ROOT || !finalizer
		       ? json_null()
		       : json_value_text(heap_paths_text(paths, finalizer));
}

/* Add to groups what holds and finalizes them. On failure, free the array and return NULL. */
static json_t *with_origins(json_t *array, const struct heap_group *groups, const struct heap_paths *paths)
{
	for (size_t i = 0; groups && i < json_array_size(array); i++, groups = groups->hh.next) {
		json_t *value = json_array_get(array, i);

		if (json_object_set_new(value, "path", holder_json(groups, paths)) ||
		    json_object_set_new(value, "finalizer", finalizer_json(groups, paths))) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

static json_t *paths_json(const struct heap_summary *summary)
{
	struct heap_group *rows;
	json_t *paths;
	size_t count = 0;

	if (heap_rows_make(&summary->paths, summary->all.bytes / SMALLEST_PART, true, &rows))
		return NULL;
	paths = json_array();
	for (const struct heap_group *row = rows; paths && row && count < HEAP_JSON_ROWS;
	     row = row->hh.next, count++)
		paths = json_value_append(
			paths, json_pack("{s:o, s:o, s:o, s:o}", "path", json_value_text(row->name), "own",
					 number(row->sum.bytes), "retained", number(row->retained), "count",
					 number(row->sum.count)));
	heap_groups_clear(&rows);
	return paths;
}

static json_t *largest_json(const struct heap_summary *summary)
{
	json_t *largest = json_array();
	char path[HEAP_PATH_SIZE];

	for (unsigned int i = 0; largest && i < summary->largest_count; i++) {
		const struct heap_large *large = &summary->largest[i];

		heap_path_text(&summary->paths, large->path, path);
		largest = json_value_append(largest,
					    json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "type",
						      heap_kind_name((enum heap_kind)large->kind), "path",
						      json_value_text(path), "bytes", number(large->bytes),
						      "retained", number(large->retained), "slots",
						      number(large->slots), "used", number(large->used)));
	}
	return largest;
}

static json_t *waste_json(const struct heap_waste *waste)
{
	return json_pack(
		"{s:{s:o, s:o}, s:{s:o, s:o}, s:{s:o, s:o}, s:o, s:o, s:o}", "sparse_tables", "count",
		number(waste->sparse.count), "bytes", number(waste->sparse.bytes), "sparse_buffers", "count",
		number(waste->buffers.count), "bytes", number(waste->buffers.bytes), "long_strings", "count",
		number(waste->long_strings.count), "bytes", number(waste->long_strings.bytes), "finalizers",
		number(waste->finalizers), "tables", groups_json(waste->tables, "path", false), "buffers",
		groups_json(waste->room, "path", false));
}

static json_t *gc_json(const struct heap_account *account)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "state", json_value_text(account->gc_state),
			 "threshold", figure(&account->threshold), "estimate", figure(&account->estimate),
			 "pause", figure(&account->pause), "stepmul", figure(&account->stepmul), "dead",
			 account->dead_known ? json_pack("{s:o, s:o}", "count", number(account->dead_objects),
							 "bytes", number(account->dead_bytes))
					     : json_null());
}

static json_t *uncertain_json(const struct heap_uncertain *uncertain)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "unread_objects",
			 number(uncertain->unread_objects), "unread_bytes", number(uncertain->unread_bytes),
			 "broken_chains", number(uncertain->broken_chains), "unknown_objects",
			 number(uncertain->unknown_objects), "dangling", number(uncertain->dangling),
			 "unsized_objects", number(uncertain->unsized_objects), "changed_pages",
			 number(uncertain->changed_pages), "changed_objects",
			 number(uncertain->changed_objects), "left_out", number(uncertain->left_out));
}

static json_t *held_json(const struct heap_account *account)
{
	return json_pack("{s:o, s:f, s:f, s:s, s:i}", "times", number(account->holds), "longest_us",
			 (double)account->longest_hold_ns / 1000, "total_us", (double)account->held_ns / 1000,
			 "method", heap_method_name(account->method), "attempts", (int)account->attempts);
}

static json_t *vm_json(const struct heap_summary *summary)
{
	const struct heap_account *account = &summary->account;
	json_t *vm = json_pack("{s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o}", "g",
			       json_value_address(account->g), "file", json_value_text(account->module),
			       "gc_total", number(account->gc_total), "sum", number(account->sum),
			       "difference", (json_int_t)heap_account_difference(account), "objects",
			       objects_json(summary), "paths", paths_json(summary), "modules",
			       groups_json(summary->modules, "module", false), "held", held_json(account));
	json_t *more = json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:{s:o, s:o}}", "coroutines",
		groups_json(summary->coroutines, "at", true), "closures",
		groups_json(summary->closures, "function", false), "cdata",
		with_origins(groups_json(summary->cdata, "ctype", false), summary->cdata, &summary->paths),
		"vm_own", groups_json(summary->own, "part", false), "largest", largest_json(summary), "waste",
		waste_json(&summary->waste), "gc", gc_json(account), "uncertain",
		uncertain_json(&account->uncertain), "unheld", "count", number(summary->unheld.count),
		"bytes", number(summary->unheld.bytes));
	bool good = vm && more && json_object_update(vm, more) == 0;

	json_decref(more);
	if (good)
		return vm;
	json_decref(vm);
	return NULL;
}

/* The process of a subject, with all its VMs. They follow each other. */
static json_t *process_json(const struct heap_side *side, size_t *at)
{
	const struct heap_account *account = &side->subjects[*at].summary.account;
	json_t *vms = json_array();

	for (pid_t pid = account->pid;
	     vms && *at < side->count && side->subjects[*at].summary.account.pid == pid; ++*at)
		vms = json_value_append(vms, vm_json(&side->subjects[*at].summary));
	return json_pack("{s:o, s:o, s:o, s:o}", "pid", json_value_number((uint64_t)account->pid), "name",
			 json_value_text(account->process), "time",
			 json_value_number((uint64_t)account->time), "vms", vms);
}

int heap_json_write(FILE *out, const struct heap_side *side, const struct heap_view *view)
{
	json_t *processes = json_array();
	bool good;

	(void)view;
	for (size_t at = 0; processes && at < side->count;)
		processes = json_value_append(processes, process_json(side, &at));
	good = processes && json_write_processes(out, HEAP_JSON_VERSION, processes);
	json_decref(processes);
	return ferror(out) ? -EIO : good ? 0 : -ENOMEM;
}

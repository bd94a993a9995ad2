/* SPDX-License-Identifier: MIT */
#include "output/heap_views/heap_summary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/heap/heap_analysis.h"
#include "output/heap_views/heap_cdata.h"
#include "output/heap_views/heap_nesting.h"

/* What the functions below work on. */
struct maker {
	const struct heap_graph *graph;
	struct heap_analysis analysis;
	uint32_t *of; /* the path of each node */
	struct heap_summary *summary;
};

/*---- Groups ----*/

static int add_to_group(struct heap_group **groups, const char *name, const struct heap_node *node)
{
	struct heap_group *group = heap_groups_get(groups, name);

	if (!group)
		return -ENOMEM;
	group->sum.bytes += node->bytes;
	group->sum.count++;
	group->finalizers += node->flags & HEAP_FINALIZER ? 1 : 0;
	if (node->bytes > group->largest)
		group->largest = node->bytes;
	return 0;
}

/* Nodes of these kinds are in a group by their text. */
static int add_by_text(struct heap_summary *summary, const struct heap_graph *graph,
		       const struct heap_node *node)
{
	const char *text = heap_text(graph, node->text);

	if (node->kind == HEAP_KIND_FUNCTION)
		return add_to_group(&summary->closures, text, node);
	if (node->kind == HEAP_KIND_CDATA)
		return add_to_group(&summary->cdata, text, node);
	if (node->kind == HEAP_KIND_VM)
		return add_to_group(&summary->own, text, node);
	return 0;
}

static int add_modules(struct heap_summary *summary)
{
	const struct heap_paths *paths = &summary->paths;

	for (uint32_t i = 1; i < paths->count; i++) {
		const struct heap_path *path = &paths->nodes[i];
		struct heap_group *group;

		if (path->own.count == 0)
			continue;
		group = heap_groups_get(&summary->modules, heap_paths_text(paths, path->module));
		if (!group)
			return -ENOMEM;
		group->sum.bytes += path->own.bytes;
		group->sum.count += path->own.count;
	}
	return 0;
}

/*---- Coroutines ----*/

/* Add coroutines to groups by where they stand; *groups_of has the group of each node. 0 or -ENOMEM. */
static int group_coroutines(struct maker *maker, uint32_t *groups_of)
{
	const struct heap_graph *graph = maker->graph;
	struct heap_group **groups = &maker->summary->coroutines;
	int error = 0;

	for (uint32_t i = 1; i < graph->node_count && !error; i++) {
		const char *place = heap_place(graph, &graph->nodes[i]);

		if (graph->nodes[i].kind != HEAP_KIND_THREAD)
			continue;
		error = add_to_group(groups, place, &graph->nodes[i]);
		if (!error)
			groups_of[i] = heap_groups_get(groups, place)->number;
	}
	return error;
}

/* What a coroutine retains counts once in its group, though another one of it retains that coroutine. */
static int add_retained(struct maker *maker, const uint32_t *groups_of)
{
	const struct heap_graph *graph = maker->graph;
	struct heap_group **groups = &maker->summary->coroutines;
	bool *nested;
	int error = heap_nesting_find(graph, &maker->analysis, groups_of, HASH_COUNT(*groups), &nested);

	if (error)
		return error;
	for (uint32_t i = 1; i < graph->node_count; i++) {
		const uint64_t retained = groups_of[i] && !nested[i] ? maker->analysis.retained[i] : 0;
		struct heap_group *group;

		if (!groups_of[i])
			continue;
		group = heap_groups_get(groups, heap_place(graph, &graph->nodes[i]));
		group->retained += retained;
		if (!heap_is_reached(&maker->analysis, i)) {
			group->unheld.bytes += retained;
			group->unheld.count++;
		}
	}
	free(nested);
	return 0;
}

static void note_words(struct maker *maker)
{
	for (uint32_t i = 1; i < maker->graph->node_count; i++) {
		const struct heap_node *node = &maker->graph->nodes[i];

		if (node->kind != HEAP_KIND_THREAD ||
		    heap_path_is_main_thread(&maker->summary->paths, maker->of[i]))
			continue;
		maker->summary->has_functions |= node->place != HEAP_TEXT_NONE;
		maker->summary->has_places |= node->place == HEAP_TEXT_NONE && node->text != HEAP_TEXT_NONE;
	}
}

static int add_coroutines(struct maker *maker)
{
	uint32_t *groups_of = calloc(maker->graph->node_count, sizeof(*groups_of));
	int error = groups_of ? group_coroutines(maker, groups_of) : -ENOMEM;

	if (!error && maker->summary->coroutines)
		error = add_retained(maker, groups_of);
	free(groups_of);
	return error;
}

/*---- Single objects ----*/

/* Of objects with one path, only the largest. */
static void add_to_largest(struct heap_summary *summary, const struct heap_large *object)
{
	struct heap_large *largest = summary->largest;
	unsigned int count = summary->largest_count, at;

	for (at = 0; at < count && largest[at].path != object->path; at++)
		;
	if (at == HEAP_LARGEST_MAX)
		at--;
	else if (at == count)
		largest[summary->largest_count++] = (struct heap_large){ 0 };
	if (object->bytes <= largest[at].bytes)
		return;
	for (; at > 0 && largest[at - 1].bytes < object->bytes; at--)
		largest[at] = largest[at - 1];
	largest[at] = *object;
}

static bool is_sparse(const struct heap_node *node, uint32_t slots_min)
{
	return node->slots >= slots_min && node->used <= node->slots / HEAP_SPARSE_PART;
}

/* Bytes of an object that it does not use. */
static int add_empty(struct maker *maker, uint32_t number, uint64_t bytes, struct heap_group **groups,
		     struct heap_sum *sum)
{
	char path[HEAP_PATH_SIZE];
	struct heap_group *group = heap_groups_get(
		groups, heap_path_text(&maker->summary->paths, maker->of[number], path));

	if (!group)
		return -ENOMEM;
	group->sum.bytes += bytes;
	group->sum.count++;
	sum->bytes += bytes;
	sum->count++;
	return 0;
}

static int add_waste(struct maker *maker, uint32_t number)
{
	const struct heap_node *node = &maker->graph->nodes[number];
	struct heap_waste *waste = &maker->summary->waste;

	waste->finalizers += node->flags & HEAP_FINALIZER ? 1 : 0;
	if (node->kind == HEAP_KIND_STRING && node->bytes >= HEAP_LONG_STRING) {
		waste->long_strings.bytes += node->bytes;
		waste->long_strings.count++;
	}
	if (node->kind == HEAP_KIND_TABLE && is_sparse(node, HEAP_SPARSE_SLOTS))
		return add_empty(maker, number,
				 (uint64_t)((double)node->bytes * (node->slots - node->used) / node->slots),
				 &waste->tables, &waste->sparse);
	if (node->kind == HEAP_KIND_USERDATA && is_sparse(node, HEAP_SPARSE_BYTES))
		return add_empty(maker, number, node->slots - node->used, &waste->room, &waste->buffers);
	return 0;
}

static int add_node(struct maker *maker, uint32_t number)
{
	const struct heap_node *node = &maker->graph->nodes[number];
	struct heap_summary *summary = maker->summary;
	struct heap_kind_sum *kind = &summary->kinds[node->kind];
	struct heap_large large = {
		.bytes = node->bytes,
		.retained = maker->analysis.retained[number],
		.path = maker->of[number],
		.slots = node->kind == HEAP_KIND_THREAD ? 0 : node->slots,
		.used = node->used,
		.kind = node->kind,
	};
	int error;

	summary->all.bytes += node->bytes;
	summary->all.count++;
	kind->sum.bytes += node->bytes;
	kind->sum.count++;
	if (node->bytes > kind->largest)
		kind->largest = node->bytes;
	if (!heap_is_reached(&maker->analysis, number)) {
		summary->unheld.bytes += node->bytes;
		summary->unheld.count++;
	}
	if (node->kind != HEAP_KIND_VM && node->bytes > 0)
		add_to_largest(summary, &large);
	error = add_by_text(summary, maker->graph, node);
	return error ? error : add_waste(maker, number);
}

/*---- All ----*/

static int copy_account(const struct heap_account *account, struct heap_account *ret_account)
{
	*ret_account = *account;
	ret_account->process = account->process ? strdup(account->process) : NULL;
	ret_account->module = account->module ? strdup(account->module) : NULL;
	return (account->process && !ret_account->process) || (account->module && !ret_account->module)
		       ? -ENOMEM
		       : 0;
}

static void sort(struct heap_summary *summary)
{
	heap_groups_sort(&summary->modules);
	heap_groups_sort(&summary->coroutines);
	heap_groups_sort(&summary->closures);
	heap_groups_sort(&summary->cdata);
	heap_groups_sort(&summary->own);
	heap_groups_sort(&summary->waste.tables);
	heap_groups_sort(&summary->waste.room);
}

static int make(struct maker *maker)
{
	int error = heap_analysis_make(maker->graph, &maker->analysis);

	if (!error)
		error = heap_paths_make(maker->graph, &maker->analysis, &maker->summary->paths, &maker->of);
	for (uint32_t i = 1; i < maker->graph->node_count && !error; i++)
		error = add_node(maker, i);
	if (!error)
		error = heap_cdata_find(maker->graph, &maker->summary->paths, maker->of,
					maker->summary->cdata);
	if (!error)
		error = add_modules(maker->summary);
	if (!error)
		error = add_coroutines(maker);
	if (!error)
		note_words(maker);
	if (!error)
		sort(maker->summary);
	return error;
}

int heap_summary_make(const struct heap_graph *graph, const struct heap_account *account,
		      struct heap_summary *ret_summary)
{
	struct heap_summary summary = { 0 };
	struct maker maker = { .graph = graph, .summary = &summary };
	int error = copy_account(account, &summary.account);

	if (!error)
		error = make(&maker);
	heap_analysis_clear(&maker.analysis);
	free(maker.of);
	if (error)
		heap_summary_clear(&summary);
	else
		*ret_summary = summary;
	return error;
}

uint64_t heap_summary_objects(const struct heap_summary *summary)
{
	return summary->all.count - summary->kinds[HEAP_KIND_VM].sum.count;
}

void heap_summary_clear(struct heap_summary *summary)
{
	free(summary->account.process);
	free(summary->account.module);
	heap_paths_clear(&summary->paths);
	heap_groups_clear(&summary->modules);
	heap_groups_clear(&summary->coroutines);
	heap_groups_clear(&summary->closures);
	heap_groups_clear(&summary->cdata);
	heap_groups_clear(&summary->own);
	heap_groups_clear(&summary->waste.tables);
	heap_groups_clear(&summary->waste.room);
	*summary = (struct heap_summary){ 0 };
}

/* SPDX-License-Identifier: MIT */
#include "output/findings/heap_looks.h"

#include <errno.h>
#include <stdlib.h>

#include "output/heap_views/heap_folds.h"

/* Paths that retain a smaller part of all are not compared. */
enum { SMALLEST_PART = 10000 };

static void clear_look(struct heap_look *look)
{
	for (size_t i = 0; i < look->count; i++)
		heap_summary_clear(&look->vms[i]);
	free(look->vms);
	*look = (struct heap_look){ 0 };
}

int heap_looks_begin(struct heap_looks *looks, uint64_t time_ns, size_t count)
{
	struct heap_look look = { .time_ns = time_ns, .vms = calloc(count + 1, sizeof(*look.vms)) };

	if (!look.vms || looks->count == HEAP_LOOKS_MAX) {
		free(look.vms);
		return -ENOMEM;
	}
	looks->at[looks->count++] = look;
	return 0;
}

int heap_looks_add(struct heap_looks *looks, const struct heap_graph *graph,
		   const struct heap_account *account)
{
	struct heap_look *look = &looks->at[looks->count - 1];
	int error = heap_account_is_whole(account) || heap_account_is_missing(account)
			    ? heap_summary_make(graph, account, &look->vms[look->count])
			    : -ENODATA;

	if (!error)
		look->count++;
	return error;
}

void heap_looks_drop(struct heap_looks *looks)
{
	clear_look(&looks->at[--looks->count]);
}

void heap_looks_clear(struct heap_looks *looks)
{
	while (looks->count > 0)
		heap_looks_drop(looks);
}

/* Was it read at each look at which it was there? */
static bool is_known(const struct heap_looks *looks, const struct heap_summary *vm)
{
	for (size_t i = 0; i < looks->count; i++)
		for (size_t j = 0; j < looks->at[i].count; j++) {
			const struct heap_account *account = &looks->at[i].vms[j].account;

			if (account->g == vm->account.g && heap_account_is_missing(account))
				return false;
		}
	return true;
}

static uint64_t bytes_of(const struct heap_looks *looks, const struct heap_look *look)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < look->count; i++)
		if (is_known(looks, &look->vms[i]))
			bytes += look->vms[i].all.bytes;
	return bytes;
}

static int add_paths(const struct heap_looks *looks, size_t at, struct heap_growths *growths)
{
	const struct heap_look *look = &looks->at[at];
	int error = 0;

	for (size_t i = 0; i < look->count && !error; i++)
		if (is_known(looks, &look->vms[i]))
			error = heap_growths_add_paths(growths, &look->vms[i].paths, at,
						       look->vms[i].all.bytes / SMALLEST_PART);
	return error;
}

/* Have all looks tell the same keys apart. 0 or -ENOMEM. */
static int fold_paths(struct heap_looks *looks)
{
	struct heap_trees trees = { 0 };

	for (size_t i = 0; i < looks->count; i++)
		for (size_t k = 0; k < looks->at[i].count; k++)
			heap_trees_add(&trees, &looks->at[i].vms[k].paths);
	return heap_trees_fold(&trees);
}

static int compare(struct heap_looks *looks, struct heap_growths *growths)
{
	const struct heap_look *last = &looks->at[looks->count - 1];
	int error = fold_paths(looks);

	for (size_t i = 0; i < looks->count && !error; i++)
		error = add_paths(looks, i, growths);
	if (error)
		return error;
	for (size_t i = 0; i < last->count; i++)
		if (is_known(looks, &last->vms[i]))
			heap_growths_find_chains(growths, &last->vms[i].paths);
	heap_growths_sort(growths);
	return 0;
}

int heap_looks_compare(struct heap_looks *looks, struct heap_evidence *evidence)
{
	const struct heap_look *first = &looks->at[0],
			       *last = &looks->at[looks->count ? looks->count - 1 : 0];

	heap_growths_clear(&evidence->growths);
	*evidence = (struct heap_evidence){
		.growths = { .moment_count = looks->count },
		.first_bytes = bytes_of(looks, first),
		.last_bytes = bytes_of(looks, last),
		.duration_ns = last->time_ns - first->time_ns,
	};
	return looks->count > 1 ? compare(looks, &evidence->growths) : 0;
}

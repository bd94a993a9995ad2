/* SPDX-License-Identifier: MIT */
#include "output/heap_views/heap_growth.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/heap_views/heap_rows.h"

static struct heap_growth *find(const struct heap_growths *growths, const char *name)
{
	struct heap_growth *growth;

	HASH_FIND(hh, growths->rows, name, strlen(name), growth);
	return growth;
}

/* NULL when memory is short. */
static struct heap_growth *add(struct heap_growths *growths, const char *name)
{
	size_t length = strlen(name);
	struct heap_growth *growth = calloc(1, sizeof(*growth) + length + 1);

	if (!growth)
		return NULL;
	memcpy(growth->name, name, length);
	growth->moments = calloc(growths->moment_count, sizeof(*growth->moments));
	if (growth->moments)
		HASH_ADD_KEYPTR(hh, growths->rows, growth->name, length, growth);
	if (growth->moments && hash_added(&growth->hh))
		return growth;
	free(growth->moments);
	free(growth);
	return NULL;
}

int heap_growths_add(struct heap_growths *growths, const char *name, size_t moment,
		     const struct heap_moment *more)
{
	struct heap_growth *growth = find(growths, name);

	if (!growth)
		growth = add(growths, name);
	if (!growth)
		return -ENOMEM;
	growth->moments[moment].held += more->held;
	growth->moments[moment].sum.bytes += more->sum.bytes;
	growth->moments[moment].sum.count += more->sum.count;
	return 0;
}

int heap_growths_add_groups(struct heap_growths *growths, const struct heap_group *groups, bool retained,
			    size_t moment)
{
	int error = 0;

	for (const struct heap_group *group = groups; group && !error; group = group->hh.next) {
		struct heap_moment more = {
			.held = retained ? group->retained : group->sum.bytes,
			.sum = group->sum,
		};

		error = heap_growths_add(growths, group->name, moment, &more);
	}
	return error;
}

int heap_growths_add_paths(struct heap_growths *growths, const struct heap_paths *paths, size_t moment,
			   uint64_t min_bytes)
{
	char text[HEAP_PATH_SIZE];
	int error = 0;

	for (uint32_t i = 1; i < paths->count && !error; i++) {
		const struct heap_path *path = &paths->nodes[i];
		struct heap_growth *growth;

		if (path->retained == 0 || (path->retained < min_bytes && !path->adds_up))
			continue;
		heap_path_text(paths, i, text);
		error = heap_growths_add(
			growths, text, moment,
			&(struct heap_moment){ .held = path->retained - path->within, .sum = path->own });
		growth = find(growths, text);
		if (growth)
			growth->unheld |= path->unheld;
	}
	return error;
}

int64_t heap_growth_bytes(const struct heap_growths *growths, const struct heap_growth *growth)
{
	return (int64_t)(growth->moments[growths->moment_count - 1].held - growth->moments[0].held);
}

int64_t heap_growth_count(const struct heap_growths *growths, const struct heap_growth *growth)
{
	return (int64_t)(growth->moments[growths->moment_count - 1].sum.count - growth->moments[0].sum.count);
}

bool heap_growth_is_steady(const struct heap_growths *growths, const struct heap_growth *growth)
{
	for (size_t i = 1; i < growths->moment_count; i++)
		if (growth->moments[i].held <= growth->moments[i - 1].held)
			return false;
	return true;
}

/* Mark the one of two that a table does not show, if below has nearly all of above's growth. */
static void mark_chain(const struct heap_growths *growths, struct heap_growth *above, bool above_is_many,
		       struct heap_growth *below)
{
	int64_t all = heap_growth_bytes(growths, above), part = heap_growth_bytes(growths, below);

	if (above == below || all <= 0 || part <= 0 || !heap_is_nearly_all((uint64_t)part, (uint64_t)all))
		return;
	if (above_is_many || above->is_of_many)
		below->is_of_many = below->in_chain = true;
	else
		above->in_chain = true;
}

/*
 * A node comes after its parent, so what is known of the parent is known before. Of paths that hold each
 * other by turns, each would be in a chain of the other: what is within an earlier node of its path begins no
 * step.
 */
void heap_growths_find_chains(struct heap_growths *growths, const struct heap_paths *paths)
{
	char text[HEAP_PATH_SIZE];

	for (uint32_t i = 1; i < paths->count; i++) {
		struct heap_growth *below = find(growths, heap_path_text(paths, i, text)), *above;
		uint32_t parent = paths->nodes[i].parent;

		if (!below || parent == HEAP_PATHS_ROOT || paths->nodes[i].within)
			continue;
		above = find(growths, heap_path_text(paths, parent, text));
		if (above)
			mark_chain(growths, above, paths->nodes[parent].many, below);
	}
}

/* uthash calls this as it would a function of two rows; it also needs the number of moments. */
#define COMPARE(left, right) compare(growths, left, right)

static int compare(const struct heap_growths *growths, const struct heap_growth *left,
		   const struct heap_growth *right)
{
	int64_t by_left = heap_growth_bytes(growths, left), by_right = heap_growth_bytes(growths, right);

	if (by_left != by_right)
		return by_left > by_right ? -1 : 1;
	return strcmp(left->name, right->name);
}

void heap_growths_sort(struct heap_growths *growths)
{
	HASH_SORT(growths->rows, COMPARE);
}

void heap_growths_clear(struct heap_growths *growths)
{
	struct heap_growth *growth, *next;

	HASH_ITER(hh, growths->rows, growth, next) {
		HASH_DEL(growths->rows, growth);
		free(growth->moments);
		free(growth);
	}
}

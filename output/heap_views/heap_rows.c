/* SPDX-License-Identifier: MIT */
#include "output/heap_views/heap_rows.h"

#include <errno.h>

/* Does one path below have nearly all that this one has? */
static bool leads_on(const struct heap_paths *paths, uint32_t node)
{
	for (uint32_t child = paths->nodes[node].first_child; child; child = paths->nodes[child].next_sibling)
		if (heap_is_nearly_all(paths->nodes[child].retained, paths->nodes[node].retained))
			return true;
	return false;
}

/* Is it nearly all of what a path above that stands for many things has? */
static bool is_of_many(const struct heap_paths *paths, uint32_t node)
{
	for (uint32_t at = node, above; at != HEAP_PATHS_ROOT; at = above) {
		above = paths->nodes[at].parent;
		if (!heap_is_nearly_all(paths->nodes[at].retained, paths->nodes[above].retained))
			return false;
		if (paths->nodes[above].many)
			return true;
	}
	return false;
}

static bool is_in_chain(const struct heap_paths *paths, uint32_t node)
{
	return is_of_many(paths, node) || (!paths->nodes[node].many && leads_on(paths, node));
}

static bool is_row(const struct heap_paths *paths, uint32_t node, uint64_t min_bytes)
{
	return paths->nodes[node].retained >= min_bytes && paths->nodes[node].retained > 0;
}

/* Make the rows, which are empty yet. 0 or -ENOMEM. */
static int make_rows(const struct heap_paths *paths, uint64_t min_bytes, bool chains,
		     struct heap_group **rows)
{
	char text[HEAP_PATH_SIZE];

	for (uint32_t i = 1; i < paths->count; i++)
		if (is_row(paths, i, min_bytes) && (chains || !is_in_chain(paths, i)) &&
		    !heap_groups_get(rows, heap_path_text(paths, i, text)))
			return -ENOMEM;
	return 0;
}

/* A row counts all nodes of its path, also those in chains: they are part of what the path says. */
static void fill_rows(const struct heap_paths *paths, uint64_t min_bytes, struct heap_group *rows)
{
	char text[HEAP_PATH_SIZE];

	for (uint32_t i = 1; i < paths->count; i++) {
		const struct heap_path *path = &paths->nodes[i];
		struct heap_group *row;

		if (!is_row(paths, i, min_bytes))
			continue;
		HASH_FIND_STR(rows, heap_path_text(paths, i, text), row);
		if (!row)
			continue;
		row->sum.bytes += path->own.bytes;
		row->sum.count += path->own.count;
		row->retained += path->retained - path->within;
	}
}

int heap_rows_make(const struct heap_paths *paths, uint64_t min_bytes, bool chains,
		   struct heap_group **ret_rows)
{
	struct heap_group *rows = NULL;

	if (make_rows(paths, min_bytes, chains, &rows)) {
		heap_groups_clear(&rows);
		return -ENOMEM;
	}
	fill_rows(paths, min_bytes, rows);
	heap_groups_sort(&rows);
	*ret_rows = rows;
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* The rows of the tree of calls. */
#include <errno.h>
#include <stdlib.h>

#include "memory/array.h"
#include "memory/hash.h"
#include "src/top/gather.h"

struct folded_path {
	uint64_t path;
	UT_hash_handle hh;
};

struct folded_paths {
	struct folded_path *paths;
};

struct folded_paths *folded_paths_new(void)
{
	return calloc(1, sizeof(struct folded_paths));
}

void folded_paths_free(struct folded_paths *folded)
{
	if (!folded)
		return;
	HASH_FREE_ALL(folded->paths);
	free(folded);
}

static struct folded_path *find_path(const struct folded_paths *folded, uint64_t path)
{
	struct folded_path *found;

	HASH_FIND(hh, folded->paths, &path, sizeof(path), found);
	return found;
}

void folded_paths_set(struct folded_paths *folded, uint64_t path, bool is_folded)
{
	struct folded_path *found = find_path(folded, path);

	if (found && !is_folded) {
		HASH_DEL(folded->paths, found);
		free(found);
	}
	if (found || !is_folded)
		return;
	found = calloc(1, sizeof(*found));
	if (!found)
		return;
	found->path = path;
	HASH_ADD(hh, folded->paths, path, sizeof(found->path), found);
	if (!hash_added(&found->hh))
		free(found);
}

/* FNV-1a of the caller's path, the function and the line. */
static uint64_t path_of(uint64_t caller, const struct profile_node *node)
{
	uint64_t parts[] = { caller, (uint64_t)(uintptr_t)node->function, node->line };
	const unsigned char *bytes = (const unsigned char *)parts;
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < sizeof(parts); i++)
		hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	return hash;
}

/* A row of the tree that is not in the list yet. */
struct waiting {
	struct row row;
	const struct profile_node *node;
};

struct waiting_rows {
	struct waiting *rows;
	size_t count, size;
};

static int wait_for(struct waiting_rows *waiting, const struct profile_node *node, uint64_t caller,
		    const struct rows_options *options)
{
	struct waiting *added,
		*grown = array_grow(waiting->rows, &waiting->size, waiting->count + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	waiting->rows = grown;
	added = &waiting->rows[waiting->count++];
	*added = (struct waiting){
		.node = node,
		.row = {
			.function = node->function,
			.line = node->line,
			.own_ns = node->own_ns,
			.total_ns = node->total_ns,
			.compiled = node->compiled_ns > node->total_ns / 2,
			.depth = node->depth - 1,
			.path = path_of(caller, node),
			.has_children = node->first_child != NULL,
		},
	};
	added->row.is_folded = added->row.has_children && find_path(options->folded, added->row.path);
	return 0;
}

/* In reverse order: rows are taken from the end. */
static int compare_waiting(const void *a, const void *b, void *sort)
{
	return -rows_compare(&((const struct waiting *)a)->row, &((const struct waiting *)b)->row,
			     *(enum rows_sort *)sort);
}

static int wait_for_children(struct waiting_rows *waiting, const struct profile_node *node, uint64_t path,
			     const struct rows_options *options)
{
	size_t begin = waiting->count;
	enum rows_sort sort = options->sort;

	for (const struct profile_node *child = node->first_child; child; child = child->next_sibling)
		if (wait_for(waiting, child, path, options))
			return -ENOMEM;
	if (waiting->count > begin)
		qsort_r(waiting->rows + begin, waiting->count - begin, sizeof(*waiting->rows),
			compare_waiting, &sort);
	return 0;
}

int tree_rows_finish(const struct profile *profile, const struct rows_options *options, struct rows *rows)
{
	struct waiting_rows waiting = { 0 };
	int error = wait_for_children(&waiting, profile_root(profile), 0, options);

	while (!error && waiting.count) {
		struct waiting next = waiting.rows[--waiting.count];
		struct row *row = rows_append(rows);

		if (!row) {
			error = -ENOMEM;
			break;
		}
		*row = next.row;
		if (!row->is_folded)
			error = wait_for_children(&waiting, next.node, row->path, options);
	}
	free(waiting.rows);
	return error;
}

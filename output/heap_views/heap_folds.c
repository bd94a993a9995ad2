/* SPDX-License-Identifier: MIT */
#include "output/heap_views/heap_folds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "memory/hash.h"

/* A path below which keys of one sort are many in some tree. */
struct fold {
	UT_hash_handle hh;
	size_t many_in; /* the last tree that was found to have many, from 1 on */
	bool applies;   /* another tree tells all of them apart */
	bool repeats;   /* the step stands for more than one in some tree */
	char name[];    /* the sort, and the path's text */
};

struct folds {
	struct fold *all;
	bool changed;
};

struct fold_name {
	char text[1 + HEAP_PATH_SIZE];
};

/* Keys of one sort below one node: which of them there are. */
struct below {
	bool many, few;
};

static const enum heap_path_keys sorts[] = { HEAP_KEYS_STRING, HEAP_KEYS_OTHER };

enum { SORTS = sizeof(sorts) / sizeof(sorts[0]) };

static struct below look_below(const struct heap_paths *paths, uint32_t parent, enum heap_path_keys keys)
{
	struct below below = { 0 };

	for (uint32_t i = paths->nodes[parent].first_child; i; i = paths->nodes[i].next_sibling) {
		const struct heap_path *path = &paths->nodes[i];

		if (path->keys != keys || path->stays)
			continue;
		below.many |= path->many;
		below.few |= !path->many;
	}
	return below;
}

static struct fold *find(const struct folds *folds, const struct heap_paths *paths, uint32_t parent,
			 enum heap_path_keys keys, struct fold_name *ret_name)
{
	struct fold *fold;

	ret_name->text[0] = (char)('0' + keys);
	heap_path_text(paths, parent, ret_name->text + 1);
	HASH_FIND_STR(folds->all, ret_name->text, fold);
	return fold;
}

/* 0 or -ENOMEM. */
static int add(struct folds *folds, const struct fold_name *name)
{
	const size_t length = strlen(name->text);
	struct fold *fold = calloc(1, sizeof(*fold) + length + 1);

	if (!fold)
		return -ENOMEM;
	memcpy(fold->name, name->text, length);
	HASH_ADD_KEYPTR(hh, folds->all, fold->name, length, fold);
	if (hash_added(&fold->hh))
		return 0;
	free(fold);
	return -ENOMEM;
}

static int add_tree(struct folds *folds, const struct heap_paths *paths)
{
	struct fold_name name;

	for (uint32_t i = 0; i < paths->count; i++)
		for (size_t k = 0; k < SORTS; k++) {
			int error = 0;

			if (look_below(paths, i, sorts[k]).many && !find(folds, paths, i, sorts[k], &name))
				error = add(folds, &name);
			if (error)
				return error;
		}
	return 0;
}

/* Tables of one path may have few keys and many in the same tree: those with few keep their names. */
static void find_few(struct folds *folds, const struct heap_paths *paths, size_t tree)
{
	struct fold_name name;
	struct fold *fold;

	for (uint32_t i = 0; i < paths->count; i++)
		for (size_t k = 0; k < SORTS; k++)
			if (look_below(paths, i, sorts[k]).many) {
				fold = find(folds, paths, i, sorts[k], &name);
				fold->many_in = tree;
			}
	for (uint32_t i = 0; i < paths->count; i++)
		for (size_t k = 0; k < SORTS; k++) {
			if (!look_below(paths, i, sorts[k]).few)
				continue;
			fold = find(folds, paths, i, sorts[k], &name);
			if (!fold || fold->many_in == tree || fold->applies)
				continue;
			fold->applies = folds->changed = true;
		}
}

static void fold_below(struct folds *folds, struct heap_paths *paths, uint32_t parent, struct fold *fold,
		       enum heap_path_keys keys)
{
	for (uint32_t i = paths->nodes[parent].first_child; i; i = paths->nodes[i].next_sibling) {
		struct heap_path *path = &paths->nodes[i];

		if (path->keys != keys || path->stays)
			continue;
		folds->changed |= !path->folded || path->repeats != fold->repeats;
		fold->repeats |= path->repeats;
		path->repeats = fold->repeats;
		path->many = path->folded = true;
	}
}

/*
 * One of the keys of a folded step may be the next step's, too, where the two are one node. Which keys are
 * those differs with what is told apart, so all such steps stay at the folded one.
 */
static bool stays(const struct heap_paths *paths, const struct heap_path *path)
{
	const struct heap_path *parent = &paths->nodes[path->parent];

	return path->keys != HEAP_KEYS_NONE && path->keys == parent->keys && path->what == parent->what &&
	       (parent->stays || (parent->folded && parent->repeats));
}

/* A node comes after its parent, whose text is the one in all trees by then. */
static void fold_tree(struct folds *folds, struct heap_paths *paths)
{
	struct fold_name name;

	for (uint32_t i = 0; i < paths->count; i++) {
		struct heap_path *path = &paths->nodes[i];

		if (i != HEAP_PATHS_ROOT) {
			const struct heap_path *parent = &paths->nodes[path->parent];

			path->stays = stays(paths, path);
			path->adds_up = path->folded || parent->adds_up;
		}
		for (size_t k = 0; k < SORTS; k++) {
			const struct below below = look_below(paths, i, sorts[k]);
			struct fold *fold = below.many || below.few ? find(folds, paths, i, sorts[k], &name)
								    : NULL;

			if (fold && fold->applies)
				fold_below(folds, paths, i, fold, sorts[k]);
		}
	}
}

/* What a node retains that stays at one above, which retains it, too. */
static void find_within(struct heap_paths *paths)
{
	for (uint32_t i = 1; i < paths->count; i++) {
		struct heap_path *path = &paths->nodes[i];

		if (path->dominator != HEAP_NO_NODE && path->dominator >= heap_path_top(paths, i))
			path->within = path->retained;
	}
}

/* A step that is folded may have paths below it read as others do, whose keys are many. */
static int fold(const struct heap_trees *trees)
{
	struct folds folds = { .changed = true };
	int error = 0;

	while (folds.changed && !error) {
		folds.changed = false;
		for (size_t i = 0; i < trees->count && !error; i++)
			error = add_tree(&folds, trees->at[i]);
		for (size_t i = 0; i < trees->count && !error; i++)
			find_few(&folds, trees->at[i], i + 1);
		for (size_t i = 0; i < trees->count && !error; i++)
			fold_tree(&folds, trees->at[i]);
	}
	for (size_t i = 0; i < trees->count && !error; i++)
		find_within(trees->at[i]);
	HASH_FREE_ALL(folds.all);
	return error;
}

void heap_trees_add(struct heap_trees *trees, struct heap_paths *paths)
{
	struct heap_paths **at = array_grow(trees->at, &trees->size, trees->count + 1,
					    sizeof(struct heap_paths *));

	if (!at) {
		trees->error = -ENOMEM;
		return;
	}
	trees->at = at;
	trees->at[trees->count++] = paths;
}

int heap_trees_fold(struct heap_trees *trees)
{
	int error = trees->error ? trees->error : fold(trees);

	free(trees->at);
	*trees = (struct heap_trees){ 0 };
	return error;
}

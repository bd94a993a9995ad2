/* SPDX-License-Identifier: MIT */
#include "output/heap_views/heap_folds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory/hash.h"

/* A path whose keys of one sort read as one. */
struct fold {
	UT_hash_handle hh;
	char name[]; /* the sort, and the path's text */
};

struct folds {
	struct fold *all;
	size_t count;
};

struct fold_name {
	char text[1 + HEAP_PATH_SIZE];
};

static void name_of(const struct heap_paths *paths, uint32_t parent, enum heap_path_keys keys,
		    struct fold_name *ret_name)
{
	ret_name->text[0] = (char)('0' + keys);
	heap_path_text(paths, parent, ret_name->text + 1);
}

static bool has(const struct folds *folds, const struct fold_name *name)
{
	struct fold *fold;

	HASH_FIND_STR(folds->all, name->text, fold);
	return fold;
}

/* 0 or -ENOMEM. */
static int add(struct folds *folds, const struct fold_name *name)
{
	const size_t length = strlen(name->text);
	struct fold *fold;

	if (has(folds, name))
		return 0;
	fold = calloc(1, sizeof(*fold) + length + 1);
	if (!fold)
		return -ENOMEM;
	memcpy(fold->name, name->text, length);
	HASH_ADD_KEYPTR(hh, folds->all, fold->name, length, fold);
	if (!hash_added(&fold->hh)) {
		free(fold);
		return -ENOMEM;
	}
	folds->count++;
	return 0;
}

static int add_tree(struct folds *folds, const struct heap_paths *paths)
{
	int error = 0;

	for (uint32_t i = 1; i < paths->count && !error; i++) {
		const struct heap_path *path = &paths->nodes[i];
		struct fold_name name;

		if (path->keys == HEAP_KEYS_NONE || !path->many || path->folded)
			continue;
		name_of(paths, path->parent, (enum heap_path_keys)path->keys, &name);
		error = add(folds, &name);
	}
	return error;
}

/* Fold what is by keys of one sort, if its parent's are to be. */
static void fold_children(const struct folds *folds, struct heap_paths *paths, uint32_t parent,
			  enum heap_path_keys keys)
{
	struct fold_name name = { .text = "" };

	for (uint32_t i = paths->nodes[parent].first_child; i; i = paths->nodes[i].next_sibling) {
		struct heap_path *path = &paths->nodes[i];

		if (path->keys != keys || path->many)
			continue;
		if (!*name.text) {
			name_of(paths, parent, keys, &name);
			if (!has(folds, &name))
				return;
		}
		path->many = path->folded = true;
	}
}

/* A node comes after its parent, whose text is the one in all trees by then. */
static void fold_tree(const struct folds *folds, struct heap_paths *paths)
{
	for (uint32_t i = 0; i < paths->count; i++) {
		fold_children(folds, paths, i, HEAP_KEYS_STRING);
		fold_children(folds, paths, i, HEAP_KEYS_OTHER);
	}
}

/* A step that is folded may have paths below it read as others do, whose keys are many. */
int heap_paths_fold(struct heap_paths *const *trees, size_t count)
{
	struct folds folds = { 0 };
	size_t before;
	int error = 0;

	do {
		before = folds.count;
		for (size_t i = 0; i < count && !error; i++)
			error = add_tree(&folds, trees[i]);
		for (size_t i = 0; i < count && !error && folds.count > before; i++)
			fold_tree(&folds, trees[i]);
	} while (!error && folds.count > before);
	HASH_FREE_ALL(folds.all);
	return error;
}

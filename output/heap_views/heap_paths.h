/* SPDX-License-Identifier: MIT */
/*
 * heap_paths: the objects of a heap as one tree of paths, in the words of the source.
 *
 * Objects whose paths read the same are one node. A table's keys that are many read as one:
 * ["*"] for strings, [*] for others; see heap_folds.h for several trees. A step that repeats the one
 * before it, as along a list, stays at its node, and so does everything below HEAP_DEPTH_MAX steps or
 * when the tree is full. What nothing holds is below a node of its own.
 *
 * The path of a node begins at the last step that says where it is by itself:
 *
 *	package.loaded["resty.core"].cache["*"].body
 *	upvalue "conns" of function handler kong/plugins/x/handler.lua:12
 *	local "rows" of render page.lua:58 (coroutine of function <app.lua:12>)
 *	registry.timers[*]: function <app.lua:12>
 *
 * A tree needs neither graph nor analysis once it is made. Its texts are the target's, unescaped.
 */
#ifndef LJSPY_HEAP_PATHS_H
#define LJSPY_HEAP_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/heap/heap_analysis.h"
#include "output/heap/heap_graph.h"

enum {
	HEAP_PATHS_ROOT = 0,      /* a node */
	HEAP_KEYS_MAX = 64,       /* string keys of one table that are told apart */
	HEAP_INDEXES_MAX = 8,     /* other keys */
	HEAP_CHILDREN_MAX = 1024, /* string keys below one node, package.loaded included */
	HEAP_DEPTH_MAX = 60,      /* steps */
	HEAP_PATHS_MAX = 1 << 20, /* nodes */
	HEAP_PATH_SIZE = 4096,    /* of a path's text; longer ones are cut */
};

/* Which of a table's keys a step may be folded with: see heap_folds.h. */
enum heap_path_keys {
	HEAP_KEYS_NONE, /* it is by no key, or by a string key of package.loaded or _G */
	HEAP_KEYS_STRING,
	HEAP_KEYS_OTHER,
};

/* Bytes and numbers of objects. */
struct heap_sum {
	uint64_t bytes, count;
};

struct heap_path {
	uint32_t parent;                    /* of the root: itself; a node comes after its parent */
	uint32_t first_child, next_sibling; /* 0: none */
	uint32_t dominator; /* the last node above through which all strong paths to own lead */
	uint32_t step;      /* a text: ".cache", "[\"*\"]", "upvalue \"conns\" of function ..." */
	uint32_t what;   /* a text: what function, coroutine or C type it leads to; 0: objects of any kind */
	uint32_t module; /* a text: the module that it belongs to; 0: to none */
	uint16_t depth;
	uint8_t kind;          /* enum heap_kind of its first object */
	bool begins;           /* the path's text begins with this step */
	uint8_t keys;          /* enum heap_path_keys */
	bool many;             /* the step stands for many keys */
	bool folded;           /* likewise in all trees compared, whatever its own text; see heap_folds.h */
	bool stays;            /* below such a step: it has the path of its parent */
	bool adds_up;          /* it is folded or below: other nodes of the tree may have its path */
	bool repeats;          /* it stands for more than one step */
	bool unheld;           /* nothing holds its objects, or only weakly */
	struct heap_sum own;   /* the objects that this is the path of */
	struct heap_sum total; /* and those of all nodes below */
	uint64_t retained;     /* by own, together; none counts twice */
	uint64_t within;       /* of that, what nodes above whose path has the same text retain, too */
};

struct heap_paths {
	struct heap_path *nodes; /* the root first */
	uint32_t count;
	char *texts; /* as in struct heap_graph */
	uint32_t texts_bytes;
};

/*
 * Make the tree. *ret_of, unless NULL, is an array with the tree's node of each of the graph's nodes,
 * which the caller frees. 0, -ENOMEM, or -EOVERFLOW as in text_pool.h.
 */
int heap_paths_make(const struct heap_graph *graph, const struct heap_analysis *analysis,
		    struct heap_paths *ret_paths, uint32_t **ret_of);
void heap_paths_clear(struct heap_paths *paths); /* one that is all zero is allowed */

static inline const char *heap_paths_text(const struct heap_paths *paths, uint32_t text)
{
	return paths->texts + text;
}

/* Write a node's path. Returns ret_text. */
const char *heap_path_text(const struct heap_paths *paths, uint32_t node,
			   char ret_text[static HEAP_PATH_SIZE]);

/* The same without what function, coroutine or C type it leads to. */
const char *heap_path_place(const struct heap_paths *paths, uint32_t node,
			    char ret_text[static HEAP_PATH_SIZE]);

/* Write the step that leads to a node, with what it leads to: what a picture shows. Returns ret_text. */
const char *heap_step_text(const struct heap_paths *paths, uint32_t node,
			   char ret_text[static HEAP_PATH_SIZE]);

/* The node at which a node stays; itself if it does not. */
uint32_t heap_path_top(const struct heap_paths *paths, uint32_t node);

/* Is a node the main thread, which is no coroutine? */
bool heap_path_is_main_thread(const struct heap_paths *paths, uint32_t node);

#endif

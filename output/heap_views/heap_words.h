/* SPDX-License-Identifier: MIT */
/*
 * heap_words: how references and kinds of objects read.
 */
#ifndef LJSPY_HEAP_WORDS_H
#define LJSPY_HEAP_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "output/heap/heap_graph.h"

enum { HEAP_WORDS_SIZE = 2048 };

/* A step that stands for many keys. */
#define HEAP_MANY_STRINGS "[\"*\"]"
#define HEAP_MANY_OTHERS "[*]"

/* "table": part of the formats, never changed. */
const char *heap_kind_name(enum heap_kind kind);
/* "tables" */
const char *heap_kind_plural(enum heap_kind kind);

/* Is an object of this kind described in a path, as which function or C type it is? */
bool heap_kind_is_described(enum heap_kind kind);

/*
 * What a node is, "function handler app.lua:12", "coroutine of function <app.lua:30>", "cdata struct x"; NULL
 * with nothing written if it has no text.
 */
const char *heap_words_what(const struct heap_graph *graph, const struct heap_node *node,
			    char ret_text[static HEAP_WORDS_SIZE]);

/* How a step of a path is to be written. */
struct heap_step {
	const struct heap_edge *edge;
	const char *of;         /* what the holder is; NULL if that is unknown */
	bool of_main_thread;    /* the holder is no coroutine */
	bool many;              /* the key stands for many */
	bool of_package_loaded; /* the holder is package.loaded: names in brackets, _G by its own name */
};

/* Write a step. True if a path's text begins with it. */
bool heap_words_step(const struct heap_graph *graph, const struct heap_step *step,
		     char ret_text[static HEAP_WORDS_SIZE]);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * heap_names: under which name something holds a function. Private to unwind/heap.
 *
 * The best name is a field of a module or of _G; then one that is an identifier; then one in a table
 * of few keys; then that of the oldest holder. A local's is taken where no table holds the function
 * by a name.
 */
#ifndef LJSPY_HEAP_NAMES_H
#define LJSPY_HEAP_NAMES_H

#include <stdint.h>

#include "output/heap/heap_graph.h"

struct heap_names;
struct heap_reading;

struct heap_names *heap_names_new(void);        /* NULL when memory is short */
void heap_names_free(struct heap_names *names); /* NULL is allowed */

/* A table whose fields have a module's names. Before any name is noted; an address of 0 is passed over. */
void heap_names_add_module(struct heap_names *names, uint64_t address);
/* The edges that follow are of this node, the newest object first. slots: for keys. */
void heap_names_start(struct heap_names *names, uint32_t holder, uint64_t address, uint64_t slots);
/* Remember the name, if an edge holds a function by one. */
void heap_names_note(struct heap_reading *reading, const struct heap_edge *edge);
/* Give prototypes and functions their texts. 0, or -ENOMEM: a name is lost. */
int heap_names_set(struct heap_reading *reading);

#endif

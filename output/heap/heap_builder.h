/* SPDX-License-Identifier: MIT */
/*
 * heap_builder: makes a heap_graph, in two passes.
 *
 * First add every node, then the edges of one node after the other, in the order of nodes.
 * When memory is short, or a number is greater than a graph can hold, the builder remembers
 * that, does nothing more, and heap_builder_finish() fails.
 */
#ifndef LJSPY_HEAP_BUILDER_H
#define LJSPY_HEAP_BUILDER_H

#include <stddef.h>
#include <stdint.h>

#include "output/heap/heap_graph.h"

struct heap_builder;

/* A builder whose graph has the root alone. NULL when memory is short. */
struct heap_builder *heap_builder_new(void);
void heap_builder_free(struct heap_builder *builder); /* NULL is allowed */

/* The text of these bytes, up to the first NUL or HEAP_TEXT_MAX; equal bytes give an equal text. */
uint32_t heap_builder_text(struct heap_builder *builder, const char *bytes, size_t length);

/* A text's bytes. Valid until the next is made. */
const char *heap_builder_string(const struct heap_builder *builder, uint32_t text);

/*
 * Add a copy of node; first_edge is ignored. Returns its number, HEAP_ROOT if it was not added:
 * memory is short, or another node has its address.
 */
uint32_t heap_builder_add_node(struct heap_builder *builder, const struct heap_node *node);

/* The node at this address, HEAP_ROOT if there is none. Address 0 has none. */
uint32_t heap_builder_find(const struct heap_builder *builder, uint64_t address);

/* To change what is known of a node. Valid until the next is added; NULL if there is no such node. */
struct heap_node *heap_builder_node(struct heap_builder *builder, uint32_t node);
uint32_t heap_builder_count(const struct heap_builder *builder);

/* The edges added from now on are this node's. Nodes passed over have none; none can follow any more. */
void heap_builder_start_edges(struct heap_builder *builder, uint32_t node);
/* Add a copy of edge, from the node started last; nothing if edge->to is no node or the root. */
void heap_builder_add_edge(struct heap_builder *builder, const struct heap_edge *edge);

/*
 * Hand over the graph, to be freed with heap_graph_free(). The builder is then empty and can only
 * be freed. 0 or -ENOMEM.
 */
int heap_builder_finish(struct heap_builder *builder, struct heap_graph *ret_graph);

void heap_graph_free(struct heap_graph *graph);

#endif

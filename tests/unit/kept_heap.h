/* SPDX-License-Identifier: MIT */
/*
 * kept_heap: the heap of a kept process (kept_pages.h) as a graph, read anew after what a test changes in it.
 */
#ifndef LJSPY_KEPT_HEAP_H
#define LJSPY_KEPT_HEAP_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/heap_walk.h"
#include "tests/unit/kept_pages.h"
#include "unwind/heap/heap_read.h"

enum { RANGES_MAX = 1024 };

static struct kept_pages kept;
static struct vm_code vm;
static struct heap_copy *copy;
static struct heap_graph graph;
static struct heap_account account;
static struct heap_running running; /* where Lua stands in it */

static inline void forget_graph(void)
{
	free(graph.nodes);
	free(graph.edges);
	free(graph.texts);
	graph = (struct heap_graph){ 0 };
	heap_copy_free(copy);
	copy = NULL;
}

/* The process of a kept file (kept_pages.h); read_heap() makes a graph of it. */
static inline void load_heap(const char *file)
{
	kept_pages_load(&kept, file);
	vm.layout = kept.layout;
}

static inline void end_heap(void)
{
	forget_graph();
	kept_pages_free(&kept);
}

static inline int read_from(struct memory *memory, const struct heap_range *ranges, size_t count)
{
	forget_graph();
	copy = heap_copy_new(memory);
	account = (struct heap_account){ 0 };
	assert_non_null(copy);
	assert_int_equal(heap_copy_set_regions(copy, ranges, count), 0);
	return heap_read(copy, &vm, kept.g,
			 &(struct heap_read_options){ .strings = true, .running = &running }, &graph,
			 &account);
}

static inline int compare_pages(const void *a, const void *b)
{
	const struct kept_page *left = a, *right = b;

	return (left->address > right->address) - (left->address < right->address);
}

static inline int try_to_read(void)
{
	struct heap_range ranges[RANGES_MAX];
	size_t count = 0;

	qsort(kept.pages, kept.count, sizeof(*kept.pages), compare_pages);
	assert_in_range(kept.count, 1, RANGES_MAX);
	for (size_t i = 0; i < kept.count; i++)
		ranges[count++] = (struct heap_range){ kept.pages[i].address,
						       kept.pages[i].address + KEPT_PAGE, false };
	return read_from(&kept.memory, ranges, count);
}

static inline void read_heap(void)
{
	assert_int_equal(try_to_read(), 0);
}

static inline uint64_t uncertain(void)
{
	const struct heap_uncertain *all = &account.uncertain;

	return all->unread_objects + all->unread_bytes + all->broken_chains + all->unknown_objects +
	       all->dangling + all->unsized_objects + all->changed_pages + all->changed_objects +
	       all->left_out;
}

/* All that is held by a node in this way, under this name; the last of them. */
static inline size_t held(uint32_t by, enum heap_hold hold, const char *text, uint32_t *ret_node)
{
	const struct heap_node *node = &graph.nodes[by];
	size_t count = 0;

	for (uint32_t i = node->first_edge; i < node[1].first_edge; i++) {
		if (graph.edges[i].hold != hold || strcmp(heap_text(&graph, graph.edges[i].text), text) != 0)
			continue;
		*ret_node = graph.edges[i].to;
		count++;
	}
	return count;
}

static inline uint32_t root(const char *text)
{
	uint32_t node = HEAP_NO_NODE;

	assert_int_equal(held(HEAP_ROOT, HEAP_HOLDS_ROOT, text, &node), 1);
	return node;
}

static inline uint32_t field(uint32_t table, const char *name)
{
	uint32_t node = HEAP_NO_NODE;

	assert_int_equal(held(table, HEAP_HOLDS_FIELD, name, &node), 1);
	return node;
}

/* One of the program's objects. */
static inline uint32_t node_of(const char *name)
{
	const uint32_t node = heap_walk_find(&graph, name);

	assert_int_not_equal(node, HEAP_NO_NODE);
	return node;
}

static inline uint64_t address_of(const char *name)
{
	return graph.nodes[node_of(name)].address;
}

static inline bool has_root(const char *text)
{
	uint32_t node;

	return held(HEAP_ROOT, HEAP_HOLDS_ROOT, text, &node) > 0;
}

static inline uint64_t word(uint64_t address)
{
	uint64_t value = 0;

	assert_true(memory_u64(&kept.memory, address, &value));
	return value;
}

static inline void put(uint64_t address, uint64_t value, size_t size)
{
	kept_pages_put(&kept, address, value, size);
}

#endif

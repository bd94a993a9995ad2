/* SPDX-License-Identifier: MIT */
/*
 * heap: what analysing a heap of that many objects costs: seconds of CPU time, and bytes of memory beside the
 * bytes of the graph itself.
 *
 * The heap is a cache: tables in a table, each with a string and a table that leads back to it, and to
 * another.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "output/heap/heap_builder.h"
#include "output/heap_views/heap_summary.h"

enum { OBJECTS_OF_ENTRY = 3 };

static struct heap_graph make_graph(uint32_t objects)
{
	struct heap_builder *builder = heap_builder_new();
	uint32_t entries = objects / OBJECTS_OF_ENTRY, key, body;
	struct heap_graph graph = { 0 };
	uint32_t cache;

	if (!builder)
		exit(EXIT_FAILURE);
	key = heap_builder_text(builder, "key", 3);
	body = heap_builder_text(builder, "body", 4);
	cache = heap_builder_add_node(builder, &(struct heap_node){ .kind = HEAP_KIND_TABLE, .bytes = 64 });
	for (uint32_t i = 0; i < entries; i++) {
		heap_builder_add_node(builder, &(struct heap_node){ .kind = HEAP_KIND_TABLE, .bytes = 64 });
		heap_builder_add_node(builder, &(struct heap_node){ .kind = HEAP_KIND_STRING, .bytes = 100 });
		heap_builder_add_node(builder, &(struct heap_node){ .kind = HEAP_KIND_TABLE, .bytes = 64 });
	}
	heap_builder_start_edges(builder, HEAP_ROOT);
	heap_builder_add_edge(builder, &(struct heap_edge){ .to = cache, .hold = HEAP_HOLDS_ROOT });
	heap_builder_start_edges(builder, cache);
	for (uint32_t i = 0; i < entries; i++)
		heap_builder_add_edge(builder, &(struct heap_edge){ .to = cache + 1 + OBJECTS_OF_ENTRY * i,
								    .text = key,
								    .hold = HEAP_HOLDS_FIELD });
	for (uint32_t i = 0; i < entries; i++) {
		uint32_t entry = cache + 1 + OBJECTS_OF_ENTRY * i;

		heap_builder_start_edges(builder, entry);
		for (uint32_t part = 1; part < OBJECTS_OF_ENTRY; part++)
			heap_builder_add_edge(builder, &(struct heap_edge){ .to = entry + part,
									    .text = body,
									    .hold = HEAP_HOLDS_FIELD });
		heap_builder_start_edges(builder, entry + 2);
		heap_builder_add_edge(builder, &(struct heap_edge){ .to = entry, .hold = HEAP_HOLDS_FIELD });
		heap_builder_add_edge(builder,
				      &(struct heap_edge){ .to = 1 + (uint32_t)(i * UINT64_C(7919) % objects),
							   .hold = HEAP_HOLDS_FIELD });
	}
	if (heap_builder_finish(builder, &graph))
		exit(EXIT_FAILURE);
	heap_builder_free(builder);
	return graph;
}

static uint64_t peak_bytes(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)usage.ru_maxrss * 1024;
}

int main(int argc, char **argv)
{
	uint32_t objects = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1000000;
	struct heap_graph graph = make_graph(objects);
	struct heap_account account = { .vm = 1 };
	struct heap_summary summary;
	clock_t begin = clock();

	if (heap_summary_make(&graph, &account, &summary))
		return EXIT_FAILURE;
	printf("%u %u %.3f %zu %zu\n", graph.node_count, graph.edge_count,
	       (double)(clock() - begin) / CLOCKS_PER_SEC,
	       graph.node_count * sizeof(struct heap_node) + graph.edge_count * sizeof(struct heap_edge),
	       (size_t)peak_bytes());
	heap_summary_clear(&summary);
	heap_graph_free(&graph);
	return EXIT_SUCCESS;
}

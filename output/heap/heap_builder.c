/* SPDX-License-Identifier: MIT */
#include "output/heap/heap_builder.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "memory/scatter.h"

enum { SLOTS_AT_FIRST = 1 << 10, FNV_PRIME = 0x01000193 };

static const uint32_t FNV_START = 0x811c9dc5;

/* An open hash table of numbers, 0 where a slot is free. It is at most half full. */
struct slots {
	uint32_t *numbers;
	size_t count; /* a power of two */
	size_t used;
};

struct heap_builder {
	struct heap_node *nodes;
	struct heap_edge *edges;
	char *texts;
	size_t node_count, node_size, edge_count, edge_size, texts_bytes, texts_size;
	uint32_t edges_of; /* the node started last */
	struct slots by_address, by_text;
	bool failed;
};

static size_t text_hash(const char *text, size_t length)
{
	uint32_t hash = FNV_START;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (uint8_t)text[i]) * FNV_PRIME;
	return scatter(hash);
}

static size_t hash_of_node(const struct heap_builder *builder, uint32_t node)
{
	return scatter(builder->nodes[node].address);
}

static size_t hash_of_text(const struct heap_builder *builder, uint32_t text)
{
	return text_hash(builder->texts + text, strlen(builder->texts + text));
}

static void put(struct slots *slots, size_t hash, uint32_t number)
{
	size_t at = hash & (slots->count - 1);

	while (slots->numbers[at])
		at = (at + 1) & (slots->count - 1);
	slots->numbers[at] = number;
	slots->used++;
}

/* Make room for one number more. */
static bool make_room(struct heap_builder *builder, struct slots *slots,
		      size_t (*hash_of)(const struct heap_builder *builder, uint32_t number))
{
	struct slots larger = { .count = slots->count ? slots->count * 2 : SLOTS_AT_FIRST };

	if (slots->used + 1 <= slots->count / 2)
		return true;
	larger.numbers = calloc(larger.count, sizeof(*larger.numbers));
	if (!larger.numbers) {
		builder->failed = true;
		return false;
	}
	for (size_t i = 0; i < slots->count; i++)
		if (slots->numbers[i])
			put(&larger, hash_of(builder, slots->numbers[i]), slots->numbers[i]);
	free(slots->numbers);
	*slots = larger;
	return true;
}

/* array_grow() for a member of the builder. */
static bool grow(struct heap_builder *builder, void *member, size_t *size, size_t wanted, size_t item_bytes)
{
	void *array;

	if (wanted > UINT32_MAX - 1) {
		builder->failed = true;
		return false;
	}
	memcpy(&array, member, sizeof(array));
	array = array_grow(array, size, wanted, item_bytes);
	if (!array) {
		builder->failed = true;
		return false;
	}
	memcpy(member, &array, sizeof(array));
	return true;
}

struct heap_builder *heap_builder_new(void)
{
	struct heap_builder *builder = calloc(1, sizeof(*builder));
	const struct heap_node root = { .kind = HEAP_KIND_ROOT };

	if (!builder)
		return NULL;
	if (grow(builder, &builder->texts, &builder->texts_size, 1, sizeof(*builder->texts))) {
		builder->texts[0] = '\0';
		builder->texts_bytes = 1;
	}
	heap_builder_add_node(builder, &root);
	if (builder->failed) {
		heap_builder_free(builder);
		return NULL;
	}
	return builder;
}

void heap_builder_free(struct heap_builder *builder)
{
	if (!builder)
		return;
	free(builder->nodes);
	free(builder->edges);
	free(builder->texts);
	free(builder->by_address.numbers);
	free(builder->by_text.numbers);
	free(builder);
}

uint32_t heap_builder_text(struct heap_builder *builder, const char *bytes, size_t length)
{
	size_t at, hash;
	uint32_t text;

	length = strnlen(bytes, length < HEAP_TEXT_MAX ? length : HEAP_TEXT_MAX);
	if (length == 0 || builder->failed || !make_room(builder, &builder->by_text, hash_of_text))
		return HEAP_TEXT_NONE;
	hash = text_hash(bytes, length);
	for (at = hash & (builder->by_text.count - 1); builder->by_text.numbers[at];
	     at = (at + 1) & (builder->by_text.count - 1)) {
		text = builder->by_text.numbers[at];
		if (!strncmp(builder->texts + text, bytes, length) && !builder->texts[text + length])
			return text;
	}
	if (!grow(builder, &builder->texts, &builder->texts_size, builder->texts_bytes + length + 1, 1))
		return HEAP_TEXT_NONE;
	text = (uint32_t)builder->texts_bytes;
	memcpy(builder->texts + text, bytes, length);
	builder->texts[text + length] = '\0';
	builder->texts_bytes += length + 1;
	put(&builder->by_text, hash, text);
	return text;
}

const char *heap_builder_string(const struct heap_builder *builder, uint32_t text)
{
	return builder->texts + text;
}

uint32_t heap_builder_add_node(struct heap_builder *builder, const struct heap_node *node)
{
	uint32_t number = (uint32_t)builder->node_count;

	if (builder->failed || heap_builder_find(builder, node->address) != HEAP_ROOT ||
	    (node->address && !make_room(builder, &builder->by_address, hash_of_node)) ||
	    !grow(builder, &builder->nodes, &builder->node_size, builder->node_count + 1,
		  sizeof(*builder->nodes)))
		return HEAP_ROOT;
	builder->nodes[number] = *node;
	builder->nodes[number].first_edge = 0;
	builder->node_count++;
	if (node->address)
		put(&builder->by_address, hash_of_node(builder, number), number);
	return number;
}

uint32_t heap_builder_find(const struct heap_builder *builder, uint64_t address)
{
	const struct slots *slots = &builder->by_address;

	if (!address || !slots->count)
		return HEAP_ROOT;
	for (size_t at = scatter(address) & (slots->count - 1); slots->numbers[at];
	     at = (at + 1) & (slots->count - 1))
		if (builder->nodes[slots->numbers[at]].address == address)
			return slots->numbers[at];
	return HEAP_ROOT;
}

struct heap_node *heap_builder_node(struct heap_builder *builder, uint32_t node)
{
	return node < builder->node_count ? &builder->nodes[node] : NULL;
}

uint32_t heap_builder_count(const struct heap_builder *builder)
{
	return (uint32_t)builder->node_count;
}

void heap_builder_start_edges(struct heap_builder *builder, uint32_t node)
{
	while (builder->edges_of < node && builder->edges_of + 1 < builder->node_count)
		builder->nodes[++builder->edges_of].first_edge = (uint32_t)builder->edge_count;
}

void heap_builder_add_edge(struct heap_builder *builder, const struct heap_edge *edge)
{
	if (builder->failed || edge->to == HEAP_ROOT || edge->to >= builder->node_count ||
	    !grow(builder, &builder->edges, &builder->edge_size, builder->edge_count + 1,
		  sizeof(*builder->edges)))
		return;
	builder->edges[builder->edge_count++] = *edge;
}

int heap_builder_finish(struct heap_builder *builder, struct heap_graph *ret_graph)
{
	if (builder->failed || !grow(builder, &builder->nodes, &builder->node_size, builder->node_count + 1,
				     sizeof(*builder->nodes)))
		return -ENOMEM;
	heap_builder_start_edges(builder, (uint32_t)builder->node_count - 1);
	builder->nodes[builder->node_count] = (struct heap_node){
		.first_edge = (uint32_t)builder->edge_count
	};
	*ret_graph = (struct heap_graph){
		.nodes = builder->nodes,
		.edges = builder->edges,
		.texts = builder->texts,
		.node_count = (uint32_t)builder->node_count,
		.edge_count = (uint32_t)builder->edge_count,
		.texts_bytes = (uint32_t)builder->texts_bytes,
	};
	builder->nodes = NULL;
	builder->edges = NULL;
	builder->texts = NULL;
	builder->failed = true;
	return 0;
}

void heap_graph_free(struct heap_graph *graph)
{
	free(graph->nodes);
	free(graph->edges);
	free(graph->texts);
	*graph = (struct heap_graph){ 0 };
}

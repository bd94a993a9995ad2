/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "output/blocks/block_header.h"
#include "output/blocks/block_reader.h"
#include "output/heap/heap_builder.h"
#include "output/heap/heap_file.h"
#include "output/heap/heap_file_format.h"
#include "output/heap/heap_method.h"

enum { VERSION_WITH_PLACES = 2, VERSION_WITH_C_NAMES = 3 };

struct heap_file_reader {
	struct block_reader blocks;
	struct record_source *block; /* the current one of them */
	size_t memory_max;
	uint32_t version;
	bool ended;
};

/* The VM that is being read. Edges can lead to nodes that come later. */
struct vm {
	struct heap_graph graph;
	struct heap_account account;
	size_t node_size, edge_size, texts_size;
	uint64_t last_address;
	uint32_t last_to;
	bool ended;
};

/* Where a text begins in the VM's texts; the empty one is always there. */
static bool take_place(struct heap_file_reader *reader, const struct vm *vm, uint32_t *ret_place)
{
	return record_take_number(reader->block, vm->graph.texts_bytes - 1, ret_place);
}

/*---- Records ----*/

/* Make room for one more item. 0, or -ENOMEM when memory is short or the VM takes too much. */
static int make_room(const struct heap_file_reader *reader, const struct vm *vm, void **array, size_t *size,
		     size_t count, size_t item_bytes)
{
	size_t taken = vm->node_size * sizeof(struct heap_node) + vm->edge_size * sizeof(struct heap_edge) +
		       vm->texts_size;
	void *larger;

	if (count <= *size)
		return 0;
	if (count >= UINT32_MAX || taken > reader->memory_max)
		return -ENOMEM;
	larger = array_grow(*array, size, count, item_bytes);
	if (!larger)
		return -ENOMEM;
	*array = larger;
	return 0;
}

static int add_text(struct heap_file_reader *reader, struct vm *vm, const char *text, size_t length)
{
	void *texts = vm->graph.texts;
	int error = make_room(reader, vm, &texts, &vm->texts_size, vm->graph.texts_bytes + length + 1, 1);

	vm->graph.texts = texts;
	if (error)
		return error;
	memcpy(vm->graph.texts + vm->graph.texts_bytes, text, length);
	vm->graph.texts_bytes += (uint32_t)length;
	vm->graph.texts[vm->graph.texts_bytes++] = '\0';
	return 0;
}

static int read_text(struct heap_file_reader *reader, struct vm *vm)
{
	const char *text;
	size_t length;

	return record_take_text(reader->block, HEAP_TEXT_MAX, &text, &length)
		       ? add_text(reader, vm, text, length)
		       : -EBADMSG;
}

/* There is always one node more than node_count, which ends the last one's edges. */
static int add_node(struct heap_file_reader *reader, struct vm *vm, const struct heap_node *node)
{
	void *nodes = vm->graph.nodes;
	int error = make_room(reader, vm, &nodes, &vm->node_size, (size_t)vm->graph.node_count + 2,
			      sizeof(*node));

	vm->graph.nodes = nodes;
	if (error)
		return error;
	vm->graph.nodes[vm->graph.node_count] = *node;
	vm->graph.nodes[vm->graph.node_count++].first_edge = vm->graph.edge_count;
	vm->graph.nodes[vm->graph.node_count] = (struct heap_node){ .first_edge = vm->graph.edge_count };
	return 0;
}

/* Before version 2, a thread's text was its place, and it had 0 slots. */
static bool take_slots_or_place(struct heap_file_reader *reader, const struct vm *vm, struct heap_node *node)
{
	if (node->kind != HEAP_KIND_THREAD)
		return record_take_number(reader->block, UINT32_MAX, &node->slots);
	if (reader->version < VERSION_WITH_PLACES)
		return record_take_number(reader->block, 0, &node->place);
	return take_place(reader, vm, &node->place);
}

static int read_node(struct heap_file_reader *reader, struct vm *vm)
{
	struct heap_node node = { 0 };
	uint64_t delta;

	if (!record_take_byte(reader->block, &node.kind) || !record_take_byte(reader->block, &node.flags) ||
	    !record_take_sint(reader->block, &delta) || !record_take_uint(reader->block, &node.bytes) ||
	    !take_place(reader, vm, &node.text) || !take_place(reader, vm, &node.module) ||
	    !take_slots_or_place(reader, vm, &node) ||
	    !record_take_number(reader->block, UINT32_MAX, &node.used) || node.kind >= HEAP_KIND_COUNT ||
	    (node.kind == HEAP_KIND_ROOT) != (vm->graph.node_count == 0))
		return -EBADMSG;
	/* The sum of all bytes must be a number. */
	if (node.bytes > UINT64_MAX >> 24)
		return -EBADMSG;
	node.address = vm->last_address += delta;
	return add_node(reader, vm, &node);
}

static int add_edge(struct heap_file_reader *reader, struct vm *vm, const struct heap_edge *edge)
{
	void *edges = vm->graph.edges;
	int error = make_room(reader, vm, &edges, &vm->edge_size, (size_t)vm->graph.edge_count + 1,
			      sizeof(*edge));

	vm->graph.edges = edges;
	if (error)
		return error;
	vm->graph.edges[vm->graph.edge_count++] = *edge;
	vm->graph.nodes[vm->graph.node_count].first_edge = vm->graph.edge_count;
	return 0;
}

/* A text, or a number that fits. */
static bool take_last_member(struct heap_file_reader *reader, const struct vm *vm, struct heap_edge *edge)
{
	uint64_t number;

	if (heap_hold_has_detail(edge->hold))
		return take_place(reader, vm, &edge->detail);
	if (!record_take_sint(reader->block, &number) || (int64_t)number < INT32_MIN ||
	    (int64_t)number > INT32_MAX)
		return false;
	edge->number = (int32_t)number;
	return true;
}

static int read_edge(struct heap_file_reader *reader, struct vm *vm)
{
	struct heap_edge edge = { 0 };
	uint64_t delta;
	uint8_t hold;

	if (vm->graph.node_count == 0 || !record_take_byte(reader->block, &hold) ||
	    !record_take_sint(reader->block, &delta) || !take_place(reader, vm, &edge.text))
		return -EBADMSG;
	edge.hold = hold & (HEAP_EDGE_WEAK_BIT - 1);
	edge.weak = hold & HEAP_EDGE_WEAK_BIT;
	if (edge.hold >= HEAP_HOLD_COUNT || !take_last_member(reader, vm, &edge))
		return -EBADMSG;
	edge.to = vm->last_to += (uint32_t)delta;
	return add_edge(reader, vm, &edge);
}

static int keep_text(char **text, const char *value)
{
	free(*text);
	*text = strdup(value);
	return *text ? 0 : -ENOMEM;
}

/* A number of the account. Unknown names, and texts that are no numbers, are passed over. */
static void keep_number(struct heap_account *account, const char *name, const char *value)
{
	char *end;
	struct heap_figure figure = { .known = true, .value = strtoull(value, &end, 10) };

	if (end == value || *end)
		return;
	if (strcmp(name, "dead_known") == 0)
		account->dead_known = figure.value != 0;
	if (strcmp(name, "c_unnamed") == 0)
		account->c_unnamed = figure.value != 0;
	for (size_t i = 0; i < heap_property_count; i++) {
		char *member = (char *)account + heap_properties[i].offset;
		uint32_t small = (uint32_t)figure.value;

		if (strcmp(heap_properties[i].name, name) != 0)
			continue;
		if (heap_properties[i].kind == PROPERTY_FIGURE)
			memcpy(member, &figure, sizeof(figure));
		else if (heap_properties[i].kind == PROPERTY_64)
			memcpy(member, &figure.value, sizeof(figure.value));
		else
			memcpy(member, &small, sizeof(small));
	}
}

static int read_property(struct heap_file_reader *reader, struct vm *vm)
{
	char name[64], value[HEAP_FILE_NAME_MAX + 1];
	const char *text;
	size_t length;

	if (!record_take_text(reader->block, sizeof(name) - 1, &text, &length))
		return -EBADMSG;
	memcpy(name, text, length);
	name[length] = '\0';
	if (!record_take_text(reader->block, sizeof(value) - 1, &text, &length))
		return -EBADMSG;
	memcpy(value, text, length);
	value[length] = '\0';
	if (strcmp(name, HEAP_PROPERTY_VERSION) == 0)
		return strtoull(value, NULL, 10) == reader->version ? 0 : -EBADMSG;
	if (strcmp(name, "process") == 0)
		return keep_text(&vm->account.process, value);
	if (strcmp(name, "module") == 0)
		return keep_text(&vm->account.module, value);
	if (strcmp(name, "gc_state") == 0)
		vm->account.gc_state = heap_gc_state_literal(value);
	else if (strcmp(name, "method") != 0)
		keep_number(&vm->account, name, value);
	else if (!heap_method_by_name(value, &vm->account.method))
		vm->account.method = HEAP_METHOD_UNKNOWN;
	return 0;
}

static int read_vm_end(struct heap_file_reader *reader, struct vm *vm)
{
	const struct heap_graph *graph = &vm->graph;
	uint64_t nodes, edges;

	if (!record_take_uint(reader->block, &nodes) || !record_take_uint(reader->block, &edges) ||
	    graph->node_count == 0 || nodes != graph->node_count || edges != graph->edge_count)
		return -EBADMSG;
	for (uint32_t i = 0; i < graph->edge_count; i++)
		if (graph->edges[i].to == HEAP_ROOT || graph->edges[i].to >= graph->node_count)
			return -EBADMSG;
	vm->ended = true;
	return 0;
}

static int read_record(struct heap_file_reader *reader, struct vm *vm)
{
	uint8_t record;
	int result = reader->block->at == reader->block->end ? block_reader_next(&reader->blocks) : 1;

	if (result <= 0)
		return result ? result : -EBADMSG;
	record = *reader->block->at++;
	switch (record) {
	case HEAP_RECORD_PROPERTY: return read_property(reader, vm);
	case HEAP_RECORD_TEXT: return read_text(reader, vm);
	case HEAP_RECORD_NODE: return read_node(reader, vm);
	case HEAP_RECORD_EDGE: return read_edge(reader, vm);
	case HEAP_RECORD_VM_END: return read_vm_end(reader, vm);
	case HEAP_RECORD_END:
		if (vm->graph.node_count > 0)
			return -EBADMSG;
		reader->ended = true;
		result = block_reader_at_end(&reader->blocks);
		return result > 0 ? 0 : result ? result : -EBADMSG;
	default: return -EBADMSG;
	}
}

int heap_file_reader_next(struct heap_file_reader *reader, struct heap_graph *ret_graph,
			  struct heap_account *ret_account)
{
	struct vm vm = { .account = { .gc_state = "?",
				      .method = HEAP_METHOD_UNKNOWN,
				      .c_unnamed = reader->version < VERSION_WITH_C_NAMES } };
	int error = reader->ended ? 0 : add_text(reader, &vm, "", 0);

	while (!error && !vm.ended && !reader->ended)
		error = read_record(reader, &vm);
	if (!error && vm.ended) {
		*ret_graph = vm.graph;
		*ret_account = vm.account;
		return 1;
	}
	heap_graph_free(&vm.graph);
	heap_file_account_clear(&vm.account);
	return error;
}

/*---- The reader ----*/

static int read_header(FILE *in, uint32_t *ret_version)
{
	return block_header_read(in, HEAP_FILE_MAGIC, HEAP_FILE_VERSION, ret_version);
}

bool heap_file_is_one(FILE *in)
{
	uint32_t version;
	int error = read_header(in, &version);

	rewind(in);
	return error == 0 || error == -EPROTONOSUPPORT;
}

int heap_file_reader_new(FILE *in, size_t memory_max, struct heap_file_reader **ret_reader)
{
	struct heap_file_reader *reader;
	uint32_t version;
	int error = read_header(in, &version);

	if (error)
		return error;
	reader = calloc(1, sizeof(*reader));
	if (!reader)
		return -ENOMEM;
	reader->block = &reader->blocks.block;
	reader->memory_max = memory_max;
	reader->version = version;
	error = block_reader_init(&reader->blocks, in);
	if (error) {
		heap_file_reader_free(reader);
		return error;
	}
	*ret_reader = reader;
	return 0;
}

void heap_file_reader_free(struct heap_file_reader *reader)
{
	if (!reader)
		return;
	block_reader_clear(&reader->blocks);
	free(reader);
}

void heap_file_account_clear(struct heap_account *account)
{
	free(account->process);
	free(account->module);
	account->process = account->module = NULL;
}

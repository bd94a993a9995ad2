/* SPDX-License-Identifier: MIT */
#include "output/heap_reports/heap_devtools.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/heap_views/heap_words.h"
#include "output/labels/json_stream.h"
#include "output/labels/string_index.h"

/* Numbers of types in the file's own list of them. */
enum node_type { NODE_STRING = 2, NODE_OBJECT = 3, NODE_CODE = 4, NODE_NATIVE = 8, NODE_SYNTHETIC = 9 };
enum edge_type { EDGE_CONTEXT = 0, EDGE_ELEMENT = 1, EDGE_PROPERTY = 2, EDGE_INTERNAL = 3, EDGE_WEAK = 6 };

enum { NODE_FIELDS = 7 };

static const char meta[] =
	"{\"node_fields\":[\"type\",\"name\",\"id\",\"self_size\",\"edge_count\",\"trace_node_id\","
	"\"detachedness\"],\"node_types\":[[\"hidden\",\"array\",\"string\",\"object\",\"code\",\"closure\","
	"\"regexp\",\"number\",\"native\",\"synthetic\",\"concatenated string\",\"sliced string\",\"symbol\","
	"\"bigint\",\"object shape\"],\"string\",\"number\",\"number\",\"number\",\"number\",\"number\"],"
	"\"edge_fields\":[\"type\",\"name_or_index\",\"to_node\"],\"edge_types\":[[\"context\",\"element\","
	"\"property\",\"internal\",\"hidden\",\"shortcut\",\"weak\"],\"string_or_number\",\"node\"],"
	"\"trace_function_info_fields\":[\"function_id\",\"name\",\"script_name\",\"script_id\",\"line\","
	"\"column\"],\"trace_node_fields\":[\"id\",\"function_info_index\",\"count\",\"size\",\"children\"],"
	"\"sample_fields\":[\"timestamp_us\",\"last_assigned_id\"],\"location_fields\":[\"object_index\","
	"\"script_id\",\"line\",\"column\"]}";

/* One VM in the file. */
struct part {
	const struct heap_graph *graph;
	uint32_t first;  /* the number of its root in the file */
	bool *reached;   /* by node */
	uint32_t unheld; /* how many nodes are not reached */
};

/*
 * The file's nodes: its root, if there are several VMs; then of each VM all nodes and, if something
 * is held by nothing, a node that holds it.
 */
struct writer {
	struct json_stream stream;
	const struct heap_side *side;
	const struct heap_view *view;
	struct part *parts;
	struct string_index *strings;
	uint64_t node_count, edge_count;
	const char *separator; /* of the array that is being written */
};

/*---- Parts ----*/

/* Find what strong edges lead to. 0 or -ENOMEM. */
static int find_reached(struct part *part)
{
	const struct heap_graph *graph = part->graph;
	uint32_t *waiting = malloc(graph->node_count * sizeof(*waiting));
	uint32_t count = 0;

	part->reached = calloc(graph->node_count, sizeof(*part->reached));
	if (!waiting || !part->reached) {
		free(waiting);
		return -ENOMEM;
	}
	waiting[count++] = HEAP_ROOT;
	part->reached[HEAP_ROOT] = true;
	part->unheld = graph->node_count - 1;
	while (count > 0) {
		uint32_t node = waiting[--count];

		for (uint32_t i = graph->nodes[node].first_edge; i < graph->nodes[node + 1].first_edge; i++) {
			uint32_t to = graph->edges[i].to;

			if (graph->edges[i].weak || part->reached[to])
				continue;
			part->reached[to] = true;
			part->unheld--;
			waiting[count++] = to;
		}
	}
	free(waiting);
	return 0;
}

static int make_parts(struct writer *writer)
{
	writer->parts = calloc(writer->side->count + 1, sizeof(*writer->parts));
	if (!writer->parts)
		return -ENOMEM;
	writer->node_count = writer->side->count > 1;
	writer->edge_count = writer->side->count > 1 ? writer->side->count : 0;
	for (size_t i = 0; i < writer->side->count; i++) {
		struct part *part = &writer->parts[i];
		int error;

		part->graph = &writer->side->subjects[i].graph;
		part->first = (uint32_t)writer->node_count;
		error = find_reached(part);
		if (error)
			return error;
		writer->node_count += part->graph->node_count + (part->unheld > 0);
		writer->edge_count += part->graph->edge_count + part->unheld + (part->unheld > 0);
		/* A place of a node in the file is a number of 32 bits, too. */
		if (writer->node_count > UINT32_MAX / NODE_FIELDS)
			return -EOVERFLOW;
	}
	return 0;
}

/*---- Values ----*/

static void put(struct writer *writer, uint64_t number)
{
	json_stream_mark(&writer->stream, writer->separator);
	json_stream_number(&writer->stream, number);
	writer->separator = ",";
}

static void put_text(struct writer *writer, const char *text)
{
	int64_t number = string_index_add(writer->strings, text);

	if (number < 0)
		writer->stream.error = (int)number;
	put(writer, number < 0 ? 0 : (uint64_t)number);
}

/* Begin a row of the array. */
static void next_row(struct writer *writer)
{
	if (*writer->separator == ',')
		writer->separator = "\n,";
}

/*---- Nodes ----*/

static void write_node(struct writer *writer, enum node_type type, const char *name, uint32_t id,
		       uint64_t bytes, uint64_t edges)
{
	next_row(writer);
	put(writer, type);
	put_text(writer, name);
	put(writer, id);
	put(writer, bytes);
	put(writer, edges);
	put(writer, 0);
	put(writer, 0);
}

static enum node_type type_of(const struct heap_node *node)
{
	if (node->kind == HEAP_KIND_STRING)
		return NODE_STRING;
	if (node->kind == HEAP_KIND_VM)
		return NODE_NATIVE;
	return node->kind == HEAP_KIND_TRACE ? NODE_CODE : NODE_OBJECT;
}

/* What DevTools groups by; of a string its contents, if they are wanted. */
static const char *name_of(const struct writer *writer, const struct heap_graph *graph,
			   const struct heap_node *node, char text[static HEAP_WORDS_SIZE])
{
	const char *name;

	if (node->kind == HEAP_KIND_STRING)
		return writer->view->strings ? heap_text(graph, node->text) : "";
	name = heap_words_what(graph, node, text);
	return name ? name : heap_kind_name((enum heap_kind)node->kind);
}

static uint32_t id_of(const struct heap_node *node, uint32_t number)
{
	/* Objects are at multiples of 8, and a VM's memory lies close together. */
	return node->address ? (uint32_t)(node->address >> 3) : number;
}

static void write_nodes_of(struct writer *writer, const struct part *part)
{
	const struct heap_graph *graph = part->graph;
	bool is_root = writer->side->count == 1;
	char text[HEAP_WORDS_SIZE];

	for (uint32_t i = 0; i < graph->node_count; i++) {
		const struct heap_node *node = &graph->nodes[i];
		uint64_t edges = node[1].first_edge - node->first_edge;

		if (i != HEAP_ROOT)
			write_node(writer, type_of(node), name_of(writer, graph, node, text), id_of(node, i),
				   node->bytes, edges);
		else
			write_node(writer, is_root ? NODE_SYNTHETIC : NODE_OBJECT, is_root ? "" : "VM",
				   part->first, 0, edges + (part->unheld > 0));
	}
	if (part->unheld > 0)
		write_node(writer, NODE_OBJECT, "held weakly or by nothing", part->first + graph->node_count,
			   0, part->unheld);
}

static void write_nodes(struct writer *writer)
{
	writer->separator = "";
	if (writer->side->count != 1)
		write_node(writer, NODE_SYNTHETIC, "", 0, 0, writer->side->count);
	for (size_t i = 0; i < writer->side->count; i++)
		write_nodes_of(writer, &writer->parts[i]);
}

/*---- Edges ----*/

static enum edge_type edge_type_of(const struct heap_edge *edge)
{
	static const enum edge_type types[HEAP_HOLD_COUNT] = {
		[HEAP_HOLDS_ROOT] = EDGE_PROPERTY,        [HEAP_HOLDS_FIELD] = EDGE_PROPERTY,
		[HEAP_HOLDS_INDEX] = EDGE_PROPERTY,       [HEAP_HOLDS_VALUE] = EDGE_PROPERTY,
		[HEAP_HOLDS_KEY] = EDGE_INTERNAL,         [HEAP_HOLDS_METATABLE] = EDGE_INTERNAL,
		[HEAP_HOLDS_ENVIRONMENT] = EDGE_INTERNAL, [HEAP_HOLDS_UPVALUE] = EDGE_CONTEXT,
		[HEAP_HOLDS_CLOSED] = EDGE_INTERNAL,      [HEAP_HOLDS_LOCAL] = EDGE_CONTEXT,
		[HEAP_HOLDS_SLOT] = EDGE_INTERNAL,        [HEAP_HOLDS_PROTO] = EDGE_INTERNAL,
		[HEAP_HOLDS_CONSTANT] = EDGE_INTERNAL,    [HEAP_HOLDS_TRACE] = EDGE_INTERNAL,
		[HEAP_HOLDS_OTHER] = EDGE_INTERNAL,
	};

	if (edge->weak)
		return EDGE_WEAK;
	if (edge->hold == HEAP_HOLDS_INDEX && edge->number >= 0)
		return EDGE_ELEMENT;
	return types[edge->hold];
}

/* The name of an edge: a field's and a variable's own name, else the words of a path. */
static const char *edge_name(const struct heap_graph *graph, const struct heap_edge *edge,
			     char text[static HEAP_WORDS_SIZE])
{
	const struct heap_step step = { .edge = edge };
	size_t length;

	if (edge->hold == HEAP_HOLDS_FIELD || (edge->hold == HEAP_HOLDS_UPVALUE && edge->text))
		return heap_text(graph, edge->text);
	if (edge->hold == HEAP_HOLDS_CLOSED)
		return "value";
	heap_words_step(graph, &step, text);
	length = strlen(text);
	/* " (metatable)" stands behind a path. */
	if (length > 3 && text[0] == ' ' && text[1] == '(' && text[length - 1] == ')') {
		text[length - 1] = '\0';
		return text + 2;
	}
	return text;
}

static void write_edge(struct writer *writer, const struct part *part, const struct heap_edge *edge)
{
	enum edge_type type = edge_type_of(edge);
	char text[HEAP_WORDS_SIZE];

	next_row(writer);
	put(writer, type);
	if (type == EDGE_ELEMENT)
		put(writer, (uint64_t)edge->number);
	else
		put_text(writer, edge_name(part->graph, edge, text));
	put(writer, NODE_FIELDS * ((uint64_t)part->first + edge->to));
}

static void write_own_edge(struct writer *writer, enum edge_type type, uint64_t index, uint64_t to)
{
	next_row(writer);
	put(writer, type);
	put(writer, index);
	put(writer, NODE_FIELDS * to);
}

static void write_edges_of(struct writer *writer, const struct part *part)
{
	const struct heap_graph *graph = part->graph;

	for (uint32_t i = 0; i < graph->node_count; i++) {
		for (uint32_t j = graph->nodes[i].first_edge; j < graph->nodes[i + 1].first_edge; j++)
			write_edge(writer, part, &graph->edges[j]);
		if (i == HEAP_ROOT && part->unheld > 0)
			write_own_edge(writer, EDGE_ELEMENT, 0, (uint64_t)part->first + graph->node_count);
	}
	for (uint32_t i = 1, index = 0; i < graph->node_count; i++)
		if (!part->reached[i])
			write_own_edge(writer, EDGE_ELEMENT, index++, (uint64_t)part->first + i);
}

static void write_edges(struct writer *writer)
{
	writer->separator = "";
	if (writer->side->count != 1)
		for (size_t i = 0; i < writer->side->count; i++)
			write_own_edge(writer, EDGE_ELEMENT, i, writer->parts[i].first);
	for (size_t i = 0; i < writer->side->count; i++)
		write_edges_of(writer, &writer->parts[i]);
}

/*---- The file ----*/

static void write_strings(struct writer *writer)
{
	const char *separator = "";

	for (const char *text = NULL; (text = string_index_next(writer->strings, text));) {
		json_stream_mark(&writer->stream, separator);
		json_stream_text(&writer->stream, text);
		separator = ",\n";
	}
}

static int write_document(struct writer *writer)
{
	struct json_stream *stream = &writer->stream;

	json_stream_outline(stream, "{\"snapshot\":{\"meta\":%s,\"node_count\":", meta);
	json_stream_number(stream, writer->node_count);
	json_stream_mark(stream, ",\"edge_count\":");
	json_stream_number(stream, writer->edge_count);
	json_stream_mark(stream, ",\"trace_function_count\":0,\"root_index\":0},\n\"nodes\":[");
	write_nodes(writer);
	json_stream_mark(stream, "],\n\"edges\":[");
	write_edges(writer);
	json_stream_mark(stream,
			 "],\n\"trace_function_infos\":[],\"trace_tree\":[],\"samples\":[],\"locations\":[],"
			 "\n\"strings\":[");
	write_strings(writer);
	json_stream_mark(stream, "]}\n");
	return json_stream_end(stream);
}

int heap_devtools_write(FILE *out, const struct heap_side *side, const struct heap_view *view)
{
	struct writer writer = {
		.stream = { .out = out },
		.side = side,
		.view = view,
		.strings = string_index_new(),
	};
	int error = writer.strings ? make_parts(&writer) : -ENOMEM;

	if (!error)
		error = write_document(&writer);
	for (size_t i = 0; writer.parts && i < side->count; i++)
		free(writer.parts[i].reached);
	free(writer.parts);
	string_index_free(writer.strings);
	return error;
}

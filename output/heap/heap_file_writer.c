/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/blocks/block_packer.h"
#include "output/heap/heap_file.h"
#include "output/heap/heap_file_format.h"
#include "output/heap/heap_method.h"

enum {
	/* A block of this many bytes is written; below that, any record still fits. */
	BLOCK_FULL = 512 << 10,
	RECORD_SIZE_MAX = 2 * HEAP_FILE_NAME_MAX + 128,
	BUFFER_SIZE = BLOCK_FULL + RECORD_SIZE_MAX,
	COMPRESSION_LEVEL = 3,
};

static_assert((size_t)BUFFER_SIZE <= BLOCK_BYTES_MAX, "every block is within the limit");
static_assert((size_t)HEAP_TEXT_MAX <= HEAP_FILE_NAME_MAX, "a text fits into a record");

struct heap_file_writer {
	FILE *out;
	struct block_packer packer; /* of BUFFER_SIZE bytes */
	struct record_sink *block;  /* its block */
	int error;                  /* the first one: nothing is written after it */
};

/*---- Blocks ----*/

static void write_block(struct heap_file_writer *writer)
{
	size_t length;

	if (writer->block->length == 0 || writer->error)
		return;
	length = block_packer_pack(&writer->packer);
	if (length == 0)
		writer->error = -ENOMEM;
	else if (fwrite(writer->packer.packed, 1, length, writer->out) != length)
		writer->error = -EIO;
}

/* Begin a record, with room for it in the block. After an error it is written over. */
static void begin(struct heap_file_writer *writer, enum heap_record record)
{
	if (writer->block->length >= BLOCK_FULL)
		write_block(writer);
	if (writer->error)
		writer->block->length = 0;
	record_put_byte(writer->block, record);
}

/*---- A VM ----*/

static void put_property(struct heap_file_writer *writer, const char *name, const char *text)
{
	if (!text)
		return;
	begin(writer, HEAP_RECORD_PROPERTY);
	record_put_text(writer->block, HEAP_FILE_NAME_MAX, name);
	record_put_text(writer->block, HEAP_FILE_NAME_MAX, text);
}

static void put_number(struct heap_file_writer *writer, const char *name, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	put_property(writer, name, text);
}

static void put_account(struct heap_file_writer *writer, const struct heap_account *account)
{
	put_number(writer, HEAP_PROPERTY_VERSION, HEAP_FILE_VERSION);
	put_property(writer, "process", account->process);
	put_property(writer, "module", account->module);
	put_property(writer, "gc_state", account->gc_state);
	put_property(writer, "method", heap_method_name(account->method));
	if (account->dead_known)
		put_number(writer, "dead_known", 1);
	if (account->c_unnamed)
		put_number(writer, "c_unnamed", 1);
	for (size_t i = 0; i < heap_property_count; i++) {
		const struct heap_property *property = &heap_properties[i];
		const char *member = (const char *)account + property->offset;
		struct heap_figure figure = { .known = true };
		uint32_t small;

		if (property->kind == PROPERTY_FIGURE)
			memcpy(&figure, member, sizeof(figure));
		else if (property->kind == PROPERTY_64)
			memcpy(&figure.value, member, sizeof(figure.value));
		else {
			memcpy(&small, member, sizeof(small));
			figure.value = small;
		}
		if (figure.known)
			put_number(writer, property->name, figure.value);
	}
}

/* The text at 0 is there without a record. */
static void put_texts(struct heap_file_writer *writer, const struct heap_graph *graph)
{
	for (size_t at = 1; at < graph->texts_bytes; at += strlen(graph->texts + at) + 1) {
		begin(writer, HEAP_RECORD_TEXT);
		record_put_text(writer->block, HEAP_FILE_NAME_MAX, graph->texts + at);
	}
}

static void put_edge(struct heap_file_writer *writer, const struct heap_edge *edge, uint32_t *last_to)
{
	begin(writer, HEAP_RECORD_EDGE);
	record_put_byte(writer->block, edge->hold | (edge->weak ? HEAP_EDGE_WEAK_BIT : 0u));
	record_put_sint(writer->block, (int64_t)edge->to - *last_to);
	record_put_uint(writer->block, edge->text);
	if (heap_hold_has_detail(edge->hold))
		record_put_uint(writer->block, edge->detail);
	else
		record_put_sint(writer->block, edge->number);
	*last_to = edge->to;
}

static void put_node(struct heap_file_writer *writer, const struct heap_node *node, uint64_t *last_address)
{
	begin(writer, HEAP_RECORD_NODE);
	record_put_byte(writer->block, node->kind);
	record_put_byte(writer->block, node->flags);
	record_put_sint(writer->block, (int64_t)(node->address - *last_address));
	record_put_uint(writer->block, node->bytes);
	record_put_uint(writer->block, node->text);
	record_put_uint(writer->block, node->module);
	record_put_uint(writer->block, node->kind == HEAP_KIND_THREAD ? node->place : node->slots);
	record_put_uint(writer->block, node->used);
	*last_address = node->address;
}

int heap_file_writer_add(struct heap_file_writer *writer, const struct heap_graph *graph,
			 const struct heap_account *account)
{
	uint64_t last_address = 0;
	uint32_t last_to = 0;

	put_account(writer, account);
	put_texts(writer, graph);
	for (uint32_t i = 0; i < graph->node_count && !writer->error; i++) {
		put_node(writer, &graph->nodes[i], &last_address);
		for (uint32_t j = graph->nodes[i].first_edge; j < graph->nodes[i + 1].first_edge; j++)
			put_edge(writer, &graph->edges[j], &last_to);
	}
	begin(writer, HEAP_RECORD_VM_END);
	record_put_uint(writer->block, graph->node_count);
	record_put_uint(writer->block, graph->edge_count);
	return writer->error;
}

int heap_file_writer_end(struct heap_file_writer *writer)
{
	begin(writer, HEAP_RECORD_END);
	write_block(writer);
	if (!writer->error && fflush(writer->out))
		writer->error = -EIO;
	return writer->error;
}

/*---- The writer ----*/

static int write_header(FILE *out)
{
	char header[BLOCK_HEADER_SIZE];

	block_header_make(HEAP_FILE_MAGIC, HEAP_FILE_VERSION, header);
	return fwrite(header, 1, sizeof(header), out) == sizeof(header) ? 0 : -EIO;
}

int heap_file_writer_new(FILE *out, struct heap_file_writer **ret_writer)
{
	struct heap_file_writer *writer = calloc(1, sizeof(*writer));
	int error;

	if (!writer)
		return -ENOMEM;
	writer->out = out;
	writer->block = &writer->packer.block;
	error = block_packer_init(&writer->packer, BUFFER_SIZE, COMPRESSION_LEVEL);
	if (!error)
		error = write_header(out);
	if (error)
		heap_file_writer_free(writer);
	else
		*ret_writer = writer;
	return error;
}

void heap_file_writer_free(struct heap_file_writer *writer)
{
	if (!writer)
		return;
	block_packer_clear(&writer->packer);
	free(writer);
}

/* SPDX-License-Identifier: MIT */
/*
 * The memory of a process whose heap lies: chains that go in circles, sizes of billions, types
 * that there are not, stacks and prototypes that lead elsewhere.
 *
 *	input = choice:u8, then as image.h has it
 *
 * The choice is that of an image, and whether strings are kept. An image has some bytes of each
 * page only; the others are zeros.
 */
#include <stdlib.h>
#include <string.h>

#include "output/heap/heap_builder.h"
#include "tests/fuzz/image.h"
#include "unwind/heap/heap_read.h"

enum { STRINGS = 1 << 7 };

struct pages {
	struct memory memory; /* first */
	const struct memory_image *image;
};

/* Copy what a piece has of a range. */
static bool lay(struct memory_range *range, uint64_t address, const uint8_t *bytes, size_t length)
{
	uint64_t begin = range->address > address ? range->address : address;
	uint64_t range_end = range->address + range->length, end = address + length;

	if (end > range_end)
		end = range_end;
	if (begin >= end)
		return false;
	memcpy((uint8_t *)range->copy + (begin - range->address), bytes + (begin - address),
	       (size_t)(end - begin));
	return true;
}

static void read_pages(struct memory *memory, struct memory_range *ranges, size_t count)
{
	const struct memory_image *image = ((struct pages *)(void *)memory)->image;

	for (size_t i = 0; i < count; i++) {
		bool any;

		memset(ranges[i].copy, 0, ranges[i].length);
		any = lay(&ranges[i], IMAGE_FREE, image->free_bytes, sizeof(image->free_bytes));
		for (size_t j = 0; j < image->segment_count; j++)
			any |= lay(&ranges[i], image->segments[j].address, image->segments[j].bytes,
				   image->segments[j].length);
		ranges[i].status = any ? MEMORY_OK : MEMORY_UNMAPPED;
	}
}

static uint64_t page_of(uint64_t address)
{
	return address & ~(uint64_t)(HEAP_PAGE - 1);
}

static uint64_t next_page(uint64_t address)
{
	return page_of(address + HEAP_PAGE - 1);
}

static void set_regions(struct heap_copy *copy, const struct memory_image *image)
{
	const struct heap_range free_range = { IMAGE_FREE, IMAGE_FREE + IMAGE_FREE_BYTES, false };
	struct heap_range *ranges = calloc(image->segment_count + 1, sizeof(*ranges));
	uint64_t end = 0;
	size_t count = 0;

	for (size_t i = 0; ranges && i < image->segment_count; i++) {
		const struct segment *segment = &image->segments[i];
		const uint64_t begin = page_of(segment->address);

		if (segment->address > IMAGE_FREE && end < free_range.end) {
			ranges[count++] = free_range;
			end = free_range.end;
		}
		ranges[count] = (struct heap_range){ begin > end ? begin : end,
						     next_page(segment->address + segment->length), false };
		end = ranges[count++].end;
	}
	if (ranges && end < free_range.end)
		ranges[count++] = free_range;
	if (ranges)
		heap_copy_set_regions(copy, ranges, count);
	free(ranges);
}

/* Every edge leads to a node, every text to bytes. */
static void check_graph(const struct heap_graph *graph)
{
	for (uint32_t i = 0; i < graph->node_count; i++) {
		const struct heap_node *node = &graph->nodes[i];

		fuzz_check(node->first_edge <= node[1].first_edge && node[1].first_edge <= graph->edge_count,
			   "edges are in order");
		fuzz_check(node->text < graph->texts_bytes && node->module < graph->texts_bytes,
			   "texts are there");
		fuzz_check(node->kind < HEAP_KIND_COUNT, "kinds are known");
	}
	for (uint32_t i = 0; i < graph->edge_count; i++) {
		fuzz_check(graph->edges[i].to < graph->node_count, "edges lead to nodes");
		fuzz_check(graph->edges[i].text < graph->texts_bytes, "texts are there");
		fuzz_check(graph->edges[i].hold < HEAP_HOLD_COUNT, "ways to hold are known");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = fuzz_input(data, size);
	uint8_t flags;
	struct memory_image *image = memory_image_choose("tests/fuzz/images/walk", &input, STRINGS, &flags);
	struct pages pages = { .memory.read_ranges = read_pages, .image = image };
	const struct heap_read_options options = { .strings = flags != 0 };
	struct heap_copy *copy = heap_copy_new(&pages.memory);
	struct heap_account account = { 0 };
	struct heap_graph graph;

	fuzz_check(copy != NULL, "there is memory");
	set_regions(copy, image);
	if (heap_read(copy, &image->vm, image->g, &options, &graph, &account) == 0) {
		check_graph(&graph);
		heap_graph_free(&graph);
	}
	heap_copy_free(copy);
	return 0;
}

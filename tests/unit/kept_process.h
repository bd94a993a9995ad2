/* SPDX-License-Identifier: MIT */
/*
 * kept_process: what was read of a LuaJIT process and what that told of itself, kept in a file.
 *
 * The files are in tests/unit/kept/. Memory is kept in blocks, so that the bytes near those that
 * were read can be read, too. What was not read is not mapped.
 *
 *	file = zstd("g ADDRESS LAYOUT_LENGTH TOLD_LENGTH BLOCKS\n"
 *		    layout_text_write() told (address:u64 byte{KEPT_BLOCK})*)
 */
#ifndef LJSPY_KEPT_PROCESS_H
#define LJSPY_KEPT_PROCESS_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "luajit-layouts/layout_text.h"
#include "memory/memory.h"

enum { KEPT_BLOCK = 64, KEPT_BLOCKS_MAX = 16384, KEPT_BYTES_MAX = 4 << 20, KEPT_LEVEL = 19 };

struct kept_block {
	uint64_t address;
	uint8_t bytes[KEPT_BLOCK];
};

struct kept_process {
	struct memory memory; /* first: what is read */
	struct memory *live;  /* while it is recorded; else NULL */
	struct layout layout;
	uint64_t g;
	char *told; /* what the program wrote */
	struct kept_block *blocks;
	size_t count;
};

static inline struct kept_block *kept_process_block(const struct kept_process *kept, uint64_t address)
{
	for (size_t i = 0; i < kept->count; i++)
		if (kept->blocks[i].address == address)
			return &kept->blocks[i];
	return NULL;
}

/* While it is recorded, a block that is read for the first time is read as a whole. */
static inline const struct kept_block *kept_process_read_block(struct kept_process *kept, uint64_t address)
{
	struct kept_block *block = kept_process_block(kept, address);

	if (block || !kept->live)
		return block;
	assert_in_range(kept->count, 0, KEPT_BLOCKS_MAX - 1);
	block = &kept->blocks[kept->count];
	block->address = address;
	if (memory_read(kept->live, address, block->bytes, KEPT_BLOCK) != MEMORY_OK)
		return NULL;
	kept->count++;
	return block;
}

static void kept_process_read(struct memory *memory, struct memory_range *ranges, size_t count)
{
	struct kept_process *kept = (struct kept_process *)memory;

	for (size_t i = 0; i < count; i++) {
		uint64_t end = ranges[i].address + ranges[i].length;

		ranges[i].status = end < ranges[i].address ? MEMORY_UNMAPPED : MEMORY_OK;
		for (uint64_t at = ranges[i].address; ranges[i].status == MEMORY_OK && at < end;) {
			uint64_t begin = at & ~(uint64_t)(KEPT_BLOCK - 1);
			const struct kept_block *block = kept_process_read_block(kept, begin);
			size_t length = begin + KEPT_BLOCK < end ? begin + KEPT_BLOCK - at : end - at;

			if (block)
				memcpy((uint8_t *)ranges[i].copy + (at - ranges[i].address),
				       block->bytes + (at - begin), length);
			else
				ranges[i].status = MEMORY_UNMAPPED;
			at += length;
		}
	}
}

static inline struct kept_process *kept_process_new(void)
{
	struct kept_process *kept = calloc(1, sizeof(*kept));

	assert_non_null(kept);
	kept->memory.read_ranges = kept_process_read;
	kept->blocks = calloc(KEPT_BLOCKS_MAX, sizeof(*kept->blocks));
	assert_non_null(kept->blocks);
	return kept;
}

static inline void kept_process_free(struct kept_process *kept)
{
	free(kept->told);
	free(kept->blocks);
	free(kept);
}

static inline void kept_process_save(const struct kept_process *kept, const char *name)
{
	char *packed = malloc(KEPT_BYTES_MAX), *layout = NULL, *whole = NULL, path[256];
	size_t layout_length = 0, length = 0;
	FILE *file = open_memstream(&layout, &layout_length);

	assert_true(file && packed);
	layout_text_write(&kept->layout, file);
	fclose(file);
	file = open_memstream(&whole, &length);
	fprintf(file, "g %" PRIx64 " %zu %zu %zu\n%s%s", kept->g, layout_length, strlen(kept->told),
		kept->count, layout, kept->told);
	fwrite(kept->blocks, sizeof(*kept->blocks), kept->count, file);
	fclose(file);
	length = ZSTD_compress(packed, KEPT_BYTES_MAX, whole, length, KEPT_LEVEL);
	assert_false(ZSTD_isError(length));
	snprintf(path, sizeof(path), "tests/unit/kept/%s", name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(packed, 1, length, file), length);
	fclose(file);
	free(packed);
	free(layout);
	free(whole);
}

static inline char *kept_process_text(FILE *file, size_t length)
{
	char *text = calloc(1, length + 1);

	assert_non_null(text);
	assert_int_equal(fread(text, 1, length, file), length);
	return text;
}

static inline struct kept_process *kept_process_load(const char *name)
{
	struct kept_process *kept = kept_process_new();
	char *packed = malloc(KEPT_BYTES_MAX), *whole = malloc(KEPT_BYTES_MAX), *layout, path[256];
	size_t length, layout_length, told_length;
	const char *reason;
	FILE *file;

	assert_true(packed && whole);
	snprintf(path, sizeof(path), "tests/unit/kept/%s", name);
	file = fopen(path, "r");
	assert_non_null(file);
	length = fread(packed, 1, KEPT_BYTES_MAX, file);
	fclose(file);
	length = ZSTD_decompress(whole, KEPT_BYTES_MAX, packed, length);
	assert_false(ZSTD_isError(length));
	file = fmemopen(whole, length, "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "g %" SCNx64 " %zu %zu %zu", &kept->g, &layout_length, &told_length,
				&kept->count),
			 4);
	assert_int_equal(getc(file), '\n');
	assert_in_range(kept->count, 1, KEPT_BLOCKS_MAX);
	layout = kept_process_text(file, layout_length);
	kept->told = kept_process_text(file, told_length);
	assert_int_equal(fread(kept->blocks, sizeof(*kept->blocks), kept->count, file), kept->count);
	fclose(file);
	file = fmemopen(layout, layout_length, "r");
	assert_non_null(file);
	assert_int_equal(layout_text_read(file, &kept->layout, &reason), 0);
	fclose(file);
	free(layout);
	free(packed);
	free(whole);
	return kept;
}

/* Write into what is kept. */
static inline void kept_process_put(struct kept_process *kept, uint64_t address, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++, value >>= 8) {
		struct kept_block *block = kept_process_block(kept,
							      (address + i) & ~(uint64_t)(KEPT_BLOCK - 1));

		if (block)
			block->bytes[(address + i) % KEPT_BLOCK] = (uint8_t)value;
		else
			fail();
	}
}

#endif

/* SPDX-License-Identifier: MIT */
/* Records in blocks of ljspy's own files: what is written is read, and what is damaged is told. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ZSTD_STATIC_LINKING_ONLY 1 /* ZSTD_sizeof_CCtx() */
#include <zstd.h>

#include "output/blocks/block_header.h"
#include "output/blocks/block_packer.h"
#include "output/blocks/block_reader.h"
#include "tests/unit/instead_of.h"

INSTEAD_OF(malloc);
INSTEAD_OF(calloc);
INSTEAD_OF(realloc);
INSTEAD_OF(ZSTD_createCCtx);
#include "tests/unit/failing_allocation.h"

/* The library allocates, too. */
ZSTD_CCtx *__wrap_ZSTD_createCCtx(void)
{
	return allocation_fails() ? NULL : __real_ZSTD_createCCtx();
}

/*---- Records ----*/

static void numbers_are_read_as_they_were_written(void **state)
{
	static const uint64_t numbers[] = { 0,         1,     127,        128,       300,
					    16383,     16384, UINT32_MAX, INT64_MAX, UINT64_C(1) << 63,
					    UINT64_MAX };
	enum { COUNT = sizeof(numbers) / sizeof(numbers[0]) };
	char bytes[256];
	struct record_sink sink = { .bytes = bytes };
	struct record_source source;
	uint64_t value;

	(void)state;
	for (size_t i = 0; i < COUNT; i++) {
		record_put_uint(&sink, numbers[i]);
		record_put_sint(&sink, (int64_t)numbers[i]);
	}
	source = (struct record_source){ (const uint8_t *)bytes, (const uint8_t *)bytes + sink.length };
	for (size_t i = 0; i < COUNT; i++) {
		assert_true(record_take_uint(&source, &value));
		assert_true(value == numbers[i]);
		assert_true(record_take_sint(&source, &value));
		assert_true(value == numbers[i]);
	}
	assert_ptr_equal(source.at, source.end);
	assert_false(record_take_uint(&source, &value));
	assert_false(record_take_sint(&source, &value));
}

static void numbers_have_the_bytes_of_the_format(void **state)
{
	static const int64_t numbers[] = { 0, -1, 1, -2, 64 };
	char bytes[64];
	struct record_sink sink = { .bytes = bytes };

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		record_put_sint(&sink, numbers[i]);
	record_put_uint(&sink, 300);
	assert_int_equal(sink.length, 8);
	assert_memory_equal(bytes, "\x00\x01\x02\x03\x80\x01\xac\x02", 8);
}

static void numbers_that_end_too_late_are_damaged(void **state)
{
	static const struct {
		const char *bytes;
		size_t length;
		bool is_good;
	} known[] = {
		{ "\xff", 1, false },
		{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, true },
		{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10, false }, /* more than 64 bits */
		{ "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x81\x00", 11, false },
		{ "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 10, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const uint8_t *bytes = (const uint8_t *)known[i].bytes;
		struct record_source source = { bytes, bytes + known[i].length };
		uint64_t value = 77;

		assert_int_equal(record_take_uint(&source, &value), known[i].is_good);
		if (!known[i].is_good)
			assert_int_equal(value, 77);
	}
}

static void numbers_have_a_maximum(void **state)
{
	static const uint8_t bytes[] = { 7, 8, 0x80 };
	struct record_source source = { bytes, bytes + sizeof(bytes) };
	uint32_t number = 0;

	(void)state;
	assert_true(record_take_number(&source, 7, &number));
	assert_int_equal(number, 7);
	assert_false(record_take_number(&source, 7, &number));
	assert_false(record_take_number(&source, 7, &number));
	assert_int_equal(number, 7);
}

static void texts_are_cut_at_their_maximum(void **state)
{
	char bytes[64];
	struct record_sink sink = { .bytes = bytes };
	struct record_source source;
	const char *text;
	size_t length;

	(void)state;
	assert_int_equal(record_put_text(&sink, 3, "abcd"), 3);
	assert_int_equal(record_put_text(&sink, 3, ""), 0);
	source = (struct record_source){ (const uint8_t *)bytes, (const uint8_t *)bytes + sink.length };
	assert_true(record_take_text(&source, 3, &text, &length));
	assert_int_equal(length, 3);
	assert_memory_equal(text, "abc", 3);
	assert_true(record_take_text(&source, 0, &text, &length));
	assert_int_equal(length, 0);
	assert_ptr_equal(source.at, source.end);
	assert_false(record_take_text(&source, 3, &text, &length));
}

static void texts_that_are_too_long_or_have_a_nul_are_damaged(void **state)
{
	static const char *const known[] = { "\x04"
					     "abcd",
					     "\x03"
					     "ab",
					     "\x03"
					     "a\0b" };
	static const size_t lengths[] = { 5, 3, 4 };
	const char *text;
	size_t length;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		const uint8_t *bytes = (const uint8_t *)known[i];
		struct record_source source = { bytes, bytes + lengths[i] };

		assert_false(record_take_text(&source, 3, &text, &length));
	}
}

/*---- Headers ----*/

static const char magic[] = BLOCK_MAGIC("abc");

/* What is read of a header with a change of one byte, or of a part of it. */
static int read_changed(size_t at, char change, size_t length, uint32_t *ret_version)
{
	char header[BLOCK_HEADER_SIZE];
	FILE *in;
	int result;

	block_header_make(magic, 0x01020304, header);
	header[at] = (char)(header[at] ^ change);
	in = fmemopen(header, length, "r");
	assert_non_null(in);
	result = block_header_read(in, magic, 0x01020304, ret_version);
	fclose(in);
	return result;
}

static void a_header_has_its_kind_and_version(void **state)
{
	char header[BLOCK_HEADER_SIZE];
	uint32_t version = 0;

	(void)state;
	block_header_make(magic, 0x01020304, header);
	assert_memory_equal(header, "\x5c\x2a\x4d\x18\x0c\0\0\0LJSPYabc\x04\x03\x02\x01", BLOCK_HEADER_SIZE);
	assert_int_equal(read_changed(0, 0, BLOCK_HEADER_SIZE, &version), 0);
	assert_int_equal(version, 0x01020304);
	/* An older one. */
	assert_int_equal(read_changed(BLOCK_VERSION_OFFSET + 3, 1, BLOCK_HEADER_SIZE, &version), 0);
	assert_int_equal(version, 0x00020304);
}

static void files_of_other_kinds_and_of_newer_versions_are_refused(void **state)
{
	FILE *directory = fopen("/", "r");
	uint32_t version = 77;
	char header[BLOCK_HEADER_SIZE];
	FILE *in;

	(void)state;
	for (size_t i = 0; i < BLOCK_VERSION_OFFSET; i++)
		assert_int_equal(read_changed(i, 1, BLOCK_HEADER_SIZE, &version), -EILSEQ);
	assert_int_equal(read_changed(0, 0, BLOCK_HEADER_SIZE - 1, &version), -EILSEQ);
	assert_int_equal(read_changed(BLOCK_VERSION_OFFSET, 1, BLOCK_HEADER_SIZE, &version),
			 -EPROTONOSUPPORT);
	block_header_make(magic, 0, header);
	in = fmemopen(header, sizeof(header), "r");
	assert_non_null(in);
	assert_int_equal(block_header_read(in, magic, 5, &version), -EILSEQ);
	fclose(in);
	assert_non_null(directory);
	assert_int_equal(block_header_read(directory, magic, 5, &version), -EIO);
	fclose(directory);
	assert_int_equal(version, 77);
}

/*---- Blocks ----*/

enum { BLOCKS = 7 };

/* Bytes that do not get smaller, others in each block, so that the file is longer than any buffer. */
static void fill(char *bytes, size_t length, uint32_t seed)
{
	for (size_t i = 0; i < length; i++) {
		seed = seed * 1664525 + 1013904223;
		bytes[i] = (char)(seed >> 24);
	}
}

/* The last block is small. */
static size_t length_of(size_t block)
{
	return block == BLOCKS - 1 ? 100 : BLOCK_BYTES_MAX;
}

static FILE *made_up_file(size_t ret_ends[static BLOCKS])
{
	struct block_packer packer;
	FILE *file = tmpfile();

	assert_non_null(file);
	assert_int_equal(block_packer_init(&packer, BLOCK_BYTES_MAX, 1), 0);
	for (uint32_t i = 0; i < BLOCKS; i++) {
		size_t length;

		fill(packer.block.bytes, length_of(i), i);
		packer.block.length = length_of(i);
		length = block_packer_pack(&packer);
		assert_true(length > 0);
		assert_int_equal(packer.block.length, 0);
		assert_int_equal(fwrite(packer.packed, 1, length, file), length);
		ret_ends[i] = (size_t)ftell(file);
	}
	block_packer_clear(&packer);
	rewind(file);
	return file;
}

static bool holds_block(const struct block_reader *reader, uint32_t block)
{
	static char wanted[BLOCK_BYTES_MAX];
	size_t length = length_of(block);

	fill(wanted, length, block);
	return (size_t)(reader->block.end - reader->block.at) == length &&
	       memcmp(reader->block.at, wanted, length) == 0;
}

static void blocks_are_read_as_they_were_written(void **state)
{
	struct block_reader reader;
	size_t ends[BLOCKS];
	FILE *file = made_up_file(ends);

	(void)state;
	assert_int_equal(block_reader_init(&reader, file), 0);
	assert_ptr_equal(reader.block.at, reader.block.end);
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < BLOCKS; i++) {
			assert_int_equal(block_reader_next(&reader), 1);
			assert_true(holds_block(&reader, i));
		}
		assert_int_equal(block_reader_next(&reader), 0);
		assert_int_equal(block_reader_next(&reader), 0);
		rewind(file);
		block_reader_restart(&reader);
		assert_ptr_equal(reader.block.at, reader.block.end);
	}
	/* From one in the middle, after a part of the file was read. */
	assert_int_equal(block_reader_next(&reader), 1);
	assert_int_equal(fseek(file, (long)ends[3], SEEK_SET), 0);
	block_reader_restart(&reader);
	assert_int_equal(block_reader_next(&reader), 1);
	assert_true(holds_block(&reader, 4));
	block_reader_clear(&reader);
	fclose(file);
}

/* The result of reading so many bytes of the file to its end; *ret_blocks are read before. */
static int read_part(FILE *file, size_t length, uint32_t *ret_blocks)
{
	char *bytes = malloc(length + 1);
	struct block_reader reader;
	FILE *in;
	int result;

	assert_non_null(bytes);
	rewind(file);
	assert_int_equal(fread(bytes, 1, length, file), length);
	in = fmemopen(bytes, length, "r");
	assert_non_null(in);
	assert_int_equal(block_reader_init(&reader, in), 0);
	*ret_blocks = 0;
	while ((result = block_reader_next(&reader)) == 1)
		++*ret_blocks;
	block_reader_clear(&reader);
	fclose(in);
	free(bytes);
	return result;
}

static void a_file_that_is_still_written_ends_before_its_last_block(void **state)
{
	size_t ends[BLOCKS];
	FILE *file = made_up_file(ends);
	uint32_t blocks;

	(void)state;
	assert_int_equal(read_part(file, ends[1] - 1, &blocks), 0);
	assert_int_equal(blocks, 1);
	assert_int_equal(read_part(file, ends[1], &blocks), 0);
	assert_int_equal(blocks, 2);
	for (size_t more = 1; more < 20; more++) {
		assert_int_equal(read_part(file, ends[1] + more, &blocks), 0);
		assert_int_equal(blocks, 2);
	}
	fclose(file);
}

/* The result for a file of one block. */
static int read_bytes(const void *bytes, size_t length)
{
	struct block_reader reader;
	FILE *in = fmemopen((void *)(uintptr_t)bytes, length, "r");
	int result;

	assert_non_null(in);
	assert_int_equal(block_reader_init(&reader, in), 0);
	result = block_reader_next(&reader);
	block_reader_clear(&reader);
	fclose(in);
	return result;
}

static void without_memory_there_is_no_packer(void **state)
{
	size_t count = 0;

	(void)state;
	for (bool failed = true; failed; count++) {
		struct block_packer packer;
		int error;

		allocation_fails_after(count);
		error = block_packer_init(&packer, 1000, 3);
		failed = allocation_failed();
		assert_int_equal(error, failed ? -ENOMEM : 0);
		block_packer_clear(&packer);
	}
	/* For a block, for what it is packed into, and for the library. */
	assert_int_equal(count, 3 + 1);
}

/* A recording goes on for days beside its target: what a long block has once taken stays taken. */
static void packing_takes_little_memory_whatever_the_block(void **state)
{
	enum { MEMORY_MAX = 512 << 10, LEVEL_OF_RECORDINGS = 6 };
	static const size_t lengths[] = { 100, 16 << 10, 128 << 10, 256 << 10, BLOCK_BYTES_MAX };
	struct block_packer packer;

	(void)state;
	assert_int_equal(block_packer_init(&packer, BLOCK_BYTES_MAX, LEVEL_OF_RECORDINGS), 0);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		fill(packer.block.bytes, lengths[i], 5);
		packer.block.length = lengths[i];
		assert_int_not_equal(block_packer_pack(&packer), 0);
		assert_in_range(ZSTD_sizeof_CCtx(packer.zstd), 1, MEMORY_MAX);
	}
	block_packer_clear(&packer);
}

static void damaged_blocks_are_told(void **state)
{
	struct block_packer packer;
	size_t length;

	(void)state;
	assert_int_equal(block_packer_init(&packer, 1000, 3), 0);
	fill(packer.block.bytes, 1000, 5);
	packer.block.length = 1000;
	length = block_packer_pack(&packer);
	assert_int_equal(read_bytes(packer.packed, length), 1);
	/* Its content has a checksum; without its magic number, it is no block. */
	for (size_t i = 0; i < 2; i++) {
		packer.packed[i ? length / 2 : 0] ^= 1;
		assert_int_equal(read_bytes(packer.packed, length), -EBADMSG);
		packer.packed[i ? length / 2 : 0] ^= 1;
	}
	/* Not even a cut one. */
	packer.packed[1] ^= 1;
	assert_int_equal(read_bytes(packer.packed, 3), -EBADMSG);
	assert_int_equal(read_bytes(packer.packed + 1, 1), -EBADMSG);
	block_packer_clear(&packer);
}

static void blocks_that_are_empty_or_too_long_or_do_not_tell_are_damaged(void **state)
{
	enum { TOO_LONG = BLOCK_BYTES_MAX + 1 };
	static char content[TOO_LONG], packed[TOO_LONG + 1024];
	ZSTD_CCtx *zstd = ZSTD_createCCtx();

	(void)state;
	assert_non_null(zstd);
	assert_int_equal(
		read_bytes(packed, ZSTD_compress2(zstd, packed, sizeof(packed), content, BLOCK_BYTES_MAX)),
		1);
	assert_int_equal(read_bytes(packed, ZSTD_compress2(zstd, packed, sizeof(packed), content, TOO_LONG)),
			 -EBADMSG);
	assert_int_equal(read_bytes(packed, ZSTD_compress2(zstd, packed, sizeof(packed), content, 0)),
			 -EBADMSG);
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_contentSizeFlag, 0);
	assert_int_equal(read_bytes(packed, ZSTD_compress2(zstd, packed, sizeof(packed), content, 100)),
			 -EBADMSG);
	ZSTD_freeCCtx(zstd);
}

static void what_cannot_be_read_is_told(void **state)
{
	FILE *directory = fopen("/", "r");
	struct block_reader reader;

	(void)state;
	assert_non_null(directory);
	assert_int_equal(block_reader_init(&reader, directory), 0);
	assert_int_equal(block_reader_next(&reader), -EIO);
	block_reader_clear(&reader);
	fclose(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_read_as_they_were_written),
		cmocka_unit_test(numbers_have_the_bytes_of_the_format),
		cmocka_unit_test(numbers_that_end_too_late_are_damaged),
		cmocka_unit_test(numbers_have_a_maximum),
		cmocka_unit_test(texts_are_cut_at_their_maximum),
		cmocka_unit_test(texts_that_are_too_long_or_have_a_nul_are_damaged),
		cmocka_unit_test(a_header_has_its_kind_and_version),
		cmocka_unit_test(files_of_other_kinds_and_of_newer_versions_are_refused),
		cmocka_unit_test(blocks_are_read_as_they_were_written),
		cmocka_unit_test(a_file_that_is_still_written_ends_before_its_last_block),
		cmocka_unit_test(without_memory_there_is_no_packer),
		cmocka_unit_test(packing_takes_little_memory_whatever_the_block),
		cmocka_unit_test(damaged_blocks_are_told),
		cmocka_unit_test(blocks_that_are_empty_or_too_long_or_do_not_tell_are_damaged),
		cmocka_unit_test(what_cannot_be_read_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

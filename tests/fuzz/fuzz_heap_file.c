/* SPDX-License-Identifier: MIT */
/*
 * Heap files. The first byte says whether the rest is a file, or the records of one. Whatever is read can be
 * shown in every format.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "output/heap/heap_builder.h"
#include "output/heap/heap_file.h"
#include "output/heap_reports/heap_report.h"
#include "tests/fuzz/fuzz.h"

enum { MEMORY_MAX = 1 << 24 };

/* A whole file with these records. */
static FILE *file_of_records(const uint8_t *records, size_t length)
{
	char header[BLOCK_HEADER_SIZE] = HEAP_FILE_MAGIC;
	size_t room = sizeof(header) + ZSTD_compressBound(length), packed;
	uint8_t *bytes = malloc(room);
	FILE *file;

	fuzz_check(bytes != NULL, "there is memory");
	header[BLOCK_VERSION_OFFSET] = HEAP_FILE_VERSION;
	memcpy(bytes, header, sizeof(header));
	packed = ZSTD_compress(bytes + sizeof(header), room - sizeof(header), records, length, 1);
	fuzz_check(!ZSTD_isError(packed), "records can be packed");
	file = fuzz_stream(bytes, sizeof(header) + packed);
	free(bytes);
	return file;
}

static void show(const struct heap_subject *subjects, size_t count)
{
	const struct heap_side side = { .subjects = subjects, .count = count };
	const struct heap_view view = { .strings = true };

	for (size_t i = 0; i < heap_format_count; i++) {
		FILE *out = fopen("/dev/null", "w");

		fuzz_check(out != NULL, "/dev/null can be written to");
		fuzz_check(heap_formats[i].write(out, &side, &view) == 0, "every heap can be shown");
		if (heap_formats[i].compare)
			fuzz_check(heap_formats[i].compare(out, &side, &side, &view) == 0,
				   "every heap can be compared");
		fclose(out);
	}
}

static void read_all(struct heap_file_reader *reader)
{
	struct heap_subject subject;
	struct heap_account account;
	struct heap_graph graph;
	int result;

	while ((result = heap_file_reader_next(reader, &graph, &account)) == 1) {
		fuzz_check(heap_subject_make(&graph, &account, true, &subject) == 0, "it can be analysed");
		show(&subject, 1);
		heap_subject_clear(&subject);
		heap_file_account_clear(&account);
	}
	fuzz_check(result == 0 || result == -EBADMSG || result == -ENOMEM, "it ends, or is damaged");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct heap_file_reader *reader;
	FILE *in;

	if (size < 2)
		return 0;
	in = data[0] & 1 ? file_of_records(data + 1, size - 1) : fuzz_stream(data + 1, size - 1);
	if (heap_file_reader_new(in, MEMORY_MAX, &reader) == 0) {
		read_all(reader);
		heap_file_reader_free(reader);
	}
	fclose(in);
	return 0;
}

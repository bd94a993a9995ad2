/* SPDX-License-Identifier: MIT */
/*
 * Recordings, through every format that they can be written in.
 *
 *	input = format:u8 view:u8 count:u8 rest
 *
 * An odd view takes the rest as the file. An even one takes it as records: they
 * are put in count blocks behind a header, for no mutation makes a checksum.
 */
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "output/formats/format.h"
#include "output/formats/text_report.h"
#include "output/recording/recording_format.h"
#include "output/recording/recording_reader.h"
#include "output/reports/request_life.h"
#include "output/views/comparison.h"
#include "output/views/filter.h"
#include "tests/fuzz/fuzz.h"

enum {
	BLOCKS_MAX = 4,
	FILE_BYTES_MAX = 1 << 20,
	SAMPLES_SHOWN_MAX = 2000, /* of more, formats take long */
};

/* Bits of view. */
enum {
	VIEW_RAW = 1,
	VIEW_LINES = 2,
	VIEW_ANNOTATE = 4,
	VIEW_INVERTED = 8,
	VIEW_WALL = 16,
	VIEW_FILTER = 32,
	VIEW_ALLOC = 64, /* bytes, and with VIEW_WALL objects */
};

static size_t add_block(ZSTD_CCtx *zstd, const uint8_t *records, size_t length, uint8_t *file, size_t size)
{
	size_t packed;

	ZSTD_CCtx_reset(zstd, ZSTD_reset_session_and_parameters);
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1);
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, -5);
	packed = ZSTD_compress2(zstd, file, size, records, length);
	fuzz_check(!ZSTD_isError(packed), "records can be packed");
	return packed;
}

/* The records as a recording; the length of it. */
static size_t pack(const uint8_t *records, size_t length, size_t blocks, uint8_t *file)
{
	ZSTD_CCtx *zstd = ZSTD_createCCtx();
	size_t size = BLOCK_HEADER_SIZE, each = length / blocks;

	fuzz_check(zstd != NULL, "records can be packed");
	memcpy(file, RECORDING_MAGIC, BLOCK_VERSION_OFFSET);
	memcpy(file + BLOCK_VERSION_OFFSET, (const uint8_t[4]){ RECORDING_VERSION }, 4);
	for (size_t i = 0; i < blocks; i++) {
		size_t part = i + 1 < blocks ? each : length - i * each;

		size += add_block(zstd, records + i * each, part, file + size, FILE_BYTES_MAX - size);
	}
	ZSTD_freeCCtx(zstd);
	return size;
}

static unsigned int count_of(const char *text, const char *part)
{
	unsigned int count = 0;

	for (; (text = strstr(text, part)); text += strlen(part))
		count++;
	return count;
}

static void check_text(const char *text, size_t length, const struct format *format)
{
	if (format && (format->recording || strcmp(format->name, "pprof") == 0))
		return;
	fuzz_check(fuzz_is_clean(text, length), "what is written is clean");
	/* A page has one script, and no name can end it or begin another one. */
	if (format && format->picture)
		fuzz_check(count_of(text, "<script") == 1 && count_of(text, "</script") == 1,
			   "names do not end the script");
}

/* Written in the format of this number, or as a report, or compared with itself. */
static void write_format(size_t number, struct sample_source *source, const struct recording_reader *reader,
			 const struct view *view)
{
	const struct session *session = recording_reader_session(reader);
	const struct figures *figures = recording_reader_figures(reader);
	const struct side side = { "input", source, session, figures };
	const struct format *format = NULL;
	size_t length = 0;
	char *text = NULL;
	FILE *out = open_memstream(&text, &length);

	fuzz_check(out != NULL, "memory can be written to");
	number %= 2 * format_count + 2;
	if (number < format_count) {
		format = &formats[number];
		format->write(out, source, session, figures, view);
	} else if (number < 2 * format_count) {
		format = &formats[number - format_count];
		if (format->compare)
			format->compare(out, &side, &side, view);
		else
			format = NULL;
	} else if (number == 2 * format_count) {
		text_report_write(out, source, session, figures, view);
	} else {
		comparison_write(out, &side, &side, view);
	}
	fclose(out);
	check_text(text, length, length ? format : NULL);
	free(text);
}

/* The life of the first request that a sample has. */
static void write_life(struct sample_source *source, const struct recording_reader *reader)
{
	const struct session *session = recording_reader_session(reader);
	struct request_life life = { 0 };
	struct sample sample;
	size_t length = 0;
	char *text = NULL;
	FILE *out;

	while (life.number == 0 && source->next(source, &sample) > 0) {
		life.connection = sample.request.connection;
		life.number = sample.request.number;
	}
	if (source->rewind(source) || life.number == 0)
		return;
	out = open_memstream(&text, &length);
	fuzz_check(out != NULL, "memory can be written to");
	request_life_read(source, session, recording_reader_figures(reader), &life);
	for (size_t i = 0; i < life.count; i++)
		fuzz_check(life.steps[i].start_ns <= life.steps[i].end_ns &&
				   life.steps[i].end_ns <= life.last_ns,
			   "a step is within the request's life");
	request_life_print(out, &life, session);
	request_life_write_json(out, &life, session);
	fclose(out);
	check_text(text, length, NULL);
	request_life_clear(&life);
	free(text);
}

static enum weight_kind weight_of_view(uint8_t bits)
{
	if (bits & VIEW_ALLOC)
		return bits & VIEW_WALL ? WEIGHT_ALLOC_OBJECTS : WEIGHT_ALLOC_BYTES;
	return bits & VIEW_WALL ? WEIGHT_WALL_TIME : WEIGHT_CPU_TIME;
}

static void show(struct recording_reader *reader, struct functions *functions, uint8_t number, uint8_t bits)
{
	const struct filter_options options = {
		.merge_recursion = true,
		.group = (enum filter_group)(number % GROUP_COUNT),
		.without_line = number & 1,
		.without_root = number & 2,
	};
	const struct view view = {
		.weight = weight_of_view(bits),
		.by_line = bits & VIEW_LINES,
		.annotate = bits & VIEW_ANNOTATE,
		.inverted = bits & VIEW_INVERTED,
	};
	struct sample_source *samples = recording_reader_samples(reader);
	struct filter *filter = NULL;

	if (recording_reader_figures(reader)->samples > SAMPLES_SHOWN_MAX)
		return;
	if (bits & VIEW_FILTER) {
		filter = filter_new(samples, functions, &options);
		fuzz_check(filter != NULL, "there is memory");
		samples = filter_samples(filter);
	}
	write_format(number, samples, reader, &view);
	write_life(samples, reader);
	filter_free(filter);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t file[FILE_BYTES_MAX];
	struct fuzz_input input = fuzz_input(data, size);
	uint8_t number = (uint8_t)fuzz_take(&input, 1), bits = (uint8_t)fuzz_take(&input, 1);
	size_t blocks = 1 + fuzz_take(&input, 1) % BLOCKS_MAX, length = fuzz_left(&input);
	struct functions *functions;
	struct recording_reader *reader;
	FILE *in;

	if (length == 0 || length > FILE_BYTES_MAX / 2)
		return 0;
	if (!(bits & VIEW_RAW))
		length = pack(input.at, length, blocks, file);
	else
		memcpy(file, input.at, length);
	functions = functions_new();
	in = fuzz_stream(file, length);
	fuzz_check(functions != NULL, "there is memory");
	if (recording_reader_open(in, functions, &reader) == 0) {
		show(reader, functions, number, bits);
		recording_reader_close(reader);
	}
	fclose(in);
	functions_free(functions);
	return 0;
}

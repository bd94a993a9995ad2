/* SPDX-License-Identifier: MIT */
#include "output/recording/recording_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/recording/recording_reader_parts.h"

static int read_pauses(struct recording_reader *reader)
{
	struct histogram pauses = { 0 };
	uint32_t count, bucket = 0;

	if (!record_take_uint(reader->block, &pauses.max) ||
	    !record_take_number(reader->block, HISTOGRAM_BUCKETS, &count))
		return READ_DAMAGED;
	for (; count > 0; count--, bucket++) {
		uint32_t skipped;

		if (!record_take_number(reader->block, HISTOGRAM_BUCKETS, &skipped) ||
		    bucket + skipped >= HISTOGRAM_BUCKETS)
			return READ_DAMAGED;
		bucket += skipped;
		if (!record_take_uint(reader->block, &pauses.buckets[bucket]) ||
		    pauses.buckets[bucket] > UINT64_MAX - pauses.count)
			return READ_DAMAGED;
		pauses.count += pauses.buckets[bucket];
	}
	if (reader->opening)
		reader->figures.pause_ns = pauses;
	return READ_ON;
}

static int read_record(struct recording_reader *reader, struct sample *ret_sample)
{
	switch ((enum recording_tag) * reader->block->at++) {
	case RECORD_STRING: return recording_read_string(reader);
	case RECORD_FUNCTION: return recording_read_function(reader);
	case RECORD_STACK: return recording_read_stack(reader);
	case RECORD_THREAD: return recording_read_thread(reader);
	case RECORD_SAMPLE: return recording_read_sample(reader, ret_sample);
	case RECORD_PROPERTY: return recording_read_property(reader);
	case RECORD_PAUSES: return read_pauses(reader);
	case RECORD_FORGET: recording_forget(reader); return READ_ON;
	case RECORD_REQUEST: return recording_read_request(reader);
	case RECORD_END: reader->ended = true; return READ_END;
	default: return READ_DAMAGED;
	}
}

/* Unpack the next block. READ_ON, READ_END, READ_DAMAGED or a negative errno. */
static int next_block(struct recording_reader *reader)
{
	int result = block_reader_next(&reader->blocks);

	if (result > 0)
		return READ_ON;
	if (result == 0)
		return READ_END;
	return result == -EBADMSG ? READ_DAMAGED : result;
}

/* READ_SAMPLE, READ_END, READ_DAMAGED or a negative errno. */
static int read_to_sample(struct recording_reader *reader, struct sample *ret_sample)
{
	int result = READ_ON;

	while (result == READ_ON)
		result = reader->block->at < reader->block->end ? read_record(reader, ret_sample)
								: next_block(reader);
	return result;
}

/* 0, -EIO, -EILSEQ or -EPROTONOSUPPORT. */
static int read_header(struct recording_reader *reader)
{
	FILE *in = reader->blocks.in;

	block_reader_restart(&reader->blocks);
	clearerr(in);
	if (fseeko(in, 0, SEEK_SET))
		return -EIO;
	return block_header_read(in, RECORDING_MAGIC, RECORDING_VERSION, &reader->version);
}

static bool allocate(struct recording_reader *reader)
{
	struct tables *tables = &reader->tables;

	tables->strings = calloc(RECORDING_STRINGS_MAX, sizeof(*tables->strings));
	tables->names = calloc(RECORDING_STRINGS_MAX, sizeof(const char *));
	tables->text = malloc(TEXT_SIZE);
	tables->functions = calloc(RECORDING_FUNCTIONS_MAX, sizeof(const struct function *));
	tables->stacks = calloc(RECORDING_STACKS_MAX, sizeof(*tables->stacks));
	tables->threads = calloc(RECORDING_THREADS_MAX, sizeof(*tables->threads));
	return block_reader_init(&reader->blocks, reader->in) == 0 && tables->strings && tables->names &&
	       tables->text && tables->functions && tables->stacks && tables->threads &&
	       stack_cache_init(&reader->expanded) == 0;
}

/* Free what only reading samples needs. */
static void rest(struct recording_reader *reader)
{
	block_reader_clear(&reader->blocks);
	free(reader->tables.strings);
	free(reader->tables.names);
	free(reader->tables.text);
	free(reader->tables.functions);
	free(reader->tables.stacks);
	free(reader->tables.threads);
	reader->tables = (struct tables){ 0 };
	stack_cache_clear(&reader->expanded);
	free(reader->frames);
	reader->frames = NULL;
	reader->frames_size = 0;
	reader->resting = true;
}

/* Begin to read samples, from the first on. 0 or a negative errno. */
static int begin_samples(struct recording_reader *reader)
{
	int error = reader->resting && !allocate(reader) ? -ENOMEM : 0;

	if (error) {
		rest(reader);
		return error;
	}
	reader->resting = false;
	recording_forget(reader);
	stack_cache_forget(&reader->expanded);
	reader->forgotten = 0;
	reader->last_ns = 0;
	reader->samples_read = 0;
	reader->request = (struct sample_request){ 0 };
	return read_header(reader);
}

static int next_sample(struct sample_source *source, struct sample *ret_sample)
{
	struct recording_reader *reader = (struct recording_reader *)source;
	int result;

	/* Stop where opening stopped: the file may have grown since, or be damaged after that. */
	if (reader->samples_read == reader->sample_count) {
		if (!reader->resting)
			rest(reader);
		return 0;
	}
	result = reader->resting ? begin_samples(reader) : 0;
	if (result == 0)
		result = read_to_sample(reader, ret_sample);
	if (result < 0)
		return result;
	if (result != READ_SAMPLE) {
		errno = EIO; /* the file has changed since it was opened */
		return -EIO;
	}
	reader->samples_read++;
	return 1;
}

static int rewind_samples(struct sample_source *source)
{
	struct recording_reader *reader = (struct recording_reader *)source;

	if (!reader->resting)
		return begin_samples(reader);
	reader->samples_read = 0;
	return 0;
}

/* Compute the figures that follow from the samples, and those of a missing end record. */
static void set_open_figures(struct recording_reader *reader)
{
	struct figures *figures = &reader->figures;
	uint64_t start_ns = reader->session.start_ns ? reader->session.start_ns : reader->first_ns;

	if (!reader->ended) {
		figures->is_unfinished = true;
		figures->target_cpu_ns = reader->cpu_ns;
		figures->duration_ns = reader->last_ns > start_ns ? reader->last_ns - start_ns : 0;
	}
	figures->lost_cpu_unknown = !weight_is_time(reader->session.clock);
	figures->target_cpu_unknown = figures->lost_cpu_unknown && figures->target_cpu_ns == 0;
	figures->alloc_large_unknown = weights[reader->session.clock].clock == WEIGHT_ALLOC_BYTES &&
				       !reader->has_large;
	figures_set_rate(figures, recording_reader_clocked_ns(reader));
	reader->session.duration_ns = figures->duration_ns;
}

/* Note the package roots of the session. False when memory is short. */
static bool note_session_roots(struct recording_reader *reader)
{
	const char *at = reader->session.roots, *end;

	for (; at && (end = strchr(at, ';')); at = end + 1) {
		char *file = NULL;
		bool good;

		if (end == at)
			continue;
		if (asprintf(&file, "@%.*s", (int)(end - at), at) < 0)
			return false;
		good = recording_note_root(
			reader, &(struct function){ .file = file, .root = (uint32_t)strlen(file) });
		free(file);
		if (!good)
			return false;
	}
	return true;
}

/* Set the extent, after reading has ended with that result. 0 or a negative errno. */
static int set_extent(struct recording_reader *reader, int result)
{
	int at_end = 1;

	if (result == READ_DAMAGED)
		reader->extent = RECORDING_DAMAGED;
	else if (!reader->ended)
		reader->extent = RECORDING_UNFINISHED;
	else
		at_end = block_reader_at_end(&reader->blocks);
	if (at_end == 0)
		reader->extent = RECORDING_FOLLOWED;
	return at_end < 0 ? at_end : 0;
}

static int read_all(struct recording_reader *reader)
{
	struct sample sample;
	int result = begin_samples(reader);

	if (result)
		return result;
	reader->opening = true;
	while ((result = read_to_sample(reader, &sample)) == READ_SAMPLE) {
		if (reader->sample_count++ == 0)
			reader->first_ns = sample.time_ns;
		reader->cpu_ns += sample.cpu_ns;
		reader->wall_ns += sample.wall_ns;
	}
	reader->opening = false;
	if (result >= 0)
		result = set_extent(reader, result);
	if (result)
		return result;
	if (!note_session_roots(reader))
		return -ENOMEM;
	set_open_figures(reader);
	rest(reader);
	reader->samples_read = 0;
	return 0;
}

int recording_reader_open(FILE *in, struct functions *functions, struct recording_reader **ret_reader)
{
	struct recording_reader *reader = calloc(1, sizeof(*reader));
	int error;

	if (!reader)
		return -ENOMEM;
	reader->source.next = next_sample;
	reader->source.rewind = rewind_samples;
	reader->functions = functions;
	reader->block = &reader->blocks.block;
	reader->in = in;
	reader->resting = true;
	error = read_all(reader);
	if (error) {
		recording_reader_close(reader);
		return error;
	}
	*ret_reader = reader;
	return 0;
}

void recording_reader_close(struct recording_reader *reader)
{
	if (!reader)
		return;
	HASH_FREE_ALL(reader->labels);
	HASH_FREE_ALL(reader->names);
	if (!reader->resting)
		rest(reader);
	free(reader);
}

struct sample_source *recording_reader_samples(struct recording_reader *reader)
{
	return &reader->source;
}

const char *recording_reader_labels(const struct recording_reader *reader, pid_t pid)
{
	const struct process_labels *labels;

	HASH_FIND_INT(reader->labels, &pid, labels);
	return labels ? labels->text : NULL;
}

uint64_t recording_reader_first_ns(const struct recording_reader *reader)
{
	return reader->first_ns;
}

enum recording_extent recording_reader_extent(const struct recording_reader *reader)
{
	return reader->extent;
}

const struct session *recording_reader_session(const struct recording_reader *reader)
{
	return &reader->session;
}

const struct figures *recording_reader_figures(const struct recording_reader *reader)
{
	return &reader->figures;
}

uint64_t recording_reader_clocked_ns(const struct recording_reader *reader)
{
	return weight_clocked_ns(reader->session.clock, reader->figures.target_cpu_ns, reader->wall_ns);
}

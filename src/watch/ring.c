/* SPDX-License-Identifier: MIT */
#include "src/watch/ring.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory/memory_file.h"
#include "output/recording/recording_reader.h"
#include "output/recording/recording_writer.h"
#include "output/sample/functions.h"

/* One of the recordings. */
struct part {
	FILE *stream;
	uint64_t begin_ns;
	struct figures before;
	size_t bytes; /* of those that have ended */
};

struct ring {
	struct ring_options options;
	struct part parts[RING_PARTS + 1]; /* the oldest first; the writer's is the last */
	size_t count;
	struct recording_writer *writer; /* NULL without any part */
	int error;                       /* a negative errno: why it writes no more; 0 */
};

struct ring *ring_new(const struct ring_options *options)
{
	struct ring *ring = calloc(1, sizeof(*ring));

	if (ring)
		ring->options = *options;
	return ring;
}

void ring_free(struct ring *ring)
{
	if (!ring)
		return;
	ring_clear(ring);
	free(ring);
}

static void drop_oldest(struct ring *ring)
{
	fclose(ring->parts[0].stream);
	ring->count--;
	memmove(ring->parts, ring->parts + 1, ring->count * sizeof(ring->parts[0]));
}

void ring_clear(struct ring *ring)
{
	recording_writer_free(ring->writer);
	ring->writer = NULL;
	ring->error = 0;
	while (ring->count)
		drop_oldest(ring);
}

/* Bytes that were written to the last part. */
static size_t written(const struct ring *ring)
{
	off_t end = ring->count ? ftello(ring->parts[ring->count - 1].stream) : 0;

	return end > 0 ? (size_t)end : 0;
}

/* What the writer returned, with the file's own error, which errno has the first time, in place of -EIO. */
static int written_error(struct ring *ring, int error)
{
	if (error != -EIO)
		return error;
	if (!ring->error)
		ring->error = errno ? -errno : -EIO;
	return ring->error;
}

static int flush(struct ring *ring)
{
	return written_error(ring, recording_writer_flush(ring->writer));
}

/* End the last part's recording. Samples that cannot be written are missing. */
static int end_part(struct ring *ring)
{
	int error;

	if (!ring->writer)
		return 0;
	error = flush(ring);
	recording_writer_free(ring->writer);
	ring->writer = NULL;
	ring->error = 0;
	ring->parts[ring->count - 1].bytes = written(ring);
	return error;
}

/* A file in memory. 0 or a negative errno. */
static int open_file(FILE **ret_stream)
{
	int fd = memory_file("ljspy-ring"), error;
	FILE *stream = fd < 0 ? NULL : fdopen(fd, "w+");

	if (stream) {
		*ret_stream = stream;
		return 0;
	}
	error = -errno;
	if (fd >= 0)
		close(fd);
	return error;
}

static int begin_part(struct ring *ring, uint64_t now_ns, const struct figures *so_far)
{
	const struct session session = { .clock = ring->options.clock, .start_ns = now_ns };
	struct part *part;
	int error;

	if (ring->count == RING_PARTS + 1)
		drop_oldest(ring);
	part = &ring->parts[ring->count];
	error = open_file(&part->stream);
	if (error)
		return error;
	error = recording_writer_new(part->stream, &session, &ring->writer);
	if (error) {
		fclose(part->stream);
		return error;
	}
	part->begin_ns = now_ns;
	part->before = *so_far;
	part->bytes = 0;
	ring->count++;
	return 0;
}

static size_t size_of(const struct ring *ring)
{
	size_t bytes = written(ring);

	for (size_t i = 0; i + 1 < ring->count; i++)
		bytes += ring->parts[i].bytes;
	return bytes;
}

int ring_add(struct ring *ring, const struct sample *sample)
{
	return ring->writer ? written_error(ring, recording_writer_add(ring->writer, sample)) : 0;
}

void ring_forget_functions(struct ring *ring)
{
	if (ring->writer)
		recording_writer_forget_functions(ring->writer);
}

int ring_advance(struct ring *ring, uint64_t now_ns, const struct figures *so_far)
{
	const struct ring_options *options = &ring->options;
	const struct part *current = ring->count ? &ring->parts[ring->count - 1] : NULL;
	int error = 0, begun;

	if (ring->writer)
		error = flush(ring);
	if (!current || now_ns - current->begin_ns >= options->span_ns / RING_PARTS ||
	    written(ring) >= options->bytes / RING_PARTS) {
		end_part(ring);
		begun = begin_part(ring, now_ns, so_far);
		error = error ? error : begun;
	}
	while (ring->count > 1 &&
	       (now_ns - ring->parts[1].begin_ns >= options->span_ns || size_of(ring) > options->bytes))
		drop_oldest(ring);
	return error;
}

uint64_t ring_begin_ns(const struct ring *ring)
{
	return ring->parts[0].begin_ns;
}

const struct figures *ring_before(const struct ring *ring)
{
	return &ring->parts[0].before;
}

static int pour_part(const struct part *part, struct functions *functions, sample_take *take, void *context)
{
	struct recording_reader *reader;
	int error = recording_reader_open(part->stream, functions, &reader);

	if (error)
		return error == -EILSEQ ? 0 : error; /* nothing was written to it */
	error = sample_source_each(recording_reader_samples(reader), take, context);
	recording_reader_close(reader);
	return error;
}

int ring_pour(struct ring *ring, sample_take *take, void *context)
{
	struct functions *functions = functions_new();
	int error = functions ? end_part(ring) : -ENOMEM;

	for (size_t i = 0; functions && i < ring->count; i++) {
		int failed = pour_part(&ring->parts[i], functions, take, context);

		error = error ? error : failed;
	}
	functions_free(functions);
	ring_clear(ring);
	return error;
}

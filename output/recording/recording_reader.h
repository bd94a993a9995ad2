/* SPDX-License-Identifier: MIT */
/*
 * recording_reader: a recording as a source of samples.
 *
 * See output/recording/recording_format.h. Memory is bounded for any file: one
 * block, the tables within their limits, and at most RECORDING_MEMORY_MAX bytes
 * of functions and names. Block and tables are there only while samples are being
 * read: many readers, read one after the other, need those of one.
 */
#ifndef LJSPY_RECORDING_READER_H
#define LJSPY_RECORDING_READER_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "output/recording/sample_source.h"
#include "output/sample/figures.h"
#include "output/sample/functions.h"
#include "output/sample/session.h"

#define RECORDING_MEMORY_MAX ((size_t)1 << 30)

/* How much of a recording is readable. */
enum recording_extent {
	RECORDING_WHOLE,
	RECORDING_UNFINISHED, /* up to the last flush: the writer has not finished */
	RECORDING_DAMAGED,    /* up to the first damaged block */
	RECORDING_FOLLOWED,   /* up to its end, and something follows: another recording maybe */
};

struct recording_reader;

/*
 * Open a recording and read it once, for its figures and its extent. The
 * stream is borrowed and must be seekable; the recording begins at offset 0.
 * Functions are interned in the table, which must outlive the reader.
 *
 * 0, -ENOMEM, -EIO (the stream's own error is in errno), -EILSEQ (not a
 * recording) or -EPROTONOSUPPORT (a newer version).
 */
int recording_reader_open(FILE *in, struct functions *functions, struct recording_reader **ret_reader);
void recording_reader_close(struct recording_reader *reader);

/* The samples; the reader owns the source. next() can also fail with -ENOMEM or -EIO, as above. */
struct sample_source *recording_reader_samples(struct recording_reader *reader);

/* The time of the first sample; 0 without any. */
uint64_t recording_reader_first_ns(const struct recording_reader *reader);
enum recording_extent recording_reader_extent(const struct recording_reader *reader);
/* The labels of a process, lines "name=value\n"; they live as long as the reader. NULL if it has none. */
const char *recording_reader_labels(const struct recording_reader *reader, pid_t pid);
/* Without an end record, duration and CPU time of the target are those of the samples. */
const struct session *recording_reader_session(const struct recording_reader *reader);
const struct figures *recording_reader_figures(const struct recording_reader *reader);
/* The time that the recording's clock counted: CPU time, or elapsed time summed over threads. */
uint64_t recording_reader_clocked_ns(const struct recording_reader *reader);

#endif

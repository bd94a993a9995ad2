/* SPDX-License-Identifier: MIT */
/*
 * recording_reader: a recording as a source of samples.
 *
 * See output/recording/recording_format.h. Whatever is in the file, memory is bounded:
 * one block, the tables within their limits, and the functions and names that
 * have occurred, RECORDING_MEMORY_MAX bytes of them at most.
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

/* How far the samples go. */
enum recording_extent {
	RECORDING_WHOLE,
	RECORDING_UNFINISHED,	/* to the last flush: its writer has not come to an end */
	RECORDING_DAMAGED,	/* to the first block that is not what was written */
};

struct recording_reader;

/*
 * Read a recording once, to know its figures and how far it goes. The stream
 * is borrowed and can be moved in; the recording begins at its beginning.
 * Functions are interned in the table, which must outlive the reader.
 *
 * 0, or -ENOMEM, -EIO (the stream's own error is in errno), -EILSEQ (it is no
 * recording) or -EPROTONOSUPPORT (it is one of a newer version).
 */
int recording_reader_open(FILE *in, struct functions *functions,
			  struct recording_reader **ret_reader);
void recording_reader_close(struct recording_reader *reader);

/* The samples. next() can also fail with -ENOMEM or -EIO, as above. */
struct sample_source *recording_reader_samples(struct recording_reader *reader);

enum recording_extent recording_reader_extent(const struct recording_reader *reader);
/* Where a recording is not whole, what its end would tell follows from the samples as far as can be. */
const struct session *recording_reader_session(const struct recording_reader *reader);
const struct figures *recording_reader_figures(const struct recording_reader *reader);
/* How much time its clock has counted: CPU time, or elapsed time in all threads. */
uint64_t recording_reader_clocked_ns(const struct recording_reader *reader);

#endif

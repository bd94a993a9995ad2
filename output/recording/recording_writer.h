/* SPDX-License-Identifier: MIT */
/*
 * recording_writer: samples into a recording, as they come.
 *
 * See output/recording/recording_format.h. Memory is bounded, however long it goes on:
 * what has been defined is forgotten, and defined anew when it occurs again,
 * before it takes much memory or a table exceeds its limit there.
 */
#ifndef LJSPY_RECORDING_WRITER_H
#define LJSPY_RECORDING_WRITER_H

#include <stdio.h>

#include "output/sample/figures.h"
#include "output/sample/sample.h"
#include "output/sample/session.h"

struct recording_writer;

/*
 * Begin a recording where the stream, which is borrowed, is. 0 or -ENOMEM;
 * nothing is written before the first flush.
 */
int recording_writer_new(FILE *out, const struct session *session,
			 struct recording_writer **ret_writer);
void recording_writer_free(struct recording_writer *writer);

/*
 * The functions of the frames must outlive the writer, or it must have
 * forgotten them; strings need not. A
 * sample that comes late is given the time of the one before. 0; -ENOMEM or,
 * if it is beyond the limits of the format, -EOVERFLOW: then this sample is
 * missing; or -EIO (the stream's own error is in errno): then nothing more can
 * be written, and a regular file ends with its last whole block.
 */
int recording_writer_add(struct recording_writer *writer, const struct sample *sample);

/* Nothing of it points to a function any more. */
void recording_writer_forget_functions(struct recording_writer *writer);

/* Make what has been added readable. 0 or -EIO, as above. */
int recording_writer_flush(struct recording_writer *writer);

/*
 * After -EIO: go on in another stream, at its end, where all of the file has
 * been copied. What could not be written is written there. The sample that
 * met the error is missing unless it is added anew; recording_writer_finish()
 * is to be called anew. 0 or -EIO, as above.
 */
int recording_writer_continue(struct recording_writer *writer, FILE *out);

/* What is known at the end; nothing can be added then. 0 or -EIO, as above. */
int recording_writer_finish(struct recording_writer *writer, const struct session *session,
			    const struct figures *figures);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * recording_writer: write samples to a recording as they come.
 *
 * See output/recording/recording_format.h. Memory is bounded for any length of
 * recording: before the definitions take much memory or exceed a limit of the
 * format, the writer forgets them, and defines them again as they occur.
 */
#ifndef LJSPY_RECORDING_WRITER_H
#define LJSPY_RECORDING_WRITER_H

#include <stdio.h>

#include "output/sample/figures.h"
#include "output/sample/sample.h"
#include "output/sample/session.h"

struct recording_writer;

/*
 * Begin a recording at the stream's current position. The stream is borrowed.
 * Nothing is written before the first flush. 0 or -ENOMEM.
 */
int recording_writer_new(FILE *out, const struct session *session, struct recording_writer **ret_writer);
void recording_writer_free(struct recording_writer *writer);

/*
 * Add a sample. The functions of its frames must outlive the writer, or live
 * until recording_writer_forget_functions(); strings need not. A sample that
 * is earlier than the one before it gets that one's time.
 *
 * 0; -ENOMEM, or -EOVERFLOW if the sample exceeds the limits of the format:
 * then this sample is missing; or -EIO (the stream's own error is in errno):
 * then nothing more can be written, and a regular file ends with its last
 * whole block.
 */
int recording_writer_add(struct recording_writer *writer, const struct sample *sample);

/*
 * Keep the labels of a process, lines "name=value\n", for recording_reader_labels(). 0 or -EIO, as above.
 */
int recording_writer_add_labels(struct recording_writer *writer, pid_t pid, const char *labels);

/* After this call the writer points to no function. */
void recording_writer_forget_functions(struct recording_writer *writer);

/* Write everything added so far, so that it is readable. 0 or -EIO, as above. */
int recording_writer_flush(struct recording_writer *writer);

/*
 * After -EIO: continue in another borrowed stream, at its end, to which the
 * caller has copied the whole file. Writes the block that failed. The sample
 * that met the error is missing unless the caller adds it again. If
 * recording_writer_finish() failed, call it again. 0 or -EIO, as above.
 */
int recording_writer_continue(struct recording_writer *writer, FILE *out);

/* Write the final session and figures and the end record. Nothing can be added later. 0 or -EIO, as above. */
int recording_writer_finish(struct recording_writer *writer, const struct session *session,
			    const struct figures *figures);

#endif

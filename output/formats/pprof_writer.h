/* SPDX-License-Identifier: MIT */
/*
 * pprof_writer: the parts that every profile in pprof's format has.
 *
 * A profile is written in pieces, which readers merge: each element is packed as
 * a Profile that holds nothing else. The first error is kept; nothing after it
 * is of use.
 */
#ifndef LJSPY_PPROF_WRITER_H
#define LJSPY_PPROF_WRITER_H

#include <stdint.h>
#include <stdio.h>

#include "output/formats/pprof.pb-c.h"

struct pprof_writer;

/* out is borrowed. NULL when memory is short. */
struct pprof_writer *pprof_writer_new(FILE *out);

/* Write the table of texts and what is left, and free writer. 0 or the first error, a negative errno. */
int pprof_writer_end(struct pprof_writer *writer);

/* The first error so far, which a caller can add to; 0 if there is none. */
int pprof_writer_error(const struct pprof_writer *writer);
void pprof_writer_fail(struct pprof_writer *writer, int error);

/* The number of a text that needs no escaping. */
int64_t pprof_safe_text(struct pprof_writer *writer, const char *text);
/* The number of a text of the target; for NULL, of the empty text. */
int64_t pprof_target_text(struct pprof_writer *writer, const char *text);

Pprof__ValueType pprof_value_type(struct pprof_writer *writer, const char *type, const char *unit);

/* Write one piece, or an element as a piece of its own. */
void pprof_write_piece(struct pprof_writer *writer, const Pprof__Profile *piece);
void pprof_write_sample(struct pprof_writer *writer, Pprof__Sample *sample);
void pprof_write_function(struct pprof_writer *writer, Pprof__Function *function);
void pprof_write_location(struct pprof_writer *writer, uint64_t id, uint64_t function_id, int64_t line);
/* The one mapping that all locations are in; target, which may be NULL, is what was profiled. */
void pprof_write_mapping(struct pprof_writer *writer, const char *target);
/* What `go tool pprof -comments` shows; text is the number of one. */
void pprof_write_comment(struct pprof_writer *writer, int64_t text);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * heap_file: heaps in a file (.heap), to be looked at and compared later.
 *
 * doc/HEAP_FILE.md says what is in it, output/blocks/ how it is packed. Every version stays readable for
 * ever.
 */
#ifndef LJSPY_HEAP_FILE_H
#define LJSPY_HEAP_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "output/blocks/block_header.h"
#include "output/heap/heap_account.h"
#include "output/heap/heap_graph.h"

enum {
	HEAP_FILE_VERSION = 3,
	HEAP_FILE_NAME_MAX = 4096, /* bytes of a property's text; writers cut longer ones */
};

#define HEAP_FILE_MAGIC BLOCK_MAGIC("HEP")

/*---- Writing ----*/

struct heap_file_writer;

/* Begin a file at the stream's current position. The stream is borrowed. 0, -ENOMEM or -EIO. */
int heap_file_writer_new(FILE *out, struct heap_file_writer **ret_writer);
/* Add one VM. 0, -ENOMEM or -EIO (the stream's own error is in errno). */
int heap_file_writer_add(struct heap_file_writer *writer, const struct heap_graph *graph,
			 const struct heap_account *account);
/* The file is complete. 0, -ENOMEM or -EIO. */
int heap_file_writer_end(struct heap_file_writer *writer);
void heap_file_writer_free(struct heap_file_writer *writer); /* NULL is allowed */

/*---- Reading ----*/

struct heap_file_reader;

/* Does the stream begin as a heap file does? Rewinds it. */
bool heap_file_is_one(FILE *in);

/*
 * Read from a borrowed stream. memory_max: how many bytes a VM's graph may take. 0, -ENOMEM,
 * -EIO, -EILSEQ (no heap file) or -EPROTONOSUPPORT (a newer version).
 */
int heap_file_reader_new(FILE *in, size_t memory_max, struct heap_file_reader **ret_reader);
/*
 * Read the next VM. *ret_graph is to be freed with heap_graph_free(), and *ret_account with
 * heap_file_account_clear(). 1; 0 after the last; -ENOMEM (memory_max included), -EIO, or
 * -EBADMSG: the file is damaged, or was not finished.
 */
int heap_file_reader_next(struct heap_file_reader *reader, struct heap_graph *ret_graph,
			  struct heap_account *ret_account);
void heap_file_reader_free(struct heap_file_reader *reader); /* NULL is allowed */

void heap_file_account_clear(struct heap_account *account);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * recording_reader_parts: what the files of the recording reader share, and its callers need not know.
 *
 *	recording_definitions.c  strings, functions, stacks and threads, to which samples refer
 *	recording_samples.c      samples, and the requests that they belong to
 *	recording_properties.c   what is told of the session
 *	recording_reader.c       records and blocks in order, and what opening finds out
 */
#ifndef LJSPY_RECORDING_READER_PARTS_H
#define LJSPY_RECORDING_READER_PARTS_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "memory/hash.h"
#include "output/blocks/block_reader.h"
#include "output/recording/recording_format.h"
#include "output/recording/recording_reader.h"
#include "output/recording/stack_cache.h"

/* A name that samples point to. It lives as long as the reader. */
struct name {
	UT_hash_handle hh;
	char text[];
};

/* The labels of a process. */
struct process_labels {
	pid_t pid;
	const char *text; /* kept as a name */
	UT_hash_handle hh;
};

struct stack {
	uint32_t caller;
	uint32_t function;
	uint32_t line;
	uint32_t depth : 24;
	uint32_t certainty : 8;
	struct figures_stack figures;
};

/* Bytes of all strings with their NULs. */
enum { TEXT_SIZE = RECORDING_STRING_BYTES_MAX + RECORDING_STRINGS_MAX };

static_assert(RECORDING_DEPTH_MAX < 1 << 24, "a depth has 24 bits");

struct thread {
	pid_t pid, tid;
	const char *process_name, *thread_name;
	uint64_t last_ns;    /* of its last sample; 0 before the first */
	uint64_t heap_bytes; /* of its last sample that has them; 0 before the first */
};

/* The current definitions; the first one of each has number 1. */
struct tables {
	uint32_t *strings;  /* where each begins in the text */
	const char **names; /* kept copies of the same strings; NULL until needed as a name */
	char *text;
	const struct function **functions;
	struct stack *stacks;
	struct thread *threads;
	size_t string_count, text_length, function_count, stack_count, thread_count;
};

struct recording_reader {
	struct sample_source source; /* first: the source and the reader are one address */
	FILE *in;
	bool resting; /* before the first sample, or behind the last: without block and tables */
	struct functions *functions;
	struct name *names;
	size_t names_size;
	struct tables tables;
	struct block_reader blocks;
	struct record_source *block; /* the current one of them */
	struct stack_cache expanded; /* by sample.stack */
	struct frame *frames;        /* of a stack that the cache does not keep */
	size_t frames_size;
	uint32_t version;                       /* of the grammar */
	const char *roots[RECORDING_ROOTS_MAX]; /* package roots of all functions, with their "@" */
	size_t root_count;
	uint64_t last_ns;
	uint64_t forgotten; /* number of stacks forgotten so far */
	uint64_t samples_read;
	struct sample_request request; /* of the next sample */
	bool opening;                  /* the first pass, which computes the members below */
	bool ended;
	bool has_large; /* the recording tells how many bytes are in large allocations */
	enum recording_extent extent;
	uint64_t sample_count;
	uint64_t first_ns, cpu_ns, wall_ns;
	struct session session;
	struct figures figures;
	struct process_labels *labels; /* at most RECORDING_THREADS_MAX */
};

/* Results of reading a record, besides negative errnos. */
enum {
	READ_END, /* the end of the recording, or of its readable part */
	READ_SAMPLE,
	READ_ON,
	READ_DAMAGED, /* the file is damaged */
};

/* recording_definitions.c; each reads the rest of a record: READ_ON, READ_DAMAGED or a negative errno. */

int recording_read_string(struct recording_reader *reader);
int recording_read_function(struct recording_reader *reader);
int recording_read_stack(struct recording_reader *reader);
int recording_read_thread(struct recording_reader *reader);

/* Forget all definitions. */
void recording_forget(struct recording_reader *reader);

/* May more functions and names be kept? */
bool recording_memory_is_left(const struct recording_reader *reader);

/* A copy of text that lives as long as the reader. NULL when memory is short. */
const char *recording_keep_name(struct recording_reader *reader, const char *text);

/* Read a name and keep it. READ_ON on success. */
int recording_take_name(struct recording_reader *reader, const char **ret_name);

/* Note the package root of a function, for other files below it. False when memory is short. */
bool recording_note_root(struct recording_reader *reader, const struct function *function);

/* recording_samples.c */

/* READ_ON, READ_DAMAGED or a negative errno. The request is the next sample's. */
int recording_read_request(struct recording_reader *reader);

/* READ_SAMPLE, READ_DAMAGED or a negative errno. */
int recording_read_sample(struct recording_reader *reader, struct sample *ret_sample);

/* recording_properties.c */

/* READ_ON, READ_DAMAGED or a negative errno. */
int recording_read_property(struct recording_reader *reader);

#endif

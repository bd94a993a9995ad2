/* SPDX-License-Identifier: MIT */
/*
 * sample_table: what samples have in common, in memory, each stack and frame once.
 *
 * For formats that need tables before samples, samples thread by thread, or
 * sums of equal samples. Samples themselves are read from their source again
 * and take no memory. All indices begin with 0.
 */
#ifndef LJSPY_SAMPLE_TABLE_H
#define LJSPY_SAMPLE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/recording/sample_source.h"
#include "output/sample/session.h"
#include "output/views/profile.h"

/* A position in a function, as stacks have it. */
struct table_frame {
	uint32_t function;	/* into functions */
	uint32_t line;		/* 0 if unknown */
	bool compiled;
};

/* A frame called from another stack. Stack 0 is the empty one, at the root of all. */
struct table_stack {
	uint32_t parent;	/* always smaller than the stack itself */
	uint32_t frame;		/* into frames; not of stack 0 */
	uint32_t depth;		/* in frames */
};

/* Names are the last that were seen; NULL if unknown. */
struct table_thread {
	pid_t pid;
	pid_t tid;
	const char *process_name;
	const char *thread_name;
	uint64_t weight_ns;
	uint64_t cpu_ns;
	size_t sample_count;
	size_t first_sum;	/* its sums are sums[first_sum] and so on */
	size_t sum_count;
};

/* What tells samples apart besides their times. */
struct table_kind {
	const char *phase;	/* NULL if none */
	uint32_t thread;	/* into threads */
	uint32_t stack;		/* into stacks */
	uint16_t thread_state;
	uint16_t vm_state;
};

/* All samples of one kind. */
struct table_sum {
	struct table_kind kind;
	uint64_t count;
	uint64_t cpu_ns;
	uint64_t wall_ns;
};

struct table_sample {
	struct table_kind kind;
	const struct function *wait;	/* as struct sample has it */
	uint64_t time_ns;
	uint64_t cpu_ns;
	uint64_t wall_ns;
};

struct sample_table {
	struct sample_source *source;
	enum weight_kind weight;
	uint64_t start_ns;	/* when the first sample's time began, as time_ns */
	uint64_t weight_ns;	/* of all samples */
	size_t sample_count;
	const struct function **functions;
	uint32_t function_count;
	struct table_frame *frames;
	uint32_t frame_count;
	struct table_stack *stacks;
	uint32_t stack_count;
	uint32_t depth;		/* of the deepest stack */
	struct table_thread *threads;	/* by weight, the heaviest first */
	uint32_t thread_count;
	struct table_sum *sums;	/* by thread, then stack, states and phase */
	size_t sum_count;
	struct table_index *index;	/* private: finds what samples refer to */
};

/*
 * Read a source to its end. What the table refers to must live as long as the
 * source, and the source as long as the table. 0, -ENOMEM, -EOVERFLOW if an
 * index would not fit, or what the source had.
 */
int sample_table_read(struct sample_source *source, enum weight_kind weight,
		      struct sample_table **ret_table);
void sample_table_free(struct sample_table *table);

/* 0 to go on, or a negative errno. */
typedef int sample_table_take(void *context, const struct table_sample *sample);

/*
 * All samples once more, in the order of time. 0, what take returned, what the
 * source had, or -EIO if it has something else now.
 */
int sample_table_each(struct sample_table *table, sample_table_take *take, void *context);
/* -EIO, and so is errno, for who finds that the source has something else now. */
int sample_table_changed(void);

/* When the session began, as time_ns; no sample's time begins earlier. */
uint64_t sample_table_origin(const struct sample_table *table, const struct session *session);

/* The part of a sample, or of a sum, that counts. */
uint64_t sample_table_weight(const struct sample_table *table, uint64_t cpu_ns, uint64_t wall_ns);

/* Write the frames of a stack, root first, to ret_frames, which has room for depth. Returns how many. */
uint32_t sample_table_frames(const struct sample_table *table, uint32_t stack, uint32_t *ret_frames);

#endif

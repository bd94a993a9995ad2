/* SPDX-License-Identifier: MIT */
/*
 * sample_table: tables of the functions, frames, stacks and threads of samples, each once.
 *
 * For formats that need tables before samples, samples thread by thread, or
 * sums of equal samples. The samples are not in memory: they are read from
 * their source again. All indices begin at 0.
 */
#ifndef LJSPY_SAMPLE_TABLE_H
#define LJSPY_SAMPLE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/recording/sample_source.h"
#include "output/sample/session.h"
#include "output/views/profile.h"

/* A position in a function. */
struct table_frame {
	uint32_t function; /* into functions */
	uint32_t line;     /* 0 if unknown */
	bool compiled;
};

/* A frame on top of another stack. Stack 0 is the empty stack, the root of all. */
struct table_stack {
	uint32_t parent; /* always smaller than the stack's own index */
	uint32_t frame;  /* into frames; unused in stack 0 */
	uint32_t depth;  /* in frames */
};

/* Names are the last ones seen; NULL if unknown. */
struct table_thread {
	pid_t pid;
	pid_t tid;
	const char *process_name;
	const char *thread_name;
	uint64_t weight;
	uint64_t cpu_ns;
	size_t sample_count;
	size_t first_sum; /* its sums begin at sums[first_sum] */
	size_t sum_count;
};

/* What samples have of requests, without what is of one request only. */
struct table_request {
	const char *route, *method, *host; /* as in struct sample_request: without a route, it is none */
	uint32_t status;
	bool is_subrequest;
};

/* How samples differ besides their times. */
struct table_kind {
	const char *phase; /* NULL if none */
	uint32_t thread;   /* into threads */
	uint32_t stack;    /* into stacks */
	uint32_t request;  /* into requests */
	uint16_t thread_state;
	uint8_t vm_state;
	uint8_t gc_phase;
};

/* All samples of one kind. */
struct table_sum {
	struct table_kind kind;
	uint64_t count;
	struct amounts amounts;
};

struct table_sample {
	struct table_kind kind;
	const struct function *wait;                   /* see struct sample */
	uint64_t heap_bytes, allocated_bytes, step_ns; /* see struct sample_gc */
	uint64_t connection, number;                   /* see struct sample_request */
	uint64_t age_ns;
	uint64_t time_ns;
	struct amounts amounts;
};

struct sample_table {
	struct sample_source *source;
	enum weight_kind weight;
	uint64_t start_ns;   /* earliest begin of a sample's time, on the clock of time_ns */
	uint64_t first_ns;   /* the earliest sample's time_ns */
	uint64_t weight_sum; /* of all samples */
	size_t sample_count;
	const struct function **functions;
	uint32_t function_count;
	struct table_frame *frames;
	uint32_t frame_count;
	struct table_stack *stacks;
	uint32_t stack_count;
	uint32_t depth;               /* of the deepest stack */
	struct table_thread *threads; /* heaviest first */
	uint32_t thread_count;
	struct table_request *requests;
	uint32_t request_count;
	struct table_sum *sums; /* by thread, then stack, states, phase and request */
	size_t sum_count;
	struct table_index *index; /* private: finds the indices of a sample */
};

/*
 * Read a source to its end. The source must outlive the table; its functions
 * and strings must live as long as the source. 0, -ENOMEM, -EOVERFLOW if an
 * index would not fit, or the source's error.
 */
int sample_table_read(struct sample_source *source, enum weight_kind weight, struct sample_table **ret_table);
void sample_table_free(struct sample_table *table);

/* 0 to continue, or a negative errno. */
typedef int sample_table_take(void *context, const struct table_sample *sample);

/*
 * Pass all samples to take again, in time order. 0, an error of take or of the
 * source, or -EIO if the source has changed.
 */
int sample_table_each(struct sample_table *table, sample_table_take *take, void *context);
/* The error for a source that has changed: sets errno to EIO and returns -EIO. */
int sample_table_changed(void);

/*
 * When the session began, on the clock of time_ns. No sample is earlier. One that stands for many waits at
 * once, as of parked coroutines, may stand for more time than has passed since then.
 */
uint64_t sample_table_origin(const struct sample_table *table, const struct session *session);

/* The weight of a sample or a sum. */
uint64_t sample_table_weight(const struct sample_table *table, const struct amounts *amounts);

/* List the frames of a stack, root first. ret_frames has room for table->depth. Returns their number. */
uint32_t sample_table_frames(const struct sample_table *table, uint32_t stack, uint32_t *ret_frames);

#endif

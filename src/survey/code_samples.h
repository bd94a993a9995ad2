/* SPDX-License-Identifier: MIT */
/*
 * code_samples: how much time samples have found at each instruction of traces and of bytecode.
 */
#ifndef LJSPY_CODE_SAMPLES_H
#define LJSPY_CODE_SAMPLES_H

#include <sys/types.h>

#include "output/sample/sample.h"
#include "unwind/trace/trace.h"
#include "unwind/listing/listing.h"

struct code_samples;

/* NULL when memory is short. */
struct code_samples *code_samples_new(void);
void code_samples_free(struct code_samples *samples);

/* Count a sample of any process. 0 or -ENOMEM. */
int code_samples_add(struct code_samples *samples, const struct sample *sample);

/*
 * Those of a process in this trace, or in the interpreter if trace is NULL. They are valid until
 * the next call. 0 or -ENOMEM.
 */
int code_samples_of(struct code_samples *samples, pid_t pid, const struct trace *trace,
		    struct listing_samples *ret_samples);

/* All samples of a process. */
void code_samples_total(const struct code_samples *samples, pid_t pid, uint64_t *ret_samples,
			uint64_t *ret_cpu_ns);

#endif

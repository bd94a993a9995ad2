/* SPDX-License-Identifier: MIT */
/*
 * cpu_use: how much CPU time processes used, over time and by the state of the VM.
 *
 * A sample stands for the CPU time since its thread's previous sample: that time is spread
 * evenly between the two. In steps of time, which double when the time gets longer, so
 * that memory is bounded. The last step is shorter where the time ends within it. Of the CPU time, the
 * sampled part has samples of its own, at the rate that was asked for: the rest is that of ticks which came
 * too late, and is part of the weight of the next sample.
 */
#ifndef LJSPY_CPU_USE_H
#define LJSPY_CPU_USE_H

#include <stdint.h>
#include <stdio.h>

#include "output/sample/sample.h"
#include "output/views/view.h"

enum {
	CPU_USE_STEPS_MAX = 200,
	CPU_USE_PROCESSES_MAX = 64, /* all later ones count as one, with pid 0 */
	CPU_USE_THREADS_MAX = 1 << 16,
};

struct cpu_use;

/*
 * start_ns: the beginning of the session, by CLOCK_MONOTONIC. The steps begin with the span, and go on to its
 * end or to the last sample, whichever is later. rate_hz: asked for; 0 if unknown.
 */
struct cpu_use *cpu_use_new(uint64_t start_ns, struct time_span span, double rate_hz);
void cpu_use_free(struct cpu_use *use);

/* Samples in time order; strings are borrowed. 0 or -ENOMEM. */
int cpu_use_add(struct cpu_use *use, const struct sample *sample);

size_t cpu_use_steps(const struct cpu_use *use); /* 0 without CPU time */
/* When a step begins, after the beginning of the span; with the number of steps, when the last one ends. */
uint64_t cpu_use_step_begin_ns(const struct cpu_use *use, size_t step);
size_t cpu_use_processes(const struct cpu_use *use);

/* The use of a process in a step: cores in the state. The first process is that of the first sample. */
double cpu_use_of(const struct cpu_use *use, size_t process, enum vm_state state, size_t step);

/* The part of all CPU time that has samples of its own, 0 to 1; 1 if the rate is unknown. */
double cpu_use_sampled(const struct cpu_use *use);

/*
 * The data for the page, one <metadata id="cpu">:
 *
 *	step_us steps sampled_permille since_us until_us
 *	pid name
 *	state value...				as often as there are states that occur
 *
 * since_us and until_us, where the first step begins and the last one ends, count from the beginning of the
 * session. Values are thousandths of a core, one for each step; zeros at the end are not written. A line of a
 * process begins with a digit, one of a state with its letter (color.h). Nothing is written if there
 * is too little to see: fewer than two steps.
 */
void cpu_use_write(FILE *out, const struct cpu_use *use);

#endif

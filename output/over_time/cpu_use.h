/* SPDX-License-Identifier: MIT */
/*
 * cpu_use: how much CPU time processes used, over time and by the state of the VM.
 *
 * A sample stands for the CPU time since its thread's previous sample: that time is spread
 * evenly between the two. In steps of time, which double when the recording gets longer, so
 * that memory is bounded. Of the CPU time, the sampled part has samples of its own, at the rate
 * that was asked for: the rest is that of ticks which came too late, and is part of the weight of
 * the next sample.
 */
#ifndef LJSPY_CPU_USE_H
#define LJSPY_CPU_USE_H

#include <stdint.h>
#include <stdio.h>

#include "output/sample/sample.h"

enum {
	CPU_USE_STEPS_MAX = 200,
	CPU_USE_PROCESSES_MAX = 64, /* all later ones count as one, with pid 0 */
	CPU_USE_THREADS_MAX = 1 << 16,
};

struct cpu_use;

/* start_ns: the beginning of the session, by CLOCK_MONOTONIC. rate_hz: asked for; 0 if unknown. */
struct cpu_use *cpu_use_new(uint64_t start_ns, double rate_hz);
void cpu_use_free(struct cpu_use *use);

/* Samples in time order; strings are borrowed. 0 or -ENOMEM. */
int cpu_use_add(struct cpu_use *use, const struct sample *sample);

uint64_t cpu_use_step_ns(const struct cpu_use *use);
size_t cpu_use_steps(const struct cpu_use *use); /* up to the last one with CPU time */
size_t cpu_use_processes(const struct cpu_use *use);

/* The use of a process in a step: cores in the state. The first process is that of the first sample. */
double cpu_use_of(const struct cpu_use *use, size_t process, enum vm_state state, size_t step);

/* The part of all CPU time that has samples of its own, 0 to 1; 1 if the rate is unknown. */
double cpu_use_sampled(const struct cpu_use *use);

/*
 * The data for the page, one <metadata id="cpu">:
 *
 *	step_us steps sampled_permille
 *	pid name
 *	state value...				as often as there are states that occur
 *
 * Values are thousandths of a core, one for each step; zeros at the end are not written. A line of a
 * process begins with a digit, one of a state with its letter (color.h). Nothing is written if there
 * is too little to see: fewer than two steps.
 */
void cpu_use_write(FILE *out, const struct cpu_use *use);

#endif

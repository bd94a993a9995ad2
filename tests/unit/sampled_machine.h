/* SPDX-License-Identifier: MIT */
/*
 * sampled_machine: run the sampler on a made-up machine, and add up what its samples say of each thread.
 *
 * add() puts processes on the machine, run() samples the first one; sum_of() tells what came of a thread.
 */
#ifndef LJSPY_SAMPLED_MACHINE_H
#define LJSPY_SAMPLED_MACHINE_H

#include <stdio.h>
#include <string.h>

#include "src/linux/clocks/clock.h"
#include "src/sampler/sampler.h"
#include "src/sampler/sampler_state.h"
#include "tests/unit/made_up_machine.h"

enum {
	MS = 1000 * 1000,
	RATE_HZ = 199,
	FIRST_PID = 1000,
	STARTED_AT_NS = 7 * MS, /* the machine has run for a while */
	TIDS = 100,             /* from FIRST_PID on */
	PARTS = 4,              /* of a burst of work */
	PERIOD_NS = NS_PER_SECOND / RATE_HZ,
	/* What is not worth a sample, and what the account of a thread that sleeps at the end may keep. */
	TOLERANCE_NS = PERIOD_NS / WORTH_TELLING_ONE_IN,
	RESERVE_NS = 10 * PERIOD_NS,
};

static const uint64_t period_ns = PERIOD_NS;

/* What the samples said, by thread. */
struct sum {
	uint64_t samples, cpu_ns, wall_ns, lost_ns;
	uint64_t state_ns[THREAD_STATE_COUNT], state_samples[THREAD_STATE_COUNT];
	uint64_t part_samples[PARTS], part_ns[PARTS];
	uint64_t first_ns; /* when the first one was taken */
	uint64_t markings, allocated_bytes, used_ns;
	/* What the last one with this state said. */
	struct told {
		const char *phase, *route;
		uint64_t connection, code_pc, proto, loop_ns;
		char process[THREAD_NAME_MAX], thread[THREAD_NAME_MAX], wait[32];
	} told[THREAD_STATE_COUNT];
};

static struct sum sums[TIDS];
static struct sum of_no_thread; /* of processes */
static struct sampler_result result;
static struct sampler_options options;
static void (*each_sample)(const struct sample *sample); /* sees it, too; NULL: nobody does */

static inline const struct made_up_thread *thread_of(const struct sample *sample)
{
	for (size_t i = 0; i < machine.process_count; i++)
		if (machine.processes[i].pid == sample->pid)
			return &machine.processes[i].threads[sample->tid - sample->pid];
	return NULL;
}

/* Its sleeps, without the stops; it may have gone on meanwhile. */
static inline void check_sleeps(const struct sample *sample)
{
	uint64_t runs = made_up_times(thread_of(sample), machine.now_ns).runs;

	assert_in_range(sample->sleeps, runs ? runs - 1 : 0, runs + 1);
}

static inline void note_told(struct sum *sum, const struct sample *sample)
{
	struct told *told = &sum->told[sample->thread_state];

	sum->markings += sample->gc.has_marked;
	sum->allocated_bytes += sample->gc.allocated_bytes;
	sum->used_ns += sample->gc.used_ns;
	if (sample->sleeps)
		check_sleeps(sample);
	/* Of a thread that slept meanwhile, the time from a look to the next is none of the collector's. */
	if (sample->thread_state != THREAD_RUNNING && sample->thread_state != THREAD_RUNNABLE)
		assert_int_equal(sample->gc.step_ns, 0);
	/* What is left over at the end has no stack. */
	if (sample->frames[0].function->kind == FRAME_LOST)
		return;
	*told = (struct told){ .phase = sample->phase,
			       .route = sample->request.route ? "there" : NULL,
			       .connection = sample->request.connection,
			       .code_pc = sample->code_pc,
			       .proto = sample->proto,
			       .loop_ns = sample->loop_ns };
	snprintf(told->process, sizeof(told->process), "%s", sample->process_name);
	snprintf(told->thread, sizeof(told->thread), "%s", sample->thread_name ? sample->thread_name : "");
	snprintf(told->wait, sizeof(told->wait), "%s", sample->wait ? sample->wait->name : "");
}

static inline void take(void *context, const struct sample *sample)
{
	struct sum *sum = sample->tid ? &sums[sample->tid - FIRST_PID] : &of_no_thread;
	const struct frame *leaf = &sample->frames[0];

	(void)context;
	if (!sum->samples++)
		sum->first_ns = sample->time_ns;
	sum->cpu_ns += sample->cpu_ns;
	sum->wall_ns += sample->wall_ns;
	sum->state_ns[sample->thread_state] += sample->wall_ns;
	sum->state_samples[sample->thread_state]++;
	note_told(sum, sample);
	if (each_sample)
		each_sample(sample);
	if (leaf->function->kind == FRAME_LOST) {
		sum->lost_ns += sample->cpu_ns + sample->wall_ns;
	} else if (sample->thread_state == THREAD_RUNNING) {
		assert_true(leaf->line < 100);
		sum->part_samples[leaf->line * PARTS / 100]++;
		sum->part_ns[leaf->line * PARTS / 100] += sample->cpu_ns;
	}
}

static inline int make_up(void **state)
{
	(void)state;
	memset(sums, 0, sizeof(sums));
	of_no_thread = (struct sum){ 0 };
	each_sample = NULL;
	made_up_machine_begin(STARTED_AT_NS);
	options = (struct sampler_options){
		.rate_hz = RATE_HZ,
		.functions = functions_new(),
		.take = take,
		.duration_ns = UINT64_C(10) * NS_PER_SECOND,
	};
	return options.functions ? 0 : -1;
}

static inline int forget(void **state)
{
	(void)state;
	functions_free(options.functions);
	return 0;
}

/* One more process, whose threads all do the same. */
static inline struct made_up_process *add(size_t threads, struct made_up_thread thread)
{
	struct made_up_process *process = &machine.processes[machine.process_count];

	process->pid = FIRST_PID + 20 * (pid_t)machine.process_count++;
	process->thread_count = threads;
	for (size_t i = 0; i < threads; i++)
		process->threads[i] = thread;
	return process;
}

/* Sample the first process. Returns when that began, in the machine's time. */
static inline uint64_t run(void)
{
	static const pid_t first = FIRST_PID;
	uint64_t begin_ns = machine.now_ns;

	options.pids = &first;
	options.pid_count = 1;
	sampler_run(&options, &result);
	assert_int_equal(result.error, 0);
	return begin_ns;
}

static inline const struct sum *sum_of(const struct made_up_process *process, size_t thread)
{
	return &sums[process->pid - FIRST_PID + (pid_t)thread];
}

static inline void assert_near(uint64_t seen, uint64_t truth, uint64_t tolerance)
{
	if (seen + tolerance < truth || seen > truth + tolerance)
		fail_msg("%lu is not %lu +- %lu", (unsigned long)seen, (unsigned long)truth,
			 (unsigned long)tolerance);
}

static const struct made_up_thread bursts = { .run_ns = 3 * MS, .sleep_ns = 9 * MS };

#endif

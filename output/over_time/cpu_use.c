/* SPDX-License-Identifier: MIT */
#include "output/over_time/cpu_use.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "memory/hash.h"
#include "output/labels/escape.h"
#include "output/views/color.h"

static const uint64_t first_step_ns = 200 * 1000 * 1000;
/* A damaged recording may have any time: samples after two years are left out. */
static const uint64_t latest_ns = UINT64_C(1) << 56;
static const double ns_per_s = 1e9;

struct process {
	pid_t pid;
	const char *name;
	double used_ns[VM_STATE_COUNT][CPU_USE_STEPS_MAX];
};

struct thread {
	struct thread_key {
		pid_t pid, tid;
	} key;
	size_t process;
	uint64_t last_ns; /* of its last sample */
	UT_hash_handle hh;
};

struct cpu_use {
	uint64_t since_ns;            /* the beginning of the span, after that of the session */
	uint64_t begin_ns, length_ns; /* the time that the steps are of, by CLOCK_MONOTONIC */
	uint64_t step_ns, period_ns;  /* period 0: unknown */
	struct process *processes[CPU_USE_PROCESSES_MAX];
	size_t process_count;
	struct thread *threads;
	struct thread *recent;
	double all_ns, sampled_ns;
};

/*---- Steps ----*/

/* Make each step twice as long. */
static void double_steps(struct cpu_use *use)
{
	for (size_t i = 0; i < use->process_count; i++)
		for (int state = 0; state < VM_STATE_COUNT; state++) {
			double *used_ns = use->processes[i]->used_ns[state];

			for (size_t step = 0; step < CPU_USE_STEPS_MAX / 2; step++)
				used_ns[step] = used_ns[2 * step] + used_ns[2 * step + 1];
			memset(used_ns + CPU_USE_STEPS_MAX / 2, 0,
			       CPU_USE_STEPS_MAX / 2 * sizeof(used_ns[0]));
		}
	use->step_ns *= 2;
}

/* Have steps for that much time. False if no recording is that long. */
static bool reach(struct cpu_use *use, uint64_t length_ns)
{
	if (length_ns >= latest_ns)
		return false;
	while (length_ns > CPU_USE_STEPS_MAX * use->step_ns)
		double_steps(use);
	if (length_ns > use->length_ns)
		use->length_ns = length_ns;
	return true;
}

struct cpu_use *cpu_use_new(uint64_t start_ns, struct time_span span, double rate_hz)
{
	struct cpu_use *use = calloc(1, sizeof(*use));

	if (!use)
		return NULL;
	use->since_ns = span.since_ns;
	use->begin_ns = start_ns + span.since_ns;
	use->step_ns = first_step_ns;
	use->period_ns = rate_hz > 0 ? (uint64_t)(ns_per_s / rate_hz) : 0;
	if (span.until_ns > span.since_ns)
		reach(use, span.until_ns - span.since_ns);
	return use;
}

void cpu_use_free(struct cpu_use *use)
{
	if (!use)
		return;
	HASH_FREE_ALL(use->threads);
	for (size_t i = 0; i < use->process_count; i++)
		free(use->processes[i]);
	free(use);
}

/*---- Processes and threads ----*/

/* The number of a process; -ENOMEM. */
static int find_process(struct cpu_use *use, const struct sample *sample)
{
	const bool is_last = use->process_count + 1 == CPU_USE_PROCESSES_MAX;
	struct process *process;

	for (size_t i = 0; i < use->process_count; i++)
		if (use->processes[i]->pid == sample->pid)
			return (int)i;
	if (use->process_count == CPU_USE_PROCESSES_MAX)
		return CPU_USE_PROCESSES_MAX - 1;
	process = calloc(1, sizeof(*process));
	if (!process)
		return -ENOMEM;
	process->pid = is_last ? 0 : sample->pid;
	process->name = is_last ? "others" : sample->process_name;
	use->processes[use->process_count] = process;
	return (int)use->process_count++;
}

/* NULL when memory is short. */
static struct thread *add_thread(struct cpu_use *use, const struct sample *sample)
{
	int process = find_process(use, sample);
	struct thread *thread = process < 0 ? NULL : calloc(1, sizeof(*thread));

	if (!thread)
		return NULL;
	thread->key = (struct thread_key){ sample->pid, sample->tid };
	thread->process = (size_t)process;
	HASH_ADD(hh, use->threads, key, sizeof(thread->key), thread);
	if (hash_added(&thread->hh))
		return thread;
	free(thread);
	return NULL;
}

static struct thread *find_thread(struct cpu_use *use, const struct sample *sample)
{
	const struct thread_key key = { sample->pid, sample->tid };
	struct thread *thread = use->recent;

	if (thread && thread->key.pid == key.pid && thread->key.tid == key.tid)
		return thread;
	HASH_FIND(hh, use->threads, &key, sizeof(key), thread);
	/* With more threads than that, the oldest starts anew when it comes again. */
	if (!thread && HASH_COUNT(use->threads) == CPU_USE_THREADS_MAX) {
		thread = use->threads;
		use->recent = NULL;
		HASH_DEL(use->threads, thread);
		free(thread);
		thread = NULL;
	}
	if (!thread)
		thread = add_thread(use, sample);
	use->recent = thread;
	return thread;
}

/*---- Samples ----*/

/* Spread CPU time over a time after the beginning. */
static void spread(struct cpu_use *use, double *used_ns, uint64_t from_ns, uint64_t to_ns, uint64_t cpu_ns)
{
	const double each = (double)cpu_ns / (double)(to_ns - from_ns);

	while (from_ns < to_ns) {
		const size_t step = from_ns / use->step_ns;
		const uint64_t step_end_ns = (step + 1) * use->step_ns;
		const uint64_t end_ns = to_ns < step_end_ns ? to_ns : step_end_ns;

		used_ns[step] += each * (double)(end_ns - from_ns);
		from_ns = end_ns;
	}
}

int cpu_use_add(struct cpu_use *use, const struct sample *sample)
{
	const uint64_t at_ns = sample->time_ns > use->begin_ns ? sample->time_ns - use->begin_ns : 0;
	struct thread *thread;
	uint64_t from_ns, cpu_ns = sample->cpu_ns;

	if (!reach(use, at_ns))
		return 0;
	thread = find_thread(use, sample);
	if (!thread)
		return -ENOMEM;
	from_ns = at_ns > sample->cpu_ns ? at_ns - sample->cpu_ns : 0;
	if (thread->last_ns && thread->last_ns < from_ns)
		from_ns = thread->last_ns;
	thread->last_ns = at_ns;
	/* What was used before the span began is none of it. */
	if (cpu_ns > at_ns - from_ns)
		cpu_ns = at_ns - from_ns;
	if (cpu_ns == 0 || sample->vm_state >= VM_STATE_COUNT)
		return 0;
	spread(use, use->processes[thread->process]->used_ns[sample->vm_state], from_ns, at_ns, cpu_ns);
	use->all_ns += (double)cpu_ns;
	use->sampled_ns += (double)(use->period_ns && cpu_ns > use->period_ns ? use->period_ns : cpu_ns);
	return 0;
}

/*---- Results ----*/

size_t cpu_use_steps(const struct cpu_use *use)
{
	return use->all_ns > 0 ? (use->length_ns + use->step_ns - 1) / use->step_ns : 0;
}

uint64_t cpu_use_step_begin_ns(const struct cpu_use *use, size_t step)
{
	const uint64_t begin_ns = step * use->step_ns;

	return begin_ns < use->length_ns ? begin_ns : use->length_ns;
}

size_t cpu_use_processes(const struct cpu_use *use)
{
	return use->process_count;
}

double cpu_use_of(const struct cpu_use *use, size_t process, enum vm_state state, size_t step)
{
	const uint64_t length_ns = cpu_use_step_begin_ns(use, step + 1) - cpu_use_step_begin_ns(use, step);

	return use->processes[process]->used_ns[state][step] / (double)length_ns;
}

double cpu_use_sampled(const struct cpu_use *use)
{
	return use->all_ns > 0 ? use->sampled_ns / use->all_ns : 1;
}

static void write_state(FILE *out, const struct cpu_use *use, size_t process, enum vm_state state)
{
	size_t count = cpu_use_steps(use);

	while (count > 0 && lround(1000 * cpu_use_of(use, process, state, count - 1)) == 0)
		count--;
	if (count == 0)
		return;
	fputc(color_state_letter(state), out);
	for (size_t step = 0; step < count; step++)
		fprintf(out, " %ld", lround(1000 * cpu_use_of(use, process, state, step)));
	fputc('\n', out);
}

void cpu_use_write(FILE *out, const struct cpu_use *use)
{
	if (cpu_use_steps(use) < 2)
		return;
	fprintf(out, "<metadata id=\"cpu\">%" PRIu64 " %zu %ld %" PRIu64 " %" PRIu64 "\n",
		use->step_ns / 1000, cpu_use_steps(use), lround(1000 * cpu_use_sampled(use)),
		use->since_ns / 1000, (use->since_ns + use->length_ns) / 1000);
	for (size_t i = 0; i < use->process_count; i++) {
		const struct process *process = use->processes[i];

		fprintf(out, "%d ", (int)process->pid);
		escape_write(ESCAPE_XML, process->name ? process->name : "", out);
		fputc('\n', out);
		for (int state = 0; state < VM_STATE_COUNT; state++)
			write_state(out, use, i, (enum vm_state)state);
	}
	fputs("</metadata>\n", out);
}

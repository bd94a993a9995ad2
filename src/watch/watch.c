/* SPDX-License-Identifier: MIT */
#include "src/watch/watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory/hash.h"
#include "output/reports/turns.h"
#include "src/linux/clocks/clock.h"
#include "src/linux/proc/follow.h"
#include "src/linux/proc/proc_file.h"
#include "src/linux/proc/proc_text.h"
#include "src/watch/gauge.h"
#include "src/watch/in_flight.h"

enum {
	STAT_BYTES = 1024,
	NAME_SIZE = 32,
	/* Fields of /proc/PID/stat, from the state on: proc_pid_stat(5). */
	FIELD_USER_TICKS = 11,
	FIELD_SYSTEM_TICKS = 12,
	FIELD_START_TICKS = 19,
	FIELD_RESIDENT_PAGES = 21,
	FIELDS = 22,
};

/* A process that could not be opened for its requests is tried again after that time. */
static const uint64_t retry_ns = 10 * (uint64_t)NS_PER_SECOND;

/* What /proc tells of a process. */
struct reading {
	char name[NAME_SIZE];
	uint64_t cpu_ns, resident_bytes, start_ticks;
};

struct watched {
	pid_t pid;
	uint64_t start_ticks;
	char name[NAME_SIZE];
	struct in_flight_worker *worker; /* NULL if its requests cannot be read */
	uint64_t retry_ns;
	uint64_t long_turn; /* the number of its last turn that was too long */
	UT_hash_handle hh;
	struct gauge gauges[]; /* one for each condition; those on heaps are not used */
};

/* The heap that a thread works on. */
struct heap {
	pid_t tid, pid;
	UT_hash_handle hh;
	struct gauge gauges[]; /* one for each condition; only those on heaps are used */
};

struct watch {
	struct watch_options options;
	struct follow *follow;
	struct watched *processes;
	struct heap *heaps;
	struct in_flight *in_flight; /* NULL unless a condition needs it */
	struct turns *turns;         /* the same */
	uint64_t ticks_per_s, page_bytes;
	bool has_words; /* of the first condition that has begun to hold since the last look */
	char words[WATCH_WORDS_SIZE];
};

static bool wants(const struct watch *watch, enum condition_kind kind)
{
	for (unsigned int i = 0; i < watch->options.condition_count; i++)
		if (watch->options.conditions[i].kind == kind)
			return true;
	return false;
}

/*---- What has happened ----*/

static void say_amount(const struct condition *condition, uint64_t value, char *text, size_t size)
{
	const double mib = 1 << 20;

	switch (condition->kind) {
	case CONDITION_CPU:
		snprintf(text, size, "used %llu %% of a core in %.0f s", (unsigned long long)value,
			 (double)condition->span_ns / 1e9);
		break;
	case CONDITION_RSS: snprintf(text, size, "had %.1f MiB in memory", (double)value / mib); break;
	case CONDITION_HEAP:
		snprintf(text, size, "had a Lua heap that grew by %llu %%", (unsigned long long)value);
		break;
	case CONDITION_BLOCKED:
		snprintf(text, size, "took %.0f ms for a turn of its event loop", (double)value / 1e6);
		break;
	case CONDITION_LATENCY:
		snprintf(text, size, "had a request in flight for %.2f s", (double)value / 1e9);
	}
}

static void note(struct watch *watch, const struct condition *condition, pid_t pid, uint64_t value)
{
	const struct watched *process;
	char amount[WATCH_WORDS_SIZE / 2];

	if (watch->has_words)
		return;
	watch->has_words = true;
	HASH_FIND_INT(watch->processes, &pid, process);
	say_amount(condition, value, amount, sizeof(amount));
	snprintf(watch->words, sizeof(watch->words), "%.64s: %s (pid %d) %s", condition->text,
		 process ? process->name : "process", (int)pid, amount);
}

/*---- Processes ----*/

/* False if the process is gone. */
static bool read_process(const struct watch *watch, pid_t pid, struct reading *ret_reading)
{
	char text[STAT_BYTES], *fields, *name, *end;
	uint64_t values[FIELDS] = { 0 };

	if (proc_text_read(pid, "stat", text, sizeof(text)) <= 0)
		return false;
	fields = proc_file_stat_fields(text);
	name = strchr(text, '(');
	if (!fields || !name || *fields == 'Z' || *fields == 'X')
		return false;
	fields[-2] = '\0'; /* the ")" behind the name */
	*ret_reading = (struct reading){ 0 };
	strncpy(ret_reading->name, name + 1, NAME_SIZE - 1);
	for (size_t i = 1; i < FIELDS && (fields = strchr(fields, ' ')); i++, fields = end)
		values[i] = strtoull(fields, &end, 10);
	ret_reading->cpu_ns = (values[FIELD_USER_TICKS] + values[FIELD_SYSTEM_TICKS]) *
			      (NS_PER_SECOND / watch->ticks_per_s);
	ret_reading->start_ticks = values[FIELD_START_TICKS];
	ret_reading->resident_bytes = values[FIELD_RESIDENT_PAGES] * watch->page_bytes;
	return true;
}

static void drop_heaps(struct watch *watch, pid_t pid)
{
	struct heap *heap, *next;

	HASH_ITER(hh, watch->heaps, heap, next) {
		if (pid && heap->pid != pid)
			continue;
		HASH_DEL(watch->heaps, heap);
		free(heap);
	}
}

static void drop_process(struct watch *watch, struct watched *process)
{
	drop_heaps(watch, process->pid);
	HASH_DEL(watch->processes, process);
	in_flight_close(process->worker);
	free(process);
}

static void add_process(void *context, pid_t pid)
{
	struct watch *watch = context;
	const unsigned int count = watch->options.condition_count;
	struct watched *process;
	struct reading reading;

	HASH_FIND_INT(watch->processes, &pid, process);
	if (process || HASH_COUNT(watch->processes) == WATCH_PROCESSES_MAX ||
	    !read_process(watch, pid, &reading))
		return;
	process = calloc(1, sizeof(*process) + count * sizeof(struct gauge));
	if (!process)
		return;
	process->pid = pid;
	process->start_ticks = reading.start_ticks;
	memcpy(process->name, reading.name, sizeof(process->name));
	for (unsigned int i = 0; i < count; i++)
		gauge_begin(&process->gauges[i], &watch->options.conditions[i], 0);
	HASH_ADD_INT(watch->processes, pid, process);
	if (!hash_added(&process->hh))
		free(process);
}

/* When the process began, by CLOCK_MONOTONIC; earlier than that clock is 0. */
static uint64_t begin_of(const struct watch *watch, uint64_t start_ticks)
{
	uint64_t age_ns = clock_now_ns(CLOCK_BOOTTIME) - start_ticks * (NS_PER_SECOND / watch->ticks_per_s);
	uint64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);

	return now_ns > age_ns ? now_ns - age_ns : 0;
}

/*---- Samples ----*/

static struct heap *find_heap(struct watch *watch, const struct watched *process, pid_t tid)
{
	const unsigned int count = watch->options.condition_count;
	struct heap *heap;

	HASH_FIND_INT(watch->heaps, &tid, heap);
	if (heap || HASH_COUNT(watch->heaps) == WATCH_HEAPS_MAX)
		return heap;
	heap = calloc(1, sizeof(*heap) + count * sizeof(struct gauge));
	if (!heap)
		return NULL;
	heap->tid = tid;
	heap->pid = process->pid;
	/* A process that has just begun grows anyway. */
	for (unsigned int i = 0; i < count; i++)
		gauge_begin(&heap->gauges[i], &watch->options.conditions[i],
			    begin_of(watch, process->start_ticks) + watch->options.conditions[i].span_ns);
	HASH_ADD_INT(watch->heaps, tid, heap);
	if (hash_added(&heap->hh))
		return heap;
	free(heap);
	return NULL;
}

static void take_heap(struct watch *watch, const struct watched *process, const struct sample *sample)
{
	struct heap *heap = find_heap(watch, process, sample->tid);

	for (unsigned int i = 0; heap && i < watch->options.condition_count; i++) {
		struct gauge *gauge = &heap->gauges[i];

		if (gauge->condition->kind == CONDITION_HEAP &&
		    gauge_heap(gauge, sample->time_ns, sample->gc.live_bytes))
			note(watch, gauge->condition, sample->pid, gauge->value);
	}
}

void watch_sample(struct watch *watch, const struct sample *sample)
{
	const struct watched *process;

	HASH_FIND_INT(watch->processes, &sample->pid, process);
	if (!process) {
		add_process(watch, sample->pid);
		HASH_FIND_INT(watch->processes, &sample->pid, process);
	}
	if (process && sample->gc.live_bytes && wants(watch, CONDITION_HEAP))
		take_heap(watch, process, sample);
	if (watch->turns)
		turns_add(watch->turns, sample);
}

void watch_keep(const struct watch *watch)
{
	if (watch->turns)
		turns_keep_functions(watch->turns);
}

/* A sample of a turn that is too long, perhaps still. */
static int take_turn(void *context, const struct turn *turn, const struct sample *sample)
{
	struct watch *watch = context;
	const uint64_t length_ns = (turn->end_ns ? turn->end_ns : sample->time_ns) - turn->begin_ns;
	struct watched *process;

	HASH_FIND_INT(watch->processes, &turn->pid, process);
	/* The threshold is the shortest of all; each condition has its own. */
	for (unsigned int i = 0; process && i < watch->options.condition_count; i++) {
		const struct condition *condition = &watch->options.conditions[i];

		if (condition->kind != CONDITION_BLOCKED || length_ns < condition->limit ||
		    process->long_turn == turn->number)
			continue;
		process->long_turn = turn->number;
		note(watch, condition, turn->pid, length_ns);
	}
	return 0;
}

static void ignore_turn(void *context, const struct turn *turn, bool is_long)
{
	(void)context;
	(void)turn;
	(void)is_long;
}

/*---- Looks ----*/

/* The age of its oldest request; false if unknown. */
static bool read_requests(struct watch *watch, struct watched *process, uint64_t now_ns, uint64_t *ret_age_ns)
{
	int error = -EAGAIN;

	if (!process->worker && now_ns >= process->retry_ns) {
		process->retry_ns = now_ns + retry_ns;
		in_flight_open(watch->in_flight, process->pid, &process->worker);
	}
	if (process->worker)
		error = in_flight_oldest(process->worker, ret_age_ns);
	if (error && process->worker) {
		in_flight_close(process->worker);
		process->worker = NULL;
	}
	return error == 0;
}

static void look_at(struct watch *watch, struct watched *process, const struct reading *reading,
		    uint64_t now_ns)
{
	for (unsigned int i = 0; i < watch->options.condition_count; i++) {
		struct gauge *gauge = &process->gauges[i];
		uint64_t age_ns;
		bool begins = false;

		switch (gauge->condition->kind) {
		case CONDITION_CPU: begins = gauge_cpu(gauge, now_ns, reading->cpu_ns); break;
		case CONDITION_RSS: begins = gauge_value(gauge, reading->resident_bytes); break;
		case CONDITION_LATENCY:
			begins = read_requests(watch, process, now_ns, &age_ns) && gauge_value(gauge, age_ns);
			break;
		case CONDITION_HEAP:
		case CONDITION_BLOCKED: break;
		}
		if (begins)
			note(watch, gauge->condition, process->pid, gauge->value);
	}
}

bool watch_look(struct watch *watch, uint64_t now_ns, char ret_words[static WATCH_WORDS_SIZE])
{
	struct watched *process, *next;
	struct reading reading;

	if (watch->follow && now_ns >= follow_due(watch->follow))
		follow_search(watch->follow, now_ns, add_process, watch);
	HASH_ITER(hh, watch->processes, process, next) {
		/* The pid may be another process's by now. */
		if (read_process(watch, process->pid, &reading) &&
		    reading.start_ticks == process->start_ticks)
			look_at(watch, process, &reading, now_ns);
		else
			drop_process(watch, process);
	}
	if (!watch->has_words)
		return false;
	watch->has_words = false;
	memcpy(ret_words, watch->words, sizeof(watch->words));
	return true;
}

/*---- Beginning and end ----*/

static bool begin_follow(struct watch *watch)
{
	const struct sampler_options *sampler = watch->options.sampler;
	const struct follow_options follow = { .descendants = sampler->subprocesses,
					       .pattern = sampler->pattern };
	int error = 0;

	for (size_t i = 0; i < sampler->pid_count; i++)
		add_process(watch, sampler->pids[i]);
	if (!follow.descendants && !follow.pattern)
		return true;
	watch->follow = follow_new(&follow);
	for (size_t i = 0; watch->follow && !error && i < sampler->pid_count; i++)
		error = follow_add(watch->follow, sampler->pids[i]);
	return watch->follow && !error;
}

struct watch *watch_new(const struct watch_options *options)
{
	struct watch *watch = calloc(1, sizeof(*watch));
	const struct turns_options turns = {
		.threshold_ns = conditions_blocked_ns(options->conditions, options->condition_count),
		.take = take_turn,
		.close = ignore_turn,
		.context = watch,
	};
	bool good;

	if (!watch)
		return NULL;
	watch->options = *options;
	watch->ticks_per_s = (uint64_t)sysconf(_SC_CLK_TCK);
	watch->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	if (turns.threshold_ns)
		watch->turns = turns_new(&turns);
	if (wants(watch, CONDITION_LATENCY))
		watch->in_flight = in_flight_new(options->sampler->layout);
	good = begin_follow(watch) && (watch->turns || !turns.threshold_ns) &&
	       (watch->in_flight || !wants(watch, CONDITION_LATENCY));
	if (good)
		return watch;
	watch_free(watch);
	return NULL;
}

void watch_free(struct watch *watch)
{
	struct watched *process, *next;

	if (!watch)
		return;
	HASH_ITER(hh, watch->processes, process, next) {
		drop_process(watch, process);
	}
	drop_heaps(watch, 0);
	turns_free(watch->turns);
	in_flight_free(watch->in_flight);
	follow_free(watch->follow);
	free(watch);
}

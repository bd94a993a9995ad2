/* SPDX-License-Identifier: MIT */
#include "src/heap/parallel_memory.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "src/linux/proc/live_memory.h"

enum {
	HELPERS_MAX = 3,
	SHARED_BYTES_MIN = 4 << 20, /* less is read before a helper wakes up */
};

struct helper {
	pthread_t thread;
	struct live_memory *live; /* its own */
	struct parallel_memory *parallel;
};

struct parallel_memory {
	struct memory memory; /* first: this as memory */
	pid_t pid;
	struct memory *plain;
	const struct maps *maps;
	struct helper helpers[HELPERS_MAX];
	size_t helper_count;

	pthread_mutex_t lock;
	pthread_cond_t work_is_there, work_is_done;
	/* Under the lock: */
	unsigned int round;   /* of work */
	unsigned int at_work; /* helpers */
	bool is_over;
	struct memory_range *ranges;
	size_t count;
	atomic_size_t next; /* the range that nobody has taken */
};

/* By the maps, is there no file behind any of it? A helper must not wait for one. */
static bool is_anonymous(const struct maps *maps, const struct memory_range *range)
{
	const uint64_t end = range->address + range->length;
	uint64_t at = range->address;

	while (at < end) {
		const struct mapping *mapping = maps_find(maps, at);

		if (!mapping || mapping->inode)
			return false;
		at = mapping->end;
	}
	return true;
}

/* Once the caller has taken the last range, it forgets them, though a helper may still read one. */
static void read_shared(struct parallel_memory *parallel, struct memory *memory, bool is_helper,
			struct memory_range *ranges, size_t count)
{
	size_t at;

	while ((at = atomic_fetch_add(&parallel->next, 1)) < count) {
		struct memory_range *range = &ranges[at];

		if (is_helper && !is_anonymous(parallel->maps, range))
			range->status = MEMORY_NOT_CAPTURED; /* see read_ranges() */
		else
			memory_read_ranges(memory, range, 1);
	}
}

static void *help(void *context)
{
	struct helper *helper = context;
	struct parallel_memory *parallel = helper->parallel;
	unsigned int done = 0;

	pthread_mutex_lock(&parallel->lock);
	for (;;) {
		struct memory_range *ranges;
		size_t count;

		while (!parallel->is_over && parallel->round == done)
			pthread_cond_wait(&parallel->work_is_there, &parallel->lock);
		if (parallel->is_over)
			break;
		done = parallel->round;
		ranges = parallel->ranges;
		count = parallel->count;
		if (!ranges)
			continue;
		parallel->at_work++;
		pthread_mutex_unlock(&parallel->lock);
		read_shared(parallel, live_memory_memory(helper->live), true, ranges, count);
		pthread_mutex_lock(&parallel->lock);
		if (--parallel->at_work == 0)
			pthread_cond_signal(&parallel->work_is_done);
	}
	pthread_mutex_unlock(&parallel->lock);
	return NULL;
}

static void share(struct parallel_memory *parallel, struct memory_range *ranges, size_t count)
{
	pthread_mutex_lock(&parallel->lock);
	parallel->ranges = ranges;
	parallel->count = count;
	atomic_store(&parallel->next, 0);
	parallel->round++;
	pthread_cond_broadcast(&parallel->work_is_there);
	pthread_mutex_unlock(&parallel->lock);
	read_shared(parallel, parallel->plain, false, ranges, count);
	pthread_mutex_lock(&parallel->lock);
	parallel->ranges = NULL; /* a helper that wakes up only now has nothing to do */
	while (parallel->at_work)
		pthread_cond_wait(&parallel->work_is_done, &parallel->lock);
	pthread_mutex_unlock(&parallel->lock);
}

static bool is_worth_sharing(const struct parallel_memory *parallel, const struct memory_range *ranges,
			     size_t count)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		bytes += ranges[i].length;
	return parallel->helper_count && count > 1 && bytes >= SHARED_BYTES_MIN;
}

static void read_ranges(struct memory *memory, struct memory_range *ranges, size_t count)
{
	struct parallel_memory *parallel = (struct parallel_memory *)(void *)memory;

	if (!is_worth_sharing(parallel, ranges, count)) {
		memory_read_ranges(parallel->plain, ranges, count);
		return;
	}
	share(parallel, ranges, count);
	for (size_t i = 0; i < count; i++)
		if (ranges[i].status != MEMORY_OK)
			memory_read_ranges(parallel->plain, &ranges[i], 1);
}

struct parallel_memory *parallel_memory_new(pid_t pid, struct memory *plain, const struct maps *maps)
{
	struct parallel_memory *parallel = calloc(1, sizeof(*parallel));

	if (!parallel)
		return NULL;
	parallel->memory.read_ranges = read_ranges;
	parallel->pid = pid;
	parallel->plain = plain;
	parallel->maps = maps;
	pthread_mutex_init(&parallel->lock, NULL);
	pthread_cond_init(&parallel->work_is_there, NULL);
	pthread_cond_init(&parallel->work_is_done, NULL);
	return parallel;
}

static size_t count_cpus(void)
{
	cpu_set_t cpus;

	return sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? (size_t)CPU_COUNT(&cpus) : 1;
}

static bool start_helper(struct parallel_memory *parallel, struct helper *helper)
{
	helper->parallel = parallel;
	helper->live = live_memory_new(parallel->pid);
	if (!helper->live)
		return false;
	if (pthread_create(&helper->thread, NULL, help, helper) == 0)
		return true;
	live_memory_free(helper->live);
	return false;
}

void parallel_memory_start(struct parallel_memory *parallel)
{
	const size_t cpus = count_cpus();
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (parallel->helper_count < HELPERS_MAX && parallel->helper_count + 1 < cpus &&
	       start_helper(parallel, &parallel->helpers[parallel->helper_count]))
		parallel->helper_count++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void parallel_memory_free(struct parallel_memory *parallel)
{
	if (!parallel)
		return;
	pthread_mutex_lock(&parallel->lock);
	parallel->is_over = true;
	pthread_cond_broadcast(&parallel->work_is_there);
	pthread_mutex_unlock(&parallel->lock);
	for (size_t i = 0; i < parallel->helper_count; i++) {
		pthread_join(parallel->helpers[i].thread, NULL);
		live_memory_free(parallel->helpers[i].live);
	}
	pthread_cond_destroy(&parallel->work_is_there);
	pthread_cond_destroy(&parallel->work_is_done);
	pthread_mutex_destroy(&parallel->lock);
	free(parallel);
}

struct memory *parallel_memory_memory(struct parallel_memory *parallel)
{
	return &parallel->memory;
}

/* SPDX-License-Identifier: MIT */
#include "src/apart/apart_state.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory/child_wait.h"
#include "src/apart/guard.h"
#include "src/apart/inherited_files.h"
#include "src/linux/clocks/clock.h"

enum { RESULTS_TRIES = 100 };

/*---- Results ----*/

/* A version is odd while the engine writes it, so the front never takes a torn one. */
void apart_publish(struct apart *apart, const void *results)
{
	struct shared *shared = apart->shared;

	shared->results_version++;
	memcpy(shared->results, results, apart->options->results_size);
	shared->results_version++;
}

bool apart_results(const struct apart *apart, void *ret_results)
{
	const struct shared *shared = apart->shared;

	for (int i = 0; i < RESULTS_TRIES; i++) {
		uint64_t version = shared->results_version;

		if (version == 0)
			return false;
		memcpy(ret_results, shared->results, apart->options->results_size);
		if (version % 2 == 0 && version == shared->results_version)
			return true;
		sched_yield();
	}
	/* The engine died while it wrote, or is corrupt. */
	return false;
}

/*---- The front ----*/

void apart_conclude(struct apart *apart)
{
	apart->shared->end_wanted = true;
}

int apart_interrupted_by(const struct apart *apart, bool *ret_by_process)
{
	*ret_by_process = apart->interrupted_by_process;
	return apart->interrupted_by;
}

uint64_t apart_away_ns(const struct apart *apart)
{
	return apart->shared->away_ns;
}

uint64_t apart_cpu_ns(const struct apart *apart)
{
	return clock_now_ns(CLOCK_PROCESS_CPUTIME_ID) - apart->begin_cpu_ns + apart->shared->guard_cpu_ns;
}

/* False if the engine sent nonsense: no further message can be read. */
static bool take_all(struct apart *apart, unsigned char *buffer)
{
	const struct apart_options *options = apart->options;
	int size;

	while ((size = queue_take(&apart->shared->queue, buffer)) > 0)
		if (options->take)
			options->take(apart, options->context, buffer, (size_t)size);
	return size == 0;
}

static void update(struct apart *apart)
{
	apart->results_seen = apart->shared->results_version;
	if (apart->options->update)
		apart->options->update(apart, apart->options->context);
}

static enum apart_end take_until_end(struct apart *apart, unsigned char *buffer)
{
	bool good = true;

	while (good && !apart->engine_is_gone) {
		good = take_all(apart, buffer);
		if (apart->results_seen != apart->shared->results_version)
			update(apart);
		beat_await(apart);
	}
	if (!good)
		kill(apart->guard, SIGKILL);
	else
		good = take_all(apart, buffer);
	/* What the engine says of its targets is then wrong, too: it cannot wait for them. */
	if (apart->shared->wait_error)
		return APART_UNWATCHED;
	if (good && apart->shared->is_done)
		return APART_CONCLUDED;
	return apart->shared->is_blocked ? APART_BLOCKED : APART_KILLED;
}

static int open_shared(struct apart *apart)
{
	void *shared;

	/* Map all pages now: the queue would touch them all in time anyway. */
	apart->shared_size = sizeof(struct shared) + apart->options->results_size;
	shared = mmap(NULL, apart->shared_size, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (shared == MAP_FAILED)
		return -ENOMEM;
	apart->shared = shared;
	apart->shared->front_pid = getpid();
	return 0;
}

/* The engine has them for the command. A pipe must end when the command closes it. */
static void close_inherited(void)
{
	struct inherited_files files;

	if (inherited_files_find(&files) == 0)
		inherited_files_close(&files);
}

static int start(struct apart *apart)
{
	apart->shared->beat_due_ns = clock_now_ns(CLOCK_MONOTONIC) + FIRST_BEAT_NS;
	apart->guard = fork();
	if (apart->guard < 0)
		return -errno;
	if (apart->guard == 0) {
		/* A command that ljspy starts becomes the front's. */
		guard_become(apart->shared, apart->shared->front_pid, !apart->options->keeps_standard_files);
		engine_run(apart);
	}
	if (apart->options->keeps_standard_files)
		close_inherited();
	return 0;
}

int apart_run(const struct apart_options *options, struct apart_outcome *ret_outcome)
{
	struct apart apart = {
		.options = options,
		.front_group = getpgrp(),
		.taker = pthread_self(),
		.begin_cpu_ns = clock_now_ns(CLOCK_PROCESS_CPUTIME_ID),
	};
	unsigned char *buffer = malloc(QUEUE_MESSAGE_MAX);
	int error = buffer ? open_shared(&apart) : -ENOMEM, status;

	if (!error)
		error = start(&apart);
	if (!error) {
		error = beat_begin(&apart);
		if (error) {
			kill(apart.guard, SIGKILL);
			child_wait(apart.guard, &status, 0);
		}
	}
	if (!error) {
		*ret_outcome = (struct apart_outcome){ .end = take_until_end(&apart, buffer) };
		ret_outcome->blocked_pid = apart.shared->blocked_pid;
		ret_outcome->blocked_in_exec = apart.shared->blocked_in_exec;
		beat_end(&apart);
		update(&apart); /* after the last signal that the beating thread can have taken */
		error = ret_outcome->end == APART_UNWATCHED ? -apart.shared->wait_error
							    : -apart.shared->start_error;
	}
	if (apart.shared)
		munmap(apart.shared, apart.shared_size);
	free(buffer);
	return error;
}

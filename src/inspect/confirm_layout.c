/* SPDX-License-Identifier: MIT */
#include "src/inspect/confirm_layout.h"

#include <pthread.h>

#include "src/inspect/patience.h"
#include "src/linux/clocks/clock.h"

/* A hold may also catch the VM in the middle of a change. */
enum { TRIES = 20 };

static void confirm(void *context)
{
	lua_process_confirm(context);
}

void confirm_while_held(struct lua_process *process, struct hold *hold)
{
	for (unsigned i = 0; i < TRIES && lua_process_needs_confirming(process); i++)
		if (!hold_while(hold, confirm, NULL, process))
			return;
}

struct confirming {
	struct lua_process *process;
	pid_t pid;
	struct patience patience;
};

static void confirm_threads(struct confirming *confirming, struct threads *threads)
{
	const struct known_files *files = lua_process_files(confirming->process);
	struct patience *patience = &confirming->patience;
	struct hold *hold = hold_new(patience->tracer, threads);

	patience_begin(patience, files);
	if (hold && threads_refresh(threads, clock_now_ns(CLOCK_MONOTONIC), 0) == 0) {
		hold_go_on_while(hold, patience->may_go_on, patience->context);
		confirm_while_held(confirming->process, hold);
	}
	patience_end(files);
	hold_free(hold);
}

static void *run(void *context)
{
	struct confirming *confirming = context;
	struct tracer *tracer = tracer_new();
	struct threads *threads = tracer ? threads_new(tracer, confirming->pid) : NULL;

	confirming->patience.tracer = tracer;
	if (threads)
		confirm_threads(confirming, threads);
	threads_free(threads);
	tracer_free(tracer);
	return NULL;
}

void confirm_process(struct lua_process *process, pid_t pid, bool (*may_go_on)(void *context), void *context)
{
	struct confirming confirming = {
		.process = process,
		.pid = pid,
		.patience = { .may_go_on = may_go_on, .context = context },
	};
	pthread_t thread;

	/* The process is free of its tracer only when the thread has ended. */
	if (lua_process_needs_confirming(process) && pthread_create(&thread, NULL, run, &confirming) == 0)
		pthread_join(thread, NULL);
}

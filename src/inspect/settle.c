#include "src/inspect/settle.h"

#include <pthread.h>

#include "src/linux/clocks/clock.h"

/* The VM may be held in the middle of a change, too. */
enum { TRIES = 20 };

static void settle(void *context)
{
	lua_process_settle(context);
}

void settle_while_held(struct lua_process *process, struct hold *hold)
{
	for (unsigned i = 0; i < TRIES && lua_process_needs_settling(process); i++)
		if (!hold_while(hold, settle, NULL, process))
			return;
}

static void settle_threads(struct lua_process *process, struct tracer *tracer, struct threads *threads)
{
	struct hold *hold = hold_new(tracer, threads);

	if (hold && threads_refresh(threads, clock_now_ns(CLOCK_MONOTONIC), 0) == 0)
		settle_while_held(process, hold);
	hold_free(hold);
}

struct settling {
	struct lua_process *process;
	pid_t pid;
};

static void *run(void *context)
{
	const struct settling *settling = context;
	struct tracer *tracer = tracer_new();
	struct threads *threads = tracer ? threads_new(tracer, settling->pid) : NULL;

	if (threads)
		settle_threads(settling->process, tracer, threads);
	threads_free(threads);
	tracer_free(tracer);
	return NULL;
}

void settle_process(struct lua_process *process, pid_t pid)
{
	struct settling settling = { .process = process, .pid = pid };
	pthread_t thread;

	/* The thread must end for the process to be free. */
	if (lua_process_needs_settling(process) && pthread_create(&thread, NULL, run, &settling) == 0)
		pthread_join(thread, NULL);
}

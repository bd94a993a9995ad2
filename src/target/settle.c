#include "src/target/settle.h"

#include "src/clock.h"

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

void settle_process(struct lua_process *process, pid_t pid)
{
	struct tracer *tracer;
	struct threads *threads;

	if (!lua_process_needs_settling(process))
		return;
	tracer = tracer_new();
	threads = tracer ? threads_new(tracer, pid) : NULL;
	if (threads)
		settle_threads(process, tracer, threads);
	threads_free(threads);
	tracer_free(tracer);
}

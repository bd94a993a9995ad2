#include "src/inspect/settle.h"

#include <pthread.h>

#include "src/inspect/patience.h"
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

struct settling {
	struct lua_process *process;
	pid_t pid;
	struct patience patience;
};

static void settle_threads(struct settling *settling, struct threads *threads)
{
	const struct known_files *files = lua_process_files(settling->process);
	struct patience *patience = &settling->patience;
	struct hold *hold = hold_new(patience->tracer, threads);

	patience_begin(patience, files);
	if (hold && threads_refresh(threads, clock_now_ns(CLOCK_MONOTONIC), 0) == 0) {
		hold_go_on_while(hold, patience->may_go_on, patience->context);
		settle_while_held(settling->process, hold);
	}
	patience_end(files);
	hold_free(hold);
}

static void *run(void *context)
{
	struct settling *settling = context;
	struct tracer *tracer = tracer_new();
	struct threads *threads = tracer ? threads_new(tracer, settling->pid) : NULL;

	settling->patience.tracer = tracer;
	if (threads)
		settle_threads(settling, threads);
	threads_free(threads);
	tracer_free(tracer);
	return NULL;
}

void settle_process(struct lua_process *process, pid_t pid, bool (*may_go_on)(void *context), void *context)
{
	struct settling settling = {
		.process = process,
		.pid = pid,
		.patience = { .may_go_on = may_go_on, .context = context },
	};
	pthread_t thread;

	/* The thread must end for the process to be free. */
	if (lua_process_needs_settling(process) && pthread_create(&thread, NULL, run, &settling) == 0)
		pthread_join(thread, NULL);
}

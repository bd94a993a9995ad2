/* SPDX-License-Identifier: MIT */
#include "src/linux/tracer/tracing_thread.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "src/linux/clocks/clock.h"

enum { MOMENT_NS = 100 * 1000 };

static const uint64_t patience_ns = UINT64_C(10) * NS_PER_SECOND; /* the thread may wait for a CPU */

struct tracing_thread {
	void *(*run)(void *context);
	void *context;
	pid_t tid;
};

static void *begin(void *context)
{
	struct tracing_thread *thread = context;

	thread->tid = gettid();
	return thread->run(thread->context);
}

/* It has its id for as long as it has targets. */
static void await_end(pid_t tid)
{
	const uint64_t until_ns = clock_now_ns(CLOCK_MONOTONIC) + patience_ns;
	const struct timespec moment = { .tv_nsec = MOMENT_NS };

	while (syscall(SYS_tgkill, getpid(), tid, 0) == 0 && clock_now_ns(CLOCK_MONOTONIC) < until_ns)
		nanosleep(&moment, NULL);
}

int tracing_thread_run(void *(*run)(void *context), void *context)
{
	struct tracing_thread thread = { .run = run, .context = context };
	pthread_t id;
	int error = pthread_create(&id, NULL, begin, &thread);

	if (error)
		return -error;
	pthread_join(id, NULL);
	await_end(thread.tid);
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include "src/linux/tracer/tracing_thread.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	MOMENT_US = 100,
	MOMENTS_MAX = 100 * 1000, /* 10 s: it may wait for a CPU */
};

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
	const struct timespec moment = { .tv_nsec = MOMENT_US * 1000L };

	for (int i = 0; i < MOMENTS_MAX && syscall(SYS_tgkill, getpid(), tid, 0) == 0; i++)
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

/* SPDX-License-Identifier: MIT */
#include "src/program/stack_room.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>

/*
 * Bytes. Unused pages take no memory, but addresses, of which ulimit -v may allow few: so no thread gets
 * more.
 */
enum { STACK_ROOM = 2 << 20 };

struct run {
	int (*run)(void *context);
	void *context;
	int result;
};

static void *run_in_thread(void *context)
{
	struct run *run = context;

	run->result = run->run(run->context);
	return NULL;
}

static bool has_room(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur >= STACK_ROOM;
}

/* For all threads created from now on. 0 or a negative errno. */
static int set_room(void)
{
	pthread_attr_t attributes;
	int error = pthread_attr_init(&attributes);

	if (error)
		return -error;
	error = pthread_attr_setstacksize(&attributes, STACK_ROOM);
	if (!error)
		error = pthread_setattr_default_np(&attributes);
	pthread_attr_destroy(&attributes);
	return -error;
}

int stack_room_run(int (*run)(void *context), void *context)
{
	struct run in_thread = { .run = run, .context = context };
	pthread_t thread;
	int error = set_room();

	if (has_room())
		return run(context);
	if (!error)
		error = -pthread_create(&thread, NULL, run_in_thread, &in_thread);
	if (!error)
		error = -pthread_join(thread, NULL);
	return error ? error : in_thread.result;
}

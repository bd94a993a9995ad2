/* SPDX-License-Identifier: MIT */
#include "src/program/first_thread.h"

#include <pthread.h>
#include <stddef.h>

static void await(sem_t *semaphore)
{
	while (sem_wait(semaphore))
		;
}

static void *run(void *context)
{
	struct first_thread *first = context;

	first->result = first->work(first->work_context);
	first->errand = NULL;
	sem_post(&first->asked);
	return NULL;
}

int first_thread_run(struct first_thread *first, bool (*work)(void *context), void *context, bool *ret_result)
{
	pthread_t thread;
	int error;

	*first = (struct first_thread){ .work = work, .work_context = context };
	sem_init(&first->asked, 0, 0);
	sem_init(&first->done, 0, 0);
	error = pthread_create(&thread, NULL, run, first);
	if (error)
		return -error;
	for (await(&first->asked); first->errand; await(&first->asked)) {
		first->errand(first->context);
		sem_post(&first->done);
	}
	pthread_join(thread, NULL);
	sem_destroy(&first->asked);
	sem_destroy(&first->done);
	*ret_result = first->result;
	return 0;
}

void first_thread_ask(struct first_thread *first, first_thread_errand *errand, void *context)
{
	first->errand = errand;
	first->context = context;
	sem_post(&first->asked);
	await(&first->done);
}

/* SPDX-License-Identifier: MIT */
/*
 * first_thread: work in a new thread that has the first thread do what needs its rights.
 *
 * A thread that samples may have taken on another user's rights (choose_check_all()), so
 * the first thread opens and deletes files.
 */
#ifndef LJSPY_FIRST_THREAD_H
#define LJSPY_FIRST_THREAD_H

#include <semaphore.h>
#include <stdbool.h>

typedef void first_thread_errand(void *context);

struct first_thread {
	sem_t asked, done;
	first_thread_errand *errand; /* NULL: the work is over */
	void *context;
	bool (*work)(void *context);
	void *work_context;
	bool result;
};

/*
 * Run work() in a new thread, and its errands in the calling one, until it returns.
 * 0 and what it returned, or a negative errno.
 */
int first_thread_run(struct first_thread *first, bool (*work)(void *context), void *context,
		     bool *ret_result);

/* From within work(), in its thread: have the first thread do the errand, and wait for that. */
void first_thread_ask(struct first_thread *first, first_thread_errand *errand, void *context);

#endif

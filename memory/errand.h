/* SPDX-License-Identifier: MIT */
/*
 * errand: what may take for ever is done by another thread, while the caller looks after others.
 *
 * Whatever reads a file may wait for a disk or a server that never answers, and so
 * may whatever touches memory that a file is mapped to. Who traces a process must not
 * wait: signals for the process wait with it. So it has a thread of its own
 * do such things, and passes signals on until that has come back. What does not come
 * back in time is left to itself, and counts as if it had failed.
 *
 * All functions are to be called by one thread.
 */
#ifndef LJSPY_ERRAND_H
#define LJSPY_ERRAND_H

#include <stdbool.h>
#include <stddef.h>

struct errands;

/* NULL when memory is short. No thread is started before the first errand. */
struct errands *errands_new(void);
void errands_free(struct errands *errands);

/* Who waits. */
struct errands_waiter {
	/* Asked before each errand: false if somebody is held, and nothing may be waited for. */
	bool (*may_wait)(void *context);
	/* Called every few milliseconds until an errand is done; false to do without it. */
	bool (*meanwhile)(void *context);
	void *context;
};

/* From now on; NULL: nobody is held or looked after, as at first. Copied. */
void errands_wait_as(struct errands *errands, const struct errands_waiter *waiter);

/* May the caller wait now? */
bool errands_may_wait(const struct errands *errands);

/* Only what the arguments hold is used, or lives as long as the process. */
typedef void errand_work(void *arguments);

/*
 * Do work(arguments), on a copy of so many bytes, which is copied back. False if that
 * may not be waited for, or is not done in time: then the arguments are as they were, and
 * once it is done after all, undo(), if it is not NULL, frees what the copy has come to own.
 * With errands NULL it is done at once.
 */
bool errands_run(struct errands *errands, errand_work *work, errand_work *undo, void *arguments, size_t size);

#endif

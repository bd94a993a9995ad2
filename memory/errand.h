/* SPDX-License-Identifier: MIT */
/*
 * errand: a helper thread does what may take for ever; the caller serves its tracees meanwhile.
 *
 * Reading a file may wait for a disk or a server that never answers; so may touching
 * memory that is mapped from a file. A tracer must not wait: signals for its tracees
 * wait with it. So a helper thread does such errands, and the tracer passes signals on
 * until the helper is done. An errand that takes too long is abandoned and counts as
 * failed.
 *
 * One thread calls all these functions.
 */
#ifndef LJSPY_ERRAND_H
#define LJSPY_ERRAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct errands;

/* What a helper thread is called in /proc. */
#define ERRAND_THREAD_NAME "ljspy-errand"

/* NULL when memory is short. The first errand starts the helper. */
struct errands *errands_new(void);
void errands_free(struct errands *errands);
/*
 * Instead of these, others that wait as these do, without what these have abandoned. NULL when memory is
 * short.
 */
struct errands *errands_anew(struct errands *errands);

/* What the caller does while an errand is under way. */
struct errands_waiter {
	/* Called before each errand and pause. False while a thread is held: the errand fails at once. */
	bool (*may_wait)(void *context);
	/*
	 * Called every few milliseconds until the errand is done, and in a pause. False abandons it, or the
	 * work.
	 */
	bool (*meanwhile)(void *context);
	void *context;
};

/* Applies to later errands. The waiter is copied. NULL, as at first: always wait, and do nothing else. */
void errands_wait_as(struct errands *errands, const struct errands_waiter *waiter);

/*
 * From now on, errands use up *left_ns, several errands' perhaps, which must outlive them, and fail where
 * nothing is left. What a helper waits for a CPU does not count, unless it takes too long. UINT64_MAX is
 * never used up; with NULL, as at first, too, only each errand's own time has an end.
 */
void errands_allow(struct errands *errands, uint64_t *left_ns);

/* May the caller wait now? */
bool errands_may_wait(const struct errands *errands);

/* Has the caller nobody to serve meanwhile, so that time matters little? */
bool errands_serve_nobody(const struct errands *errands);

/*
 * Between two parts of work that the caller does itself and that takes long: call meanwhile(), if it may
 * wait. False if that abandons the work.
 */
bool errands_pause(const struct errands *errands);

/* What waits for ljspy waits for about a millisecond. */
enum { ERRANDS_PAUSE_BYTES = 1 << 20 };

/*
 * The same for a search: before it reads so many bytes more, pause if that makes a megabyte. *bytes is how
 * many it has read since the last pause. False from then on, once the work is abandoned.
 */
static inline bool errands_pause_before(const struct errands *errands, uint64_t *bytes, uint64_t length)
{
	*bytes += length;
	if (*bytes < ERRANDS_PAUSE_BYTES)
		return true;
	if (!errands_pause(errands))
		return false;
	*bytes = 0;
	return true;
}

/* Uses only its arguments, and what lives as long as the process. */
typedef void errand_work(void *arguments);

/*
 * Run work() on a copy of the arguments (size bytes), and copy the result back. False if the caller may not
 * wait, the errand takes too long, nothing is left of what errands are allowed, or too many have been
 * abandoned; the arguments are then unchanged. If abandoned work ends after all, undo() frees what the copy
 * owns by then; it may be NULL. With errands NULL, the caller does the work itself; so it does where memory
 * is short for a helper, as what was not read would be taken for what is not there.
 */
bool errands_run(struct errands *errands, errand_work *work, errand_work *undo, void *arguments, size_t size);

/*
 * The same for what must be done in any case, such as closing a file: where errands_run() would fail, a
 * helper does it, however late.
 */
void errands_finish(struct errands *errands, errand_work *work, void *arguments, size_t size);

#endif

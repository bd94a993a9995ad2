/* SPDX-License-Identifier: MIT */
#include "output/reports/turns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "memory/hash.h"
#include "output/sample/functions.h"

enum {
	NAME_SIZE = 64,
	SAME_LOOP_NS = 500 * 1000, /* half a step of the loop's clock, which counts milliseconds */
};

enum decision {
	UNDECIDED,
	IS_LONG,
	IS_SHORT,
};

struct open_turn {
	struct turn turn;
	enum decision decision;
	size_t waiting; /* its samples in the queue */
};

/* A queued sample, passed to take() if its turn is long. */
struct entry {
	struct open_turn *of;
	struct entry *next;
	bool weighed; /* sample.wall_ns is set */
	char process_name[NAME_SIZE], thread_name[NAME_SIZE];
	struct sample sample;
	struct frame frames[];
};

struct loop_thread {
	pid_t tid;
	bool is_loop;             /* it has waited for events, or its loop's clock is known */
	bool has_clock;           /* its loop's clock is known */
	uint64_t last_ns;         /* time of its last sample; 0 if there was none */
	uint64_t loop_ns, sleeps; /* of the last sample */
	uint64_t from_ns;         /* begin of the time that the last sample stands for */
	struct open_turn *turn;   /* NULL while the loop waits */
	struct entry *last;       /* the turn's last sample, not yet weighed; NULL if none */
	UT_hash_handle hh;
};

struct turns {
	struct turns_options options;
	struct loop_thread *threads;
	struct entry *queue, *queue_end; /* in time order */
	uint64_t count;
	uint64_t clock_step_ns; /* the loop's clock may lag by this much */
};

struct turns *turns_new(const struct turns_options *options)
{
	struct turns *turns = calloc(1, sizeof(*turns));
	struct timespec step = { 0 };

	if (!turns)
		return NULL;
	turns->options = *options;
	clock_getres(CLOCK_MONOTONIC_COARSE, &step);
	turns->clock_step_ns = (uint64_t)step.tv_nsec + 2 * SAME_LOOP_NS;
	return turns;
}

/*---- The queue ----*/

/* Free an entry, and its turn if this was the last entry of a turn that is over. */
static void drop_entry(struct entry *entry)
{
	struct open_turn *of = entry->of;

	of->waiting--;
	if (of->turn.end_ns && of->waiting == 0)
		free(of);
	free(entry);
}

/* A turn whose last sample is refused is over, too. */
static int hand_on(struct turns *turns, const struct entry *entry)
{
	const struct open_turn *of = entry->of;
	int error = 0, cause;

	if (of->decision == IS_LONG)
		error = turns->options.take(turns->options.context, &of->turn, &entry->sample);
	cause = errno;
	if (of->turn.end_ns && of->waiting == 1)
		turns->options.close(turns->options.context, &of->turn, of->decision == IS_LONG);
	errno = cause;
	return error;
}

/* Pass on the queue up to the first sample that is not weighed or whose turn is undecided. */
static int flush(struct turns *turns)
{
	int error = 0;

	while (turns->queue && turns->queue->weighed && turns->queue->of->decision != UNDECIDED && !error) {
		struct entry *entry = turns->queue;

		error = hand_on(turns, entry);
		turns->queue = entry->next;
		if (!turns->queue)
			turns->queue_end = NULL;
		drop_entry(entry);
	}
	return error;
}

static void copy_name(char to[static NAME_SIZE], const char **name)
{
	if (!*name)
		return;
	strncpy(to, *name, NAME_SIZE - 1);
	*name = to;
}

static struct entry *add_entry(struct turns *turns, struct open_turn *of, const struct sample *sample)
{
	struct entry *entry = calloc(1, sizeof(*entry) + sample->frame_count * sizeof(struct frame));

	if (!entry)
		return NULL;
	entry->of = of;
	entry->sample = *sample;
	entry->sample.trace = NULL;
	copy_name(entry->process_name, &entry->sample.process_name);
	copy_name(entry->thread_name, &entry->sample.thread_name);
	if (sample->frame_count)
		memcpy(entry->frames, sample->frames, sample->frame_count * sizeof(struct frame));
	entry->sample.frames = entry->frames;
	if (turns->queue_end)
		turns->queue_end->next = entry;
	else
		turns->queue = entry;
	turns->queue_end = entry;
	of->waiting++;
	return entry;
}

/*---- Turns ----*/

static uint64_t middle(uint64_t a, uint64_t b)
{
	return a + (b - a) / 2;
}

/* The thread's last sample stands for the time up to until_ns. */
static void weigh_last(struct loop_thread *thread, uint64_t until_ns)
{
	if (!thread->last)
		return;
	thread->last->sample.wall_ns = until_ns > thread->from_ns ? until_ns - thread->from_ns : 0;
	thread->last->weighed = true;
	thread->last = NULL;
	thread->from_ns = until_ns;
}

/* End the thread's turn, half-way between its last sample and over_ns, when it was over. */
static void end_turn(struct turns *turns, struct loop_thread *thread, uint64_t over_ns)
{
	struct open_turn *of = thread->turn;
	uint64_t end_ns = middle(thread->last_ns, over_ns);

	if (!of)
		return;
	weigh_last(thread, end_ns);
	of->turn.end_ns = end_ns;
	of->turn.slack_ns += (over_ns - thread->last_ns) / 2;
	of->decision = end_ns - of->turn.begin_ns >= turns->options.threshold_ns ? IS_LONG : IS_SHORT;
	thread->turn = NULL;
	if (of->waiting == 0) /* memory was short */
		free(of);
}

/*
 * Does the loop's clock show when the turn began? The clock is coarse: for a turn
 * that began right after the last sample, it may show an earlier time.
 */
static bool knows_begin(const struct loop_thread *thread, const struct sample *sample)
{
	return sample->loop_ns > thread->last_ns && sample->loop_ns <= sample->time_ns;
}

static int begin_turn(struct turns *turns, struct loop_thread *thread, const struct sample *sample)
{
	uint64_t before_ns = thread->last_ns ? thread->last_ns : sample->time_ns;
	struct open_turn *of = calloc(1, sizeof(*of));

	if (!of)
		return -ENOMEM;
	of->turn = (struct turn){ .pid = sample->pid, .tid = sample->tid, .number = ++turns->count };
	if (knows_begin(thread, sample)) {
		of->turn.begin_ns = sample->loop_ns;
		of->turn.slack_ns = turns->clock_step_ns;
	} else {
		of->turn.begin_ns = middle(before_ns, sample->time_ns);
		of->turn.slack_ns = (sample->time_ns - before_ns) / 2;
	}
	thread->turn = of;
	thread->from_ns = of->turn.begin_ns;
	return 0;
}

/* Does the sample belong to the turn of the thread's last sample? */
static bool goes_on(const struct loop_thread *thread, const struct sample *sample)
{
	if (!thread->turn)
		return false;
	if (sample->loop_ns && thread->loop_ns)
		return sample->loop_ns - thread->loop_ns + SAME_LOOP_NS <= 2 * SAME_LOOP_NS;
	return sample->sleeps && sample->sleeps == thread->sleeps;
}

/* Add a sample of a loop that does not wait. 0 or -ENOMEM. */
static int add_busy(struct turns *turns, struct loop_thread *thread, const struct sample *sample)
{
	if (goes_on(thread, sample)) {
		weigh_last(thread, middle(thread->last_ns, sample->time_ns));
		thread->turn->turn.may_be_several |= !(sample->loop_ns && thread->loop_ns) &&
						     (sample->thread_state == THREAD_RUNNING ||
						      sample->thread_state == THREAD_RUNNABLE);
	} else {
		int error;

		end_turn(turns, thread, knows_begin(thread, sample) ? sample->loop_ns : sample->time_ns);
		error = begin_turn(turns, thread, sample);
		if (error)
			return error;
	}
	thread->last = add_entry(turns, thread->turn, sample);
	if (!thread->last)
		return -ENOMEM;
	if (sample->time_ns - thread->turn->turn.begin_ns >= turns->options.threshold_ns)
		thread->turn->decision = IS_LONG;
	return 0;
}

static struct loop_thread *find_thread(struct turns *turns, const struct sample *sample)
{
	struct loop_thread *thread;

	HASH_FIND_INT(turns->threads, &sample->tid, thread);
	if (thread)
		return thread;
	thread = calloc(1, sizeof(*thread));
	if (!thread)
		return NULL;
	thread->tid = sample->tid;
	HASH_ADD_INT(turns->threads, tid, thread);
	if (hash_added(&thread->hh))
		return thread;
	free(thread);
	return NULL;
}

/*
 * A process whose loop has a clock has one loop, that of its first thread: others wait for work, as those of
 * a pool.
 */
static bool is_beside_loop(const struct turns *turns, const struct sample *sample)
{
	const struct loop_thread *first;

	HASH_FIND_INT(turns->threads, &sample->pid, first);
	return sample->tid != sample->pid && !sample->loop_ns && first && first->has_clock;
}

int turns_add(struct turns *turns, const struct sample *sample)
{
	struct loop_thread *thread = find_thread(turns, sample);
	int error = 0;

	if (!thread)
		return -ENOMEM;
	if (is_beside_loop(turns, sample)) {
		end_turn(turns, thread, thread->last_ns);
		return flush(turns);
	}
	/* Without the loop's clock and the count of sleeps, a busy sample belongs to no known turn. */
	if (!sample->loop_ns && !sample->sleeps && sample->thread_state != THREAD_IDLE)
		return 0;
	thread->has_clock |= sample->loop_ns != 0;
	thread->is_loop |= sample->loop_ns != 0 || sample->awaits_events;
	if (sample->thread_state == THREAD_IDLE)
		end_turn(turns, thread, sample->time_ns);
	else if (thread->is_loop)
		error = add_busy(turns, thread, sample);
	if (error)
		return error;
	thread->last_ns = sample->time_ns;
	thread->loop_ns = sample->loop_ns;
	thread->sleeps = sample->sleeps;
	return flush(turns);
}

int turns_finish(struct turns *turns, uint64_t *lost)
{
	struct loop_thread *thread, *next;
	int error, grave = 0;

	HASH_ITER(hh, turns->threads, thread, next) {
		end_turn(turns, thread, thread->last_ns);
	}
	while (grave != -EIO && (error = flush(turns)) != 0) {
		++*lost;
		if (error == -EIO || error == -ENOMEM)
			grave = error;
	}
	for (const struct entry *entry = turns->queue; entry; entry = entry->next)
		*lost += entry->of->decision == IS_LONG;
	return grave;
}

void turns_keep_functions(const struct turns *turns)
{
	for (const struct entry *entry = turns->queue; entry; entry = entry->next) {
		for (size_t i = 0; i < entry->sample.frame_count; i++)
			functions_keep(entry->frames[i].function);
		functions_keep(entry->sample.wait);
	}
}

void turns_free(struct turns *turns)
{
	struct loop_thread *thread, *next;

	if (!turns)
		return;
	HASH_ITER(hh, turns->threads, thread, next) {
		end_turn(turns, thread, thread->last_ns); /* the turn is freed with its last entry */
		HASH_DEL(turns->threads, thread);
		free(thread);
	}
	while (turns->queue) {
		struct entry *entry = turns->queue;

		turns->queue = entry->next;
		drop_entry(entry);
	}
	free(turns);
}

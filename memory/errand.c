/* SPDX-License-Identifier: MIT */
#include "memory/errand.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "memory/semaphore_wait.h"

enum {
	MEANWHILE_NS = 2 * 1000 * 1000,
	/* A disk that has to spin up takes longer. The next try then finds its data in memory. */
	WAIT_NS = 500 * 1000 * 1000,
	NS_PER_S = 1000 * 1000 * 1000,
	LEFT_MAX = 2, /* abandoned errands; with so many under way, new ones fail */
	/*
	 * A helper reads, no more; the usual stack of a thread would not fit where ulimit -v allows little.
	 */
	STACK_BYTES = 256 << 10,
};

struct errand {
	errand_work *work, *undo;
	size_t size;
	uint64_t took_ns; /* without the time that the helper waited for a CPU to begin */
	_Alignas(max_align_t) unsigned char arguments[];
};

/* A helper thread and its errand. */
struct helper {
	struct errands *errands;
	pthread_t thread;
	sem_t begin, end;
	struct errand *errand;  /* NULL: end */
	atomic_flag is_claimed; /* set by the first: the helper when done, or the caller when it gives up */
};

struct errands {
	struct errands_waiter waiter;
	bool serve_nobody;     /* that is nobody's */
	uint64_t *left_ns;     /* for all waits from now on; NULL: without end */
	pid_t pid;             /* of the process that the helper is a thread of */
	int policy, priority;  /* the caller's when it made this */
	struct helper *helper; /* NULL if there is none */
	atomic_uint left;      /* helpers with an errand, or abandoned with one */
	atomic_uint users;     /* of this structure: these helpers, and the owner */
};

struct errands *errands_new(void)
{
	struct errands *errands = calloc(1, sizeof(*errands));
	struct sched_param parameters = { .sched_priority = 0 };

	if (!errands)
		return NULL;
	errands->users = 1;
	sched_getparam(0, &parameters);
	errands->policy = sched_getscheduler(0);
	errands->priority = parameters.sched_priority;
	errands_wait_as(errands, NULL);
	return errands;
}

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

static struct timespec time_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S) };
}

static void release(struct errands *errands)
{
	if (atomic_fetch_sub(&errands->users, 1) == 1)
		free(errands);
}

static void free_helper(struct helper *helper)
{
	sem_destroy(&helper->begin);
	sem_destroy(&helper->end);
	free(helper);
}

/*---- The helper ----*/

/* End an abandoned helper, from its own thread. */
static void end_left(struct helper *helper)
{
	struct errands *errands = helper->errands;
	struct errand *errand = helper->errand;

	if (errand->undo)
		errand->undo(errand->arguments);
	free(errand);
	free_helper(helper);
	/* Nobody joins this thread, so its stack would stay for good. */
	pthread_detach(pthread_self());
	errands->left--;
	release(errands);
}

static void *help(void *context)
{
	struct helper *helper = context;

	prctl(PR_SET_NAME, ERRAND_THREAD_NAME);
	for (;;) {
		uint64_t begin_ns;

		while (sem_wait(&helper->begin))
			;
		if (!helper->errand)
			return NULL;
		begin_ns = now_ns();
		helper->errand->work(helper->errand->arguments);
		helper->errand->took_ns = now_ns() - begin_ns;
		if (atomic_flag_test_and_set(&helper->is_claimed)) {
			end_left(helper);
			return NULL;
		}
		sem_post(&helper->end);
	}
}

/* The thread blocks all signals. It has the policy that ljspy started with, not the tracer's urgent one. */
static int start_thread(struct helper *helper)
{
	const struct sched_param usual = { .sched_priority = helper->errands->priority };
	sigset_t all, before;
	pthread_attr_t attributes;
	int error;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attributes, helper->errands->policy);
	pthread_attr_setschedparam(&attributes, &usual);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&helper->thread, &attributes, help, helper);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return error;
}

static struct helper *start_helper(struct errands *errands)
{
	struct helper *helper = calloc(1, sizeof(*helper));

	if (!helper)
		return NULL;
	helper->errands = errands;
	sem_init(&helper->begin, 0, 0);
	sem_init(&helper->end, 0, 0);
	if (start_thread(helper) == 0)
		return helper;
	free_helper(helper);
	return NULL;
}

static void end_helper(struct helper *helper)
{
	helper->errand = NULL;
	sem_post(&helper->begin);
	pthread_join(helper->thread, NULL);
	free_helper(helper);
}

/* After fork(), the child has no helper: forget the parent's. */
static void leave_parents(struct errands *errands)
{
	if (errands->pid == getpid())
		return;
	errands->pid = getpid();
	errands->helper = NULL;
	errands->left = 0;
}

void errands_free(struct errands *errands)
{
	if (!errands)
		return;
	leave_parents(errands);
	if (errands->helper)
		end_helper(errands->helper);
	errands->helper = NULL;
	release(errands);
}

struct errands *errands_anew(struct errands *errands)
{
	struct errands *others = errands_new();

	if (others) {
		others->waiter = errands->waiter;
		others->serve_nobody = errands->serve_nobody;
		others->left_ns = errands->left_ns;
	}
	errands_free(errands);
	return others;
}

/*---- The caller ----*/

static bool always(void *context)
{
	(void)context;
	return true;
}

void errands_wait_as(struct errands *errands, const struct errands_waiter *waiter)
{
	const struct errands_waiter nobody = { .may_wait = always, .meanwhile = always };

	errands->waiter = waiter ? *waiter : nobody;
	errands->serve_nobody = !waiter;
}

void errands_allow(struct errands *errands, uint64_t *left_ns)
{
	errands->left_ns = left_ns;
}

static uint64_t allowed_ns(const struct errands *errands)
{
	return errands->left_ns ? *errands->left_ns : UINT64_MAX;
}

bool errands_may_wait(const struct errands *errands)
{
	return errands->waiter.may_wait(errands->waiter.context);
}

bool errands_serve_nobody(const struct errands *errands)
{
	return errands->serve_nobody;
}

bool errands_pause(const struct errands *errands)
{
	return !errands || !errands_may_wait(errands) || !errands->waiter.meanwhile ||
	       errands->waiter.meanwhile(errands->waiter.context);
}

/* Abandon the helper. False if it has just finished: it tells so as soon as it has a CPU. */
static bool abandon(struct helper *helper)
{
	return !atomic_flag_test_and_set(&helper->is_claimed);
}

/* False if the caller gave up: the helper is abandoned. */
static bool await(const struct errands *errands, struct helper *helper)
{
	const struct errands_waiter *waiter = &errands->waiter;
	const uint64_t allowed = allowed_ns(errands);
	const uint64_t end_ns = now_ns() + (allowed < WAIT_NS ? allowed : WAIT_NS);
	bool is_done = false;

	for (;;) {
		const struct timespec moment = time_of(now_ns() + MEANWHILE_NS);
		bool gives_up;

		if (semaphore_wait_until(&helper->end, &moment) == 0)
			return true;
		gives_up = !waiter->meanwhile(waiter->context) || now_ns() >= end_ns;
		if (is_done || !gives_up)
			continue;
		if (abandon(helper))
			return false;
		is_done = true;
	}
}

static struct errand *new_errand(errand_work *work, errand_work *undo, const void *arguments, size_t size)
{
	struct errand *errand = malloc(sizeof(*errand) + size);

	if (!errand)
		return NULL;
	*errand = (struct errand){ .work = work, .undo = undo, .size = size };
	memcpy(errand->arguments, arguments, size);
	return errand;
}

static void use_up(struct errands *errands, uint64_t ns)
{
	const uint64_t allowed = allowed_ns(errands);

	if (allowed != UINT64_MAX)
		*errands->left_ns -= ns < allowed ? ns : allowed;
}

/* An abandoned helper frees itself and its errand: do not touch them after await() has failed. */
static bool send(struct errands *errands, struct errand *errand, bool awaits)
{
	struct helper *helper = errands->helper;
	const uint64_t begin_ns = now_ns();

	helper->errand = errand;
	atomic_flag_clear(&helper->is_claimed);
	errands->users++;
	errands->left++;
	/* Before it begins: to await even one that has just finished would be a wait for a CPU. */
	if (!awaits)
		abandon(helper);
	sem_post(&helper->begin);
	if (!awaits || !await(errands, helper)) {
		use_up(errands, now_ns() - begin_ns);
		errands->helper = NULL;
		return false;
	}
	use_up(errands, errand->took_ns);
	errands->left--;
	errands->users--;
	return true;
}

/* False if the errand is abandoned, at once where the caller does not await it. */
static bool run(struct errands *errands, struct errand *errand, void *arguments, bool awaits)
{
	if (!send(errands, errand, awaits))
		return false;
	memcpy(arguments, errand->arguments, errand->size);
	free(errand);
	return true;
}

/* NULL when memory is short, also for a helper. */
static struct errand *prepare(struct errands *errands, errand_work *work, errand_work *undo,
			      const void *arguments, size_t size)
{
	if (!errands->helper)
		errands->helper = start_helper(errands);
	return errands->helper ? new_errand(work, undo, arguments, size) : NULL;
}

static bool may_begin(const struct errands *errands)
{
	return errands_may_wait(errands) && allowed_ns(errands) && errands->left < LEFT_MAX;
}

bool errands_run(struct errands *errands, errand_work *work, errand_work *undo, void *arguments, size_t size)
{
	struct errand *errand = NULL;

	if (errands) {
		leave_parents(errands);
		if (!may_begin(errands))
			return false;
		errand = prepare(errands, work, undo, arguments, size);
	}
	if (errand)
		return run(errands, errand, arguments, true);
	work(arguments);
	return true;
}

void errands_finish(struct errands *errands, errand_work *work, void *arguments, size_t size)
{
	struct errand *errand = NULL;

	if (errands) {
		leave_parents(errands);
		errand = prepare(errands, work, NULL, arguments, size);
	}
	if (errand)
		run(errands, errand, arguments, may_begin(errands));
	else
		work(arguments);
}

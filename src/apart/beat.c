/* SPDX-License-Identifier: MIT */
/* The front's thread that beats, so that the engine knows the front runs, and receives signals. */
#include "src/apart/apart_state.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "memory/child_wait.h"
#include "src/linux/clocks/clock.h"
#include "src/program/interruption.h"
#include "src/program/wake_signal.h"

enum {
	TAKER_WAITS_S = 10, /* unless it is woken */
	/* The taker is woken at most once in so many beats, unless the queue is filled so far. */
	BEATS_PER_TAKE = 3,
	FILLED_BYTES = QUEUE_SIZE / 8,
	/*
	 * Signals that come closer together count as one: timeout(1) sends two, and so do impatient shells.
	 */
	ANOTHER_NS = 100 * 1000 * 1000,
};

static void fill_signals(sigset_t *ret_signals)
{
	sigemptyset(ret_signals);
	sigaddset(ret_signals, SIGINT);
	sigaddset(ret_signals, SIGTERM);
	sigaddset(ret_signals, SIGHUP);
	sigaddset(ret_signals, SIGQUIT);
	sigaddset(ret_signals, WAKE_SIGNAL);
}

/* The guard dies with the front, and the engine with the guard. */
static void die_of(int number)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, number);
	signal(number, SIG_DFL);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	raise(number);
}

static void note_signal(struct apart *apart, const siginfo_t *info)
{
	uint64_t now = clock_now_ns(CLOCK_MONOTONIC), first = 0;

	if (info->si_signo == WAKE_SIGNAL || info->si_signo == SIGCHLD)
		return;
	if (!apart->options->can_be_concluded)
		die_of(info->si_signo);
	if (atomic_compare_exchange_strong(&apart->interrupted_ns, &first, now)) {
		apart->interrupted_by_process = interruption_is_from_process(info);
		apart->interrupted_by = info->si_signo;
		apart->shared->end_wanted = true;
	} else if (info->si_signo == SIGINT && info->si_code != SI_TKILL && now - first >= ANOTHER_NS) {
		die_of(info->si_signo);
	}
}

void beat_await(struct apart *apart)
{
	const struct timespec timeout = { .tv_sec = TAKER_WAITS_S };
	sigset_t signals;
	siginfo_t info;

	fill_signals(&signals);
	apart->taker_waits = true;
	if (!queue_bytes(&apart->shared->queue) && !apart->engine_is_gone &&
	    sigtimedwait(&signals, &info, &timeout) > 0)
		note_signal(apart, &info);
	apart->taker_waits = false;
}

/*
 * Continue the guard if it is stopped. Note its end: the engine has ended before it, or dies with it. If
 * the guard cannot be watched, end it.
 */
static void watch_guard(struct apart *apart)
{
	pid_t reported;
	int status;

	if (apart->engine_is_gone)
		return;
	reported = child_wait(apart->guard, &status, WUNTRACED | WNOHANG);
	if (reported == apart->guard && WIFSTOPPED(status)) {
		kill(apart->guard, SIGCONT);
	} else if (reported != 0) {
		if (reported < 0) {
			apart->shared->wait_error = errno;
			kill(apart->guard, SIGKILL);
		}
		apart->engine_is_gone = true;
	}
}

static bool is_something_new(const struct apart *apart)
{
	return queue_bytes(&apart->shared->queue) || apart->results_seen != apart->shared->results_version;
}

static bool must_take_now(const struct apart *apart)
{
	return apart->engine_is_gone || apart->shared->rests ||
	       queue_bytes(&apart->shared->queue) >= FILLED_BYTES;
}

/* Each wake-up costs about as much as a sample of a small stack. */
static void wake_taker(struct apart *apart, unsigned int *beats)
{
	++*beats;
	if (!apart->taker_waits || !(is_something_new(apart) || apart->engine_is_gone) ||
	    !(*beats >= BEATS_PER_TAKE || must_take_now(apart)))
		return;
	*beats = 0;
	apart->taker_waits = false;
	pthread_kill(apart->taker, WAKE_SIGNAL);
}

static void *beat(void *context)
{
	struct apart *apart = context;
	struct shared *shared = apart->shared;
	unsigned int beats = 0; /* since the taker was woken */
	sigset_t signals;

	fill_signals(&signals);
	sigaddset(&signals, SIGCHLD);
	shared->beat_tid = gettid();
	while (!apart->taker_is_done) {
		const long period_ns = shared->rests ? BEAT_AT_REST_NS : BEAT_NS;
		const struct timespec period = { .tv_nsec = period_ns };
		siginfo_t info;

		shared->beat_due_ns = clock_now_ns(CLOCK_MONOTONIC) + (uint64_t)period_ns + SILENCE_NS -
				      BEAT_NS;
		watch_guard(apart);
		wake_taker(apart, &beats);
		if (sigtimedwait(&signals, &info, &period) > 0)
			note_signal(apart, &info);
	}
	return NULL;
}

int beat_begin(struct apart *apart)
{
	return -pthread_create(&apart->beater, NULL, beat, apart);
}

void beat_end(struct apart *apart)
{
	apart->taker_is_done = true;
	pthread_kill(apart->beater, WAKE_SIGNAL);
	pthread_join(apart->beater, NULL);
}

/* SPDX-License-Identifier: MIT */
#include "src/linux/clocks/own_turn.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "src/linux/clocks/clock.h"
#include "src/linux/clocks/scheduler.h"

enum {
	/* A turn is used up after this CPU time. A look and a hold take some 100 us; no slice is shorter. */
	USED_UP_NS = 50 * 1000,
	/* If ljspy preempts a thread, ljspy's turn begins within this time after the thread left its CPU. */
	BEGINNING_NS = 50 * 1000,
	/* A sleep this much too long, apart from waiting for a CPU, means that ljspy was stopped. */
	OVERSLEPT_NS = 2 * 1000 * 1000,
	/* The scheduler's clock leaves out interrupts. */
	KNOWN_AHEAD_NS = 1000 * 1000 * 1000,
	/* An eighth of a CPU, and so much more or less than that at once. */
	MODEST_ONE_IN = 8,
	CREDIT_MAX_NS = 20 * 1000 * 1000,
	/* A sample asks twice: to read the thread's CPU time takes a system call. */
	CREDIT_LASTS_NS = 1000 * 1000,
};

static bool read_own(int fd, char *text, size_t size)
{
	ssize_t length = fd >= 0 ? pread(fd, text, size - 1, 0) : 0;

	if (length <= 0)
		return false;
	text[length] = '\0';
	return true;
}

static struct schedstat read_schedstat(const struct own_turn *turn)
{
	char text[SCHEDSTAT_MAX];

	if (!read_own(turn->schedstat_fd, text, sizeof(text)))
		return (struct schedstat){ 0 };
	return schedstat_parse(text);
}

static void note(struct own_turn *turn, const struct schedstat *schedstat)
{
	turn->waited_ns = schedstat->waited_ns;
	turn->runs = schedstat->runs;
}

/* Now, for the beginning of a turn. */
struct beginning {
	uint64_t cpu_ns, raw_ns;
	int cpu;
};

static struct beginning now_is(void)
{
	return (struct beginning){
		/* Reading this clock makes the kernel count up to now, so the value is exact. */
		.cpu_ns = clock_now_ns(CLOCK_THREAD_CPUTIME_ID),
		.raw_ns = clock_now_ns(CLOCK_MONOTONIC_RAW),
		.cpu = sched_getcpu(),
	};
}

static void begin(struct own_turn *turn, struct beginning beginning)
{
	turn->begin_cpu_ns = beginning.cpu_ns;
	turn->begin_raw_ns = beginning.raw_ns;
	turn->begin_cpu = beginning.cpu;
	turn->began_at = 0;
}

void own_turn_open(struct own_turn *turn)
{
	struct schedstat schedstat;

	*turn = (struct own_turn){
		.schedstat_fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC),
		.sched_fd = open("/proc/thread-self/sched", O_RDONLY | O_CLOEXEC),
	};
	schedstat = read_schedstat(turn);
	note(turn, &schedstat);
	begin(turn, now_is());
	turn->credit_ns = CREDIT_MAX_NS;
	turn->credit_cpu_ns = turn->begin_cpu_ns;
	turn->credit_raw_ns = turn->begin_raw_ns;
}

void own_turn_close(struct own_turn *turn)
{
	if (turn->schedstat_fd >= 0)
		close(turn->schedstat_fd);
	if (turn->sched_fd >= 0)
		close(turn->sched_fd);
}

/*
 * It may have waited for a CPU before it slept, too, while the time ran: only what it slept too long made it
 * late.
 */
static uint64_t late(uint64_t waited_ns, uint64_t took_ns, uint64_t asked_ns)
{
	const uint64_t over_ns = took_ns > asked_ns ? took_ns - asked_ns : 0;

	return waited_ns < over_ns ? waited_ns : over_ns;
}

int own_turn_wait(struct own_turn *turn, const sigset_t *signals, siginfo_t *ret_info,
		  const struct timespec *timeout)
{
	const uint64_t asked_ns = (uint64_t)timeout->tv_sec * NS_PER_SECOND + (uint64_t)timeout->tv_nsec;
	struct schedstat schedstat = read_schedstat(turn);
	struct beginning woken;
	uint64_t start_ns = clock_now_ns(CLOCK_MONOTONIC), end_ns;
	int signal, error;
	bool slept, stopped;

	note(turn, &schedstat);
	signal = sigtimedwait(signals, ret_info, timeout);
	error = errno;
	/* At once: reading a file takes tens of microseconds where a target has the caches. */
	woken = now_is();
	end_ns = clock_now_ns(CLOCK_MONOTONIC);
	schedstat = read_schedstat(turn);
	slept = schedstat.runs != turn->runs || !schedstat.runs;
	if (slept)
		begin(turn, woken);
	turn->late_ns = late(schedstat.waited_ns - turn->waited_ns, end_ns - start_ns,
			     signal < 0 && error == EAGAIN ? asked_ns : 0);
	/* A stop ends the wait; a stop at the very end of the wait makes it longer. */
	stopped = (signal < 0 && error == EINTR) ||
		  end_ns - start_ns > asked_ns + turn->late_ns + OVERSLEPT_NS;
	turn->woken_ns = slept && !stopped ? end_ns - turn->late_ns : 0;
	note(turn, &schedstat);
	errno = error;
	return signal;
}

bool own_turn_is_used_up(const struct own_turn *turn)
{
	return clock_now_ns(CLOCK_THREAD_CPUTIME_ID) - turn->begin_cpu_ns > USED_UP_NS;
}

bool own_turn_is_modest(struct own_turn *turn)
{
	const uint64_t raw_ns = clock_now_ns(CLOCK_MONOTONIC_RAW);
	uint64_t cpu_ns;

	if (raw_ns - turn->credit_raw_ns < CREDIT_LASTS_NS)
		return turn->credit_ns > 0;
	cpu_ns = clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
	turn->credit_ns += (int64_t)((raw_ns - turn->credit_raw_ns) / MODEST_ONE_IN) -
			   (int64_t)(cpu_ns - turn->credit_cpu_ns);
	if (turn->credit_ns > CREDIT_MAX_NS)
		turn->credit_ns = CREDIT_MAX_NS;
	if (turn->credit_ns < -CREDIT_MAX_NS)
		turn->credit_ns = -CREDIT_MAX_NS;
	turn->credit_cpu_ns = cpu_ns;
	turn->credit_raw_ns = raw_ns;
	return turn->credit_ns > 0;
}

void own_turn_renew(struct own_turn *turn)
{
	const struct timespec moment = { .tv_nsec = 1 };

	nanosleep(&moment, NULL);
	begin(turn, now_is());
}

uint64_t own_turn_waited(const struct own_turn *turn)
{
	struct schedstat schedstat = read_schedstat(turn);

	return schedstat.waited_ns > turn->waited_ns ? schedstat.waited_ns - turn->waited_ns : 0;
}

/* When the turn began, by the scheduler's clock; 0 if that cannot be known. Takes 5 us. */
static uint64_t read_began_at(const struct own_turn *turn)
{
	struct switches switches;
	char text[SCHED_MAX];

	/* While ljspy is on a CPU, the scheduler's clock and ljspy's CPU time advance together. */
	if (!read_own(turn->sched_fd, text, sizeof(text)) || !switches_parse(text, &switches))
		return 0;
	return switches.left_at - (switches.cpu_ns - turn->begin_cpu_ns);
}

static bool is_beginning(uint64_t began_at, uint64_t left_at)
{
	return left_at <= began_at && began_at - left_at < BEGINNING_NS;
}

/*
 * The same, by how far that clock was ahead of another one a moment ago; 0 if that is not known. Some 15 us
 * wrong at most, but for interrupts meanwhile, which make it too late.
 */
static uint64_t guess_began_at(const struct own_turn *turn)
{
	return turn->begin_raw_ns < turn->ahead.until && turn->begin_cpu == turn->ahead.cpu
		       ? turn->begin_raw_ns + turn->ahead.ns
		       : 0;
}

static void note_ahead(struct own_turn *turn)
{
	turn->ahead.ns = turn->began_at - turn->begin_raw_ns;
	turn->ahead.cpu = turn->begin_cpu;
	turn->ahead.until = turn->begin_cpu >= 0 && turn->begin_cpu == sched_getcpu()
				    ? turn->begin_raw_ns + KNOWN_AHEAD_NS
				    : 0;
}

bool own_turn_began_at(struct own_turn *turn, uint64_t left_at)
{
	if (!left_at)
		return false;
	if (!turn->began_at) {
		/* Where the guess says no, it may be wrong. */
		if (is_beginning(guess_began_at(turn), left_at))
			return true;
		turn->began_at = read_began_at(turn);
		if (turn->began_at)
			note_ahead(turn);
	}
	return is_beginning(turn->began_at, left_at);
}

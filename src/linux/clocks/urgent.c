/* SPDX-License-Identifier: MIT */
#include "src/linux/clocks/urgent.h"

#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include "src/linux/clocks/notify.h"

enum {
	NICE_BASE = 20, /* RLIMIT_NICE is this minus the best nice value allowed */
	/*
	 * Sleep once in so many holds: the kernel restarts its count for RLIMIT_RTTIME
	 * only at a sleep under SCHED_RR. A hold sees one tick at most.
	 */
	REST_AFTER = 50,
	/*
	 * Where others want all CPUs, samples need more than an equal share: of 33 threads on a CPU
	 * each has 3 %. By this value ljspy's thread weighs about ten times theirs (sched(7)).
	 */
	NICE_ALWAYS = -10,
	RR_LOWEST = 1, /* sched(7); each hold would ask sched_get_priority_min() else */
	/* Of CPU time. A sample takes some 0.1 ms, and the kernel looks at such timers at its ticks. */
	TIMER_NS = 4 * 1000 * 1000,
};

static bool set_policy(int policy)
{
	const struct sched_param parameters = {
		.sched_priority = (policy & ~SCHED_RESET_ON_FORK) == SCHED_RR ? RR_LOWEST : 0,
	};

	return sched_setscheduler(0, policy, &parameters) == 0;
}

static bool set_nice(int nice)
{
	return setpriority(PRIO_PROCESS, (id_t)gettid(), nice) == 0;
}

static bool is_real_time(int policy)
{
	return policy != SCHED_OTHER && policy != SCHED_BATCH && policy != SCHED_IDLE;
}

static void bound(struct urgent *urgent)
{
	struct rlimit limit = urgent->limit;

	if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < URGENT_MAX_US)
		return;
	limit.rlim_cur = URGENT_MAX_US;
	setrlimit(RLIMIT_RTTIME, &limit);
}

/* Who may have the best nice value may have any. */
static enum urgent_means find_nice(struct urgent *urgent)
{
	struct rlimit limit;

	if (urgent->policy < 0 || is_real_time(urgent->policy) || urgent->policy == SCHED_IDLE)
		return URGENT_NOT_ALLOWED;
	urgent->best_nice = -NICE_BASE;
	if (getrlimit(RLIMIT_NICE, &limit) == 0 && limit.rlim_cur < 2 * NICE_BASE && !set_nice(-NICE_BASE))
		urgent->best_nice = NICE_BASE - (int)limit.rlim_cur;
	if (urgent->best_nice >= urgent->nice || !set_nice(urgent->best_nice))
		return URGENT_NOT_ALLOWED;
	set_nice(urgent->nice);
	return URGENT_BY_NICE;
}

static enum urgent_means find_means(struct urgent *urgent)
{
	if (urgent->policy < 0 || is_real_time(urgent->policy))
		return URGENT_NOT_ALLOWED;
	if (getrlimit(RLIMIT_RTTIME, &urgent->limit) == 0 && set_policy(SCHED_RR)) {
		/* Processes that ljspy starts have neither the policy nor the nice value. */
		urgent->policy |= SCHED_RESET_ON_FORK;
		set_policy(urgent->policy);
		if (urgent->nice == 0)
			set_nice(NICE_ALWAYS);
		bound(urgent);
		return URGENT_BY_POLICY;
	}
	return find_nice(urgent);
}

static void take_back(struct urgent *urgent)
{
	if (urgent->means == URGENT_BY_NICE)
		set_nice(urgent->nice);
	else
		set_policy(urgent->policy);
	urgent->goes_on = urgent->begun = false;
}

/* Where in its period the timer was at first is unknown: only the second expiry means long work. */
static void handle_signal(int signal, siginfo_t *info, void *context)
{
	struct urgent *urgent = info->si_value.sival_ptr;
	int saved_errno = errno;

	(void)signal;
	(void)context;
	/* The signal may come from elsewhere. */
	if (info->si_code == SI_TIMER && urgent->goes_on) {
		if (urgent->is_long)
			take_back(urgent);
		urgent->is_long = true;
	}
	errno = saved_errno;
}

static bool start_timer(struct urgent *urgent)
{
	if (notify_open(URGENT_SIGNAL, CLOCK_THREAD_CPUTIME_ID, handle_signal, urgent, &urgent->timer))
		return false;
	if (notify_every(urgent->timer, TIMER_NS) == 0)
		return true;
	timer_delete(urgent->timer);
	return false;
}

static void open_with(struct urgent *urgent, enum urgent_means (*find)(struct urgent *urgent))
{
	*urgent = (struct urgent){
		.policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK,
		.nice = getpriority(PRIO_PROCESS, (id_t)gettid()),
	};
	urgent->means = find(urgent);
	urgent->has_timer = urgent->means != URGENT_NOT_ALLOWED && start_timer(urgent);
}

void urgent_open(struct urgent *urgent)
{
	open_with(urgent, find_means);
}

void urgent_open_by_nice(struct urgent *urgent)
{
	open_with(urgent, find_nice);
}

void urgent_close(struct urgent *urgent)
{
	urgent_end(urgent);
	if (urgent->has_timer)
		timer_delete(urgent->timer);
	urgent->has_timer = false;
	if (urgent->means == URGENT_BY_POLICY) {
		setrlimit(RLIMIT_RTTIME, &urgent->limit);
		set_policy(urgent->policy & ~SCHED_RESET_ON_FORK);
		set_nice(urgent->nice);
	}
	urgent->means = URGENT_NOT_ALLOWED;
}

void urgent_begin(struct urgent *urgent)
{
	urgent->goes_on = false;
	if (urgent->begun || urgent->means == URGENT_NOT_ALLOWED)
		return;
	urgent->begun = urgent->means == URGENT_BY_POLICY ? set_policy(SCHED_RR | SCHED_RESET_ON_FORK)
							  : set_nice(urgent->best_nice);
}

static void rest(void)
{
	const struct timespec moment = { .tv_nsec = 1 };

	nanosleep(&moment, NULL);
}

static void rest_now_and_then(struct urgent *urgent)
{
	if (urgent->begun && urgent->means == URGENT_BY_POLICY && ++urgent->begun_count % REST_AFTER == 0)
		rest();
}

void urgent_go_on(struct urgent *urgent)
{
	if (!urgent->has_timer) {
		urgent_end(urgent);
		return;
	}
	rest_now_and_then(urgent);
	if (!urgent->goes_on)
		urgent->is_long = false;
	urgent->goes_on = urgent->begun;
}

void urgent_end(struct urgent *urgent)
{
	urgent->goes_on = false;
	if (!urgent->begun)
		return;
	rest_now_and_then(urgent);
	take_back(urgent);
}

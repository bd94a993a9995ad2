/* SPDX-License-Identifier: MIT */
#include "src/linux/clocks/cpu_clock.h"

#include <errno.h>

#include "src/linux/clocks/notify.h"

int cpu_clock_open(pid_t pid, struct cpu_clock *ret_clock)
{
	struct cpu_clock clock = { .armed = false };
	int error = clock_getcpuclockid(pid, &clock.id);

	if (error)
		return -error;
	*ret_clock = clock;
	return 0;
}

int cpu_clock_now(const struct cpu_clock *clock, uint64_t *ret_ns)
{
	struct timespec now;

	if (clock_gettime(clock->id, &now))
		return errno == EINVAL ? -ESRCH : -errno; /* EINVAL: no such process */
	*ret_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	return 0;
}

int cpu_clock_start(struct cpu_clock *clock, int signal, int index, uint64_t period_ns)
{
	struct timespec period = {
		.tv_sec = (time_t)(period_ns / 1000000000u),
		.tv_nsec = (long)(period_ns % 1000000000u),
	};
	struct itimerspec times = { .it_value = period, .it_interval = period };

	if (!clock->armed) {
		struct sigevent event = notify_this_thread(signal, (union sigval){ .sival_int = index });

		if (timer_create(clock->id, &event, &clock->timer))
			return errno == EINVAL ? -ESRCH : -errno;
		clock->armed = true;
	}
	return timer_settime(clock->timer, 0, &times, NULL) ? -errno : 0;
}

void cpu_clock_stop(struct cpu_clock *clock)
{
	if (!clock->armed)
		return;
	timer_delete(clock->timer);
	clock->armed = false;
}

void cpu_clock_close(struct cpu_clock *clock)
{
	cpu_clock_stop(clock);
}

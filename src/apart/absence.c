/* SPDX-License-Identifier: MIT */
#include "src/apart/absence.h"

#include "src/linux/clocks/notify.h"

/* A worker that takes many samples need not set the alarm at each of them. */
enum { MOMENT_NS = ABSENT_NS / 4 };

static void post(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	/* The signal may come from elsewhere. */
	if (info->si_code == SI_TIMER)
		sem_post(info->si_value.sival_ptr);
}

void absence_open(struct absence *absence, sem_t *watch)
{
	absence->has_alarm = notify_open(ABSENCE_SIGNAL, CLOCK_MONOTONIC, post, watch, &absence->alarm) == 0;
}

bool absence_end(struct absence *absence, uint64_t now_ns)
{
	if (!absence->has_alarm || now_ns - absence->came_ns < MOMENT_NS ||
	    notify_once(absence->alarm, ABSENT_NS))
		return false;
	/* After the alarm is set: who sees this time can rely on the alarm. */
	absence->came_ns = now_ns;
	return true;
}

bool absence_lasts(const struct absence *absence, uint64_t now_ns)
{
	const uint64_t came_ns = absence->came_ns;

	return !came_ns || (now_ns > came_ns && now_ns - came_ns >= ABSENT_NS);
}

/* SPDX-License-Identifier: MIT */
#include "src/apart/absence.h"

#include <signal.h>

#include "src/linux/clocks/notify.h"

/* A worker that takes many samples need not set the alarm at each of them. */
enum { MOMENT_NS = ABSENT_NS / 4 };

/*
 * There has to be a handler: of a timer whose signal nobody handles, kernels since 6.13 forget the next
 * times.
 */
static void go_off(int signal, siginfo_t *info, void *context)
{
	struct absence *absence = info->si_value.sival_ptr;

	(void)signal;
	(void)context;
	/* The signal may come from elsewhere. */
	if (info->si_code == SI_TIMER && atomic_exchange(&absence->is_awaited, false))
		sem_post(absence->watch);
}

void absence_open(struct absence *absence, sem_t *watch)
{
	absence->watch = watch;
	absence->has_alarm = notify_open(SIGCONT, CLOCK_MONOTONIC, go_off, absence, &absence->alarm) == 0;
}

void absence_set_alarm(struct absence *absence, long ns)
{
	if (absence->has_alarm)
		notify_every(absence->alarm, ns);
}

bool absence_end(struct absence *absence, uint64_t now_ns)
{
	if (!absence->has_alarm || now_ns - absence->came_ns < MOMENT_NS)
		return false;
	absence->is_awaited = true;
	if (notify_every(absence->alarm, ABSENT_NS))
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

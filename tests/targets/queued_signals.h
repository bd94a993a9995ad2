/* SPDX-License-Identifier: MIT */
/*
 * queued_signals: counts SIGRTMIN signals that carry 0, 1, 2, ... and then -1,
 * and those out of order.
 */
#ifndef LJSPY_TESTS_QUEUED_SIGNALS_H
#define LJSPY_TESTS_QUEUED_SIGNALS_H

#include <signal.h>

static volatile sig_atomic_t received, disordered, finished;

static void on_queued(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	if (info->si_value.sival_int == -1) {
		finished = 1;
		return;
	}
	if (info->si_value.sival_int != received)
		disordered++;
	received++;
}

#endif

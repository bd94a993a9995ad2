/* SPDX-License-Identifier: MIT */
/*
 * wake_signal: by which one of ljspy's threads wakes another that waits for signals. All threads block it.
 *
 * A real-time signal would not do: the kernel refuses it where the user has as many pending signals as he may
 * have (RLIMIT_SIGPENDING). It sends others in any case, see __send_signal_locked() in Linux's
 * kernel/signal.c. This one is harmless where it is not blocked.
 */
#ifndef LJSPY_WAKE_SIGNAL_H
#define LJSPY_WAKE_SIGNAL_H

#include <signal.h>

enum { WAKE_SIGNAL = SIGURG };

#endif

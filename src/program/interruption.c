/* SPDX-License-Identifier: MIT */
#include "src/program/interruption.h"

#include <stdio.h>

#include "src/linux/clocks/clock.h"
#include "src/program/message.h"
#include "src/program/wake_signal.h"

static const uint64_t moment_ns = 250 * 1000 * 1000;

void interruption_signals(sigset_t *ret_signals)
{
	sigemptyset(ret_signals);
	sigaddset(ret_signals, SIGINT);
	sigaddset(ret_signals, SIGTERM);
	sigaddset(ret_signals, SIGHUP);
	sigaddset(ret_signals, SIGQUIT);
}

bool interruption_is_pending(void)
{
	sigset_t signals, pending;

	interruption_signals(&signals);
	sigemptyset(&pending);
	sigpending(&pending);
	sigandset(&pending, &pending, &signals);
	return !sigisemptyset(&pending);
}

bool interruption_is_from_process(const siginfo_t *info)
{
	return info->si_code <= 0;
}

/* An interrupt must not wait. */
static void say(const char *words)
{
	if (message_would_wait() || ftrylockfile(stderr))
		return;
	message_note("%s", words);
	funlockfile(stderr);
}

static bool is_for_recording(const struct interruption *interruption)
{
	return clock_now_ns(CLOCK_MONOTONIC) - interruption->begin_ns < moment_ns;
}

/* The command already has the terminal's signals, and those sent to the process group. */
static void pass_on(const struct interruption *interruption, const siginfo_t *info)
{
	if (interruption->command && info->si_signo != interruption->signal &&
	    interruption_is_from_process(info))
		kill(interruption->command, info->si_signo);
}

static void *wait_for_one(void *context)
{
	struct interruption *interruption = context;
	sigset_t signals, set;
	siginfo_t info;
	int signal_number;

	interruption_signals(&signals);
	sigaddset(&signals, WAKE_SIGNAL); /* interruption_end() sends it */
	for (;;) {
		signal_number = sigwaitinfo(&signals, &info);
		if (signal_number == WAKE_SIGNAL && interruption->over)
			return NULL;
		if (signal_number < 0 || signal_number == WAKE_SIGNAL)
			continue;
		if (!is_for_recording(interruption))
			break;
		pass_on(interruption, &info);
	}
	interruption->signal = 0; /* pass on this signal even if it is the one that ended the recording */
	pass_on(interruption, &info);
	pthread_mutex_lock(&interruption->lock);
	if (interruption->words)
		say(interruption->words);
	sigemptyset(&set);
	sigaddset(&set, signal_number);
	signal(signal_number, SIG_DFL);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	raise(signal_number);
	pthread_mutex_unlock(&interruption->lock); /* the first process of a container outlives it */
	return NULL;
}

bool interruption_begin(struct interruption *interruption)
{
	interruption->over = false;
	interruption->begin_ns = clock_now_ns(CLOCK_MONOTONIC);
	return pthread_create(&interruption->thread, NULL, wait_for_one, interruption) == 0;
}

void interruption_set_words(struct interruption *interruption, const char *words)
{
	pthread_mutex_lock(&interruption->lock);
	interruption->words = words;
	pthread_mutex_unlock(&interruption->lock);
}

void interruption_end(struct interruption *interruption)
{
	interruption->over = true;
	pthread_kill(interruption->thread, WAKE_SIGNAL);
	pthread_join(interruption->thread, NULL);
}

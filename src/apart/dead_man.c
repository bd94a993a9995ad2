/* SPDX-License-Identifier: MIT */
#include "src/apart/dead_man.h"

#include <signal.h>

#include "src/linux/clocks/notify.h"

/* The second timer has so much time left that it need not be put off more often. */
enum { SECOND_PUT_OFF_NS = DEAD_MAN_LATER_NS / 2 };

/* There has to be a handler: a timer whose signal was ignored does not run again on Linux since 6.13. */
static void go_on(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	(void)context;
}

static void open_timer(struct dead_man_timer *timer)
{
	timer->is_there = notify_open(SIGCONT, CLOCK_MONOTONIC, go_on, NULL, &timer->timer) == 0;
}

static void set(const struct dead_man_timer *timer, long ns)
{
	if (timer->is_there)
		notify_every(timer->timer, ns);
}

static void set_second(const struct dead_man *dead_man, long ns)
{
	set(&dead_man->second, ns ? ns + DEAD_MAN_LATER_NS : 0);
}

void dead_man_open(struct dead_man *dead_man)
{
	open_timer(&dead_man->first);
	open_timer(&dead_man->second);
}

void dead_man_set(struct dead_man *dead_man, long ns)
{
	set(&dead_man->first, ns);
	set_second(dead_man, ns);
}

void dead_man_put_off(struct dead_man *dead_man, long ns, uint64_t now_ns)
{
	set(&dead_man->first, ns);
	if (now_ns - dead_man->second_set_ns < SECOND_PUT_OFF_NS)
		return;
	dead_man->second_set_ns = now_ns;
	set_second(dead_man, ns);
}

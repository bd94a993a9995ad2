/* SPDX-License-Identifier: MIT */
#include "src/linux/tracer/tracer_looks.h"

#include <sched.h>

#include "src/linux/clocks/clock.h"
#include "src/linux/tracer/tracer_parts.h"

enum {
	/* After a signal, others are likely. */
	SIGNALS_RECENT_NS = 1000 * 1000 * 1000,
};

/* Does ljspy get a CPU before all others, and keep it? */
static bool is_first(const struct tracer *tracer)
{
	return tracer->urgent.begun && tracer->urgent.means == URGENT_BY_POLICY;
}

void tracer_update_urgency(struct tracer *tracer)
{
	if (tracer->expected || tracer->look_is_awaited)
		urgent_begin(&tracer->urgent);
	else if (tracer->keeps_urgent)
		urgent_go_on(&tracer->urgent);
	else
		urgent_end(&tracer->urgent);
}

bool tracer_may_be_first(const struct tracer *tracer)
{
	return tracer->urgent.means == URGENT_BY_POLICY;
}

bool tracer_turn_is_used_up(const struct tracer *tracer)
{
	return !is_first(tracer) && own_turn_is_used_up(&tracer->turn);
}

void tracer_be_urgent(struct tracer *tracer)
{
	urgent_open(&tracer->urgent);
	visit_open(&tracer->visit);
}

void tracer_be_urgent_by_nice(struct tracer *tracer)
{
	if (tracer->urgent.means == URGENT_NOT_ALLOWED)
		urgent_open_by_nice(&tracer->urgent);
}

void tracer_await_look(struct tracer *tracer, int cpu)
{
	tracer->look_is_awaited = true;
	tracer_update_urgency(tracer);
	visit_begin(&tracer->visit, is_first(tracer) ? cpu : -1);
}

bool tracer_visits(const struct tracer *tracer)
{
	return tracer->visit.begun;
}

bool tracer_leave(struct tracer *tracer)
{
	return visit_leave(&tracer->visit);
}

static bool gets_signals(const struct tracer *tracer)
{
	return tracer->passed_ns && clock_now_ns(CLOCK_MONOTONIC) - tracer->passed_ns < SIGNALS_RECENT_NS;
}

static void end_look(struct tracer *tracer, bool keeps_urgent)
{
	visit_end(&tracer->visit);
	tracer->keeps_urgent = keeps_urgent && (tracer->look_is_awaited || tracer->keeps_urgent);
	tracer->look_is_awaited = false;
	tracer_update_urgency(tracer);
}

/* By its policy only: threads and processes that ljspy starts would take over a nice value. */
static bool may_go_on(struct tracer *tracer)
{
	return tracer_may_be_first(tracer) && own_turn_is_modest(&tracer->turn);
}

void tracer_end_look(struct tracer *tracer)
{
	end_look(tracer, may_go_on(tracer) || gets_signals(tracer));
}

void tracer_take_time(struct tracer *tracer)
{
	end_look(tracer, may_go_on(tracer));
}

int tracer_cpu(const struct tracee *tracee)
{
	struct stat_line line;

	return seized_read_stat((const struct seized *)tracee, &line) ? line.cpu : -1;
}

bool tracer_is_bound(const struct tracee *tracee)
{
	cpu_set_t allowed;

	return sched_getaffinity(tracee->tid, sizeof(allowed), &allowed) == 0 && CPU_COUNT(&allowed) == 1;
}

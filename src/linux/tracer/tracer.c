/* SPDX-License-Identifier: MIT */
#include "src/linux/tracer/tracer.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "memory/hash.h"
#include "src/linux/clocks/clock.h"
#include "src/linux/tracer/call_watch.h"
#include "src/linux/tracer/tracer_files.h"
#include "src/linux/tracer/tracer_parts.h"

enum {
	/* How long to wait at the end for stops that a SIGSTOP of ljspy asked for. */
	LAST_STOP_MS = 1000,
};

/* Runs while ptrace() waits for an execve() that waits for ljspy. */
static void reap_meanwhile(void *tracer)
{
	tracer_handle_reports(tracer);
}

struct tracer *tracer_new(void)
{
	struct tracer *tracer = calloc(1, sizeof(*tracer));
	int error = tracer ? call_watch_open(&tracer->watch, reap_meanwhile, tracer) : 0;

	if (error) {
		free(tracer);
		errno = -error;
		return NULL;
	}
	if (tracer) {
		tracer->files_left = FILES_OPEN_DEFAULT;
		tracer->quiet_ns = clock_now_ns(CLOCK_MONOTONIC);
		own_turn_open(&tracer->turn);
	}
	return tracer;
}

static bool any_is_asked(const struct tracer *tracer)
{
	struct seized *seized, *next;

	HASH_ITER(hh, tracer->seized, seized, next)
		if (seized->asked && seized->tracee.state != TRACEE_GONE)
			return true;
	return false;
}

/* A SIGSTOP from ljspy that is delivered after ljspy ends would stop the target for good. */
static void await_last_stops(struct tracer *tracer)
{
	const struct timespec moment = { .tv_nsec = 1000 * 1000 };
	struct seized *seized, *next;

	HASH_ITER(hh, tracer->seized, seized, next) {
		seized->tracee.wanted = seized->tracee.hold_late = false;
	}
	for (int i = 0; i < LAST_STOP_MS && any_is_asked(tracer); i++) {
		nanosleep(&moment, NULL);
		tracer_handle_reports(tracer);
	}
}

void tracer_let_go(struct tracer *tracer)
{
	struct seized *seized, *next;

	HASH_ITER(hh, tracer->seized, seized, next) {
		tracer_resume(tracer, &seized->tracee);
	}
	await_last_stops(tracer);
	visit_close(&tracer->visit);
	urgent_close(&tracer->urgent); /* it applies to this thread */
	tracer->has_let_go = true;
}

void tracer_free(struct tracer *tracer)
{
	struct seized *seized, *next;

	if (!tracer)
		return;
	if (!tracer->has_let_go)
		tracer_let_go(tracer);
	HASH_ITER(hh, tracer->seized, seized, next) {
		tracer_free_seized(tracer, seized);
	}
	call_watch_close(&tracer->watch);
	own_turn_close(&tracer->turn);
	free(tracer);
}

void tracer_allow_attach(struct tracer *tracer)
{
	tracer->allow_attach = true;
}

void tracer_stay_away(struct tracer *tracer)
{
	tracer->stays_away = true;
}

bool tracer_stays_away(const struct tracer *tracer)
{
	return tracer->stays_away;
}

struct own_turn *tracer_turn(struct tracer *tracer)
{
	return &tracer->turn;
}

void tracer_count_holds(struct tracer *tracer, struct histogram *holds)
{
	tracer->holds = holds;
}

/* SPDX-License-Identifier: MIT */
/*
 * timer_report: what a worker of nginx waits for the time of, as text or JSON.
 *
 * A JSON document has "version" and "processes". Each process has pid, name, asleep (it slept while
 * ljspy read it), torn (they changed all the while, and are unknown), count, cut (there are more), left_out
 * (timers that are in no group, for there are too many) and timers, groups of the same kind and place, the
 * soonest first: kind, count, first_due_ms and last_due_ms (from now; negative if overdue), lua:
 * [frames] (of ngx.timer the handler), route (of the request that waits), peer (that is asked).
 * module is the file with the code that nginx calls then. What is unknown is null.
 */
#ifndef LJSPY_TIMER_REPORT_H
#define LJSPY_TIMER_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <jansson.h>

#include "output/sample/frame.h"
#include "unwind/nginx/nginx_request.h"
#include "unwind/nginx/route.h"

enum timer_row_kind {
	TIMER_ROW_LUA,        /* ngx.timer.at(), ngx.timer.every() */
	TIMER_ROW_COROUTINE,  /* a coroutine waits */
	TIMER_ROW_CLIENT,     /* time limit of a client's connection */
	TIMER_ROW_UPSTREAM,   /* time limit of a connection for a request, to another server */
	TIMER_ROW_CONNECTION, /* time limit of another connection */
	TIMER_ROW_OTHER,
	TIMER_ROW_UNKNOWN, /* ljspy cannot tell in this build */
	TIMER_ROW_KINDS
};

enum {
	TIMER_FRAMES_MAX = 4,
	TIMER_MODULE_BYTES = 64,
	TIMER_ROWS_MAX = 4096, /* groups; what does not fit is counted as "and more" */
};

struct timer_row {
	enum timer_row_kind kind;
	struct frame frames[TIMER_FRAMES_MAX]; /* innermost first; of functions that outlive the report */
	size_t frame_count;
	char route[ROUTE_BYTES]; /* "" if there is none, as below */
	char peer[NGINX_PEER_BYTES];
	char module[TIMER_MODULE_BYTES];
	uint64_t count;
	int64_t first_ms, last_ms; /* due, from now */
};

struct timer_report {
	pid_t pid;
	char *name;             /* owned */
	bool asleep;            /* all the time while it was read */
	bool is_torn;           /* they changed all the while: there are no rows */
	bool is_cut;            /* there are more timers */
	uint64_t count;         /* of all timers */
	uint64_t left_out;      /* of these, those that no row has */
	struct timer_row *rows; /* owned */
	size_t row_count, room;
};

/* name is copied. NULL when memory is short. */
struct timer_report *timer_report_new(pid_t pid, const char *name);
void timer_report_free(struct timer_report *report);

void timer_report_clear_rows(struct timer_report *report);

/* Add a timer, as a row with a count of 1, to the rows alike. 0 or -ENOMEM. */
int timer_report_add(struct timer_report *report, const struct timer_row *timer);

void timer_report_print(FILE *out, const struct timer_report *report);

/* NULL when memory is short. */
json_t *timer_report_json(const struct timer_report *report);

#endif

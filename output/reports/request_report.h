/* SPDX-License-Identifier: MIT */
/*
 * request_report: the requests in flight in processes of nginx, as text or JSON.
 *
 * A JSON document has "version" and "processes". Each process has pid, name, asleep (it slept
 * while ljspy read it) and requests, the oldest first: age_ms, connection, number (of its
 * connection), subrequest, phase, method, host, route, status, client, received and sent
 * (bytes), upstream (state, peer, status, tries), and lua: [{state, frames}]. What is unknown is
 * null. Only if asked for, requests have uri and query.
 */
#ifndef LJSPY_REQUEST_REPORT_H
#define LJSPY_REQUEST_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <jansson.h>

#include "output/sample/frame.h"
#include "unwind/lua/lua_thread.h"
#include "unwind/nginx/nginx_request.h"

/* A coroutine that works for a request, with its innermost frames. */
enum { REQUEST_FRAMES_MAX = 8, REQUEST_COROUTINES_MAX = 16 };

struct request_coroutine {
	enum coroutine_state state;
	struct frame frames[REQUEST_FRAMES_MAX]; /* of functions that outlive the report */
	size_t frame_count;
};

struct request_row {
	struct nginx_request request;
	struct nginx_details details;
	const char *phase; /* of its Lua, see request.h; NULL if there is none */
	uint64_t age_ms;
	struct request_coroutine *coroutines; /* owned */
	size_t coroutine_count;
	size_t more_coroutines; /* that are left out */
};

struct request_report {
	pid_t pid;
	char *name;               /* of the process; owned */
	bool asleep;              /* all the time while it was read: nothing changed meanwhile */
	bool without_lua;         /* do not read the Lua of requests */
	bool exact_paths;         /* show paths and query strings as they are */
	struct request_row *rows; /* owned */
	size_t count, room;
};

/* name is copied. NULL when memory is short. */
struct request_report *request_report_new(pid_t pid, const char *name, bool exact_paths);
void request_report_free(struct request_report *report);

void request_report_clear_rows(struct request_report *report);

/* A new row at the end, all zero; NULL when memory is short. */
struct request_row *request_report_add(struct request_report *report);

/* The oldest first. */
void request_report_sort(struct request_report *report);

void request_report_print(FILE *out, const struct request_report *report);

/* NULL when memory is short. */
json_t *request_report_json(const struct request_report *report);

#endif

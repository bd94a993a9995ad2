/* SPDX-License-Identifier: MIT */
/*
 * request_report: the requests in flight in processes of nginx, as text or JSON.
 *
 * A JSON document has "version" and "processes". Each process has pid, name, asleep (it slept
 * while ljspy read it) and requests, the oldest first: age_ms, connection, number (of its
 * connection), subrequest, phase, method, host, route (nginx_request_route()), status, client, received and
 * sent (bytes), upstream (state, peer, status, tries), lua: [{state, wait, frames}], and more_coroutines, the
 * number of those that are left out of lua. more_requests of a process are those that are left out of
 * requests; at most so many, unless it was asleep. What is unknown is null. Only if asked for, requests have
 * uri and query. A process has also pools of cosockets: [{name, used, idle, size}]; name is null if it is
 * not to be shown.
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
#include "src/linux/sockets/accept_queue.h"
#include "unwind/lua/lua_thread.h"
#include "unwind/nginx/cosocket.h"
#include "unwind/nginx/nginx_request.h"

/* A coroutine that works for a request, with its innermost frames. */
enum {
	REQUEST_FRAMES_MAX = 8,
	REQUEST_COROUTINES_MAX = 16,
	REQUEST_WAIT_BYTES = 32 + NGINX_PEER_BYTES,
};

struct request_coroutine {
	enum coroutine_state state;
	struct frame frames[REQUEST_FRAMES_MAX]; /* of functions that outlive the report */
	size_t frame_count;
	/* "socket receive: 127.0.0.1:6379"; any bytes; "" if it waits for nothing. */
	char wait[REQUEST_WAIT_BYTES];
	bool wait_tells_more; /* than the function in which it waits */
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

/* How much a process has to do. */
struct worker_load {
	uint64_t limit;           /* worker_connections */
	uint64_t clients, others; /* connections in use: accepted ones; to upstreams, also kept ones */
	bool knows_clients;       /* else all of them are among the others */
	/* Descriptors of connections without data, which may listen; owned. */
	int32_t *fds;
	size_t fd_count, fd_room;
	/* The sockets that it takes connections from; owned. */
	struct accept_queue *queues;
	size_t queue_count;
	bool knows_queues; /* there are no others, and each has its limit */
	uint64_t cpu_ns;   /* of all its threads since it began */
	uint64_t cpu_at;   /* when that was read, by CLOCK_MONOTONIC; 0: never */
	bool knows_cpu;
	double cpu; /* CPUs used lately, 1 is one all the time */
};

/* Connections of cosockets to a peer. */
struct pool_row {
	struct cosocket_pool pool;
	uint64_t used, idle;
	bool shows_name; /* else the name may be a secret */
};

struct request_report {
	pid_t pid;
	char *name;               /* of the process; owned */
	bool asleep;              /* all the time while it was read: nothing changed meanwhile */
	bool without_lua;         /* do not read the Lua of requests */
	bool exact_paths;         /* show paths and query strings as they are */
	struct request_row *rows; /* owned */
	size_t count, room;
	/*
	 * Requests and subrequests that are left out, and those of them that are no subrequests. Unless the
	 * process slept, some may have ended meanwhile: there are so many at most.
	 */
	size_t more_requests, more_main_requests;
	struct worker_load load; /* of the process that works on them; owned */
	struct pool_row *pools;  /* owned */
	size_t pool_count, pool_room;
};

/* name is copied. NULL when memory is short. */
struct request_report *request_report_new(pid_t pid, const char *name, bool exact_paths);
void request_report_free(struct request_report *report);

void request_report_clear_rows(struct request_report *report);

/* A new row at the end, all zero; NULL when memory is short. */
struct request_row *request_report_add(struct request_report *report);

/*
 * Count a connection of a pool. shows_names: show names that are no addresses, too; as a name may be one of a
 * program's own, it may be a secret. 0 or -ENOMEM.
 */
int request_report_add_pooled(struct request_report *report, const struct cosocket_pool *pool, bool is_idle,
			      bool shows_names);

/* The oldest first. */
void request_report_sort(struct request_report *report);

void request_report_print(FILE *out, const struct request_report *report);

/* NULL when memory is short. */
json_t *request_report_json(const struct request_report *report);

#endif

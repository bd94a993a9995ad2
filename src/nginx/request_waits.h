/* SPDX-License-Identifier: MIT */
/*
 * request_waits: which requests an nginx worker has at one moment, and what each waits for.
 *
 * Read the list while nothing runs; it is the truth of that moment. Where Lua waits is copied a little
 * later, some requests at a time, and belongs to the same request if that is still there.
 */
#ifndef LJSPY_REQUEST_WAITS_H
#define LJSPY_REQUEST_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/sample/frame.h"
#include "output/sample/sample.h"
#include "src/inspect/lua_process.h"
#include "src/nginx/lua_wait.h"
#include "unwind/nginx/nginx_request.h"
#include "unwind/nginx/route.h"

enum {
	REQUEST_WAITS_MAX = 4096,                         /* requests of one moment */
	REQUEST_WAITS_AT_ONCE = 32,                       /* requests whose Lua is copied at a time */
	REQUEST_WAITS_COROUTINES = 4 * LIGHT_THREADS_MAX, /* that are copied at a time */
	REQUEST_WAIT_FRAMES_MAX = 64,                     /* of one request; outer ones are left out */
};

/* A request of a client. */
struct waiting_request {
	struct nginx_request request;   /* the main request */
	uint64_t serves;                /* the one that works for it now: itself, or a subrequest */
	struct nginx_upstream upstream; /* of that */
	struct nginx_upstream behind;   /* without its own: that of a subrequest in the background (mirror) */
	bool is_stream;                 /* of HTTP/2 */
	enum connection_wait client;    /* what its connection has a time limit for */
};

struct request_waits {
	struct waiting_request *requests; /* owned */
	size_t count, room;
	bool is_cut; /* there are more requests, or memory is short */
	/* lua_States that need not wait any more: they wait for the loop. Owned. */
	uint64_t *due;
	size_t due_count, due_room;
};

void request_waits_clear(struct request_waits *waits);

/* Replace the list, while nothing runs. False if the process is no nginx that ljspy can read. */
bool request_waits_read(struct lua_process *process, struct request_waits *waits);

/* While nothing runs: which of them wait in Lua for a time that has come, but the loop is busy. */
void request_waits_note_due(struct lua_process *process, struct request_waits *waits);

/* Where the Lua of some requests waits: copied while nothing runs, read until the next capture. */
struct lua_waits {
	/* For each request: which of the coroutines that were captured; none if no Lua works for it. */
	size_t first[REQUEST_WAITS_AT_ONCE], count[REQUEST_WAITS_AT_ONCE];
	const char *phase[REQUEST_WAITS_AT_ONCE]; /* NULL if unknown */
	bool is_there[REQUEST_WAITS_AT_ONCE];     /* false: it has ended meanwhile, or it is not known */
	bool waits_for_cache[REQUEST_WAITS_AT_ONCE];
	/* For each coroutine. */
	struct lua_wait waits[REQUEST_WAITS_COROUTINES];
	bool is_due[REQUEST_WAITS_COROUTINES];
};

/*
 * Of count requests of the list from first on, at most REQUEST_WAITS_AT_ONCE. Returns of how many: there may
 * be too many coroutines for all, and those of one VM are copied at a time.
 */
size_t request_waits_capture(struct lua_process *process, const struct request_waits *waits, size_t first,
			     size_t count, struct lua_waits *ret_waits);

/* Of count requests that cannot be captured. */
void request_waits_know_nothing(size_t count, struct lua_waits *ret_waits);

/* A wait of a request: the frames of its Lua, leaf first, and what it is called. */
struct request_wait {
	struct frame frames[REQUEST_WAIT_FRAMES_MAX];
	size_t frame_count;
	char name[REQUEST_WAIT_BYTES]; /* "sleep", "upstream first byte: 127.0.0.1:8080"; any bytes */
	bool is_due;                   /* it waits for the loop by now */
};

/*
 * The waits of the request at first + index: one; or one of each of its light threads that does not wait for
 * another of them; or that for its client and that for an upstream. 0 or -ENOMEM.
 */
int request_waits_of(struct lua_process *process, const struct waiting_request *waiting,
		     const struct lua_waits *lua, size_t index,
		     struct request_wait ret_waits[static LIGHT_THREADS_MAX], size_t *ret_count);

/* The request for a sample at now_ns, the time of day; its texts are in waiting and route. */
struct sample_request request_waits_label(const struct waiting_request *waiting, uint64_t now_ns,
					  char route[static ROUTE_BYTES]);

#endif

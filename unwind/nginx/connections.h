/* SPDX-License-Identifier: MIT */
/*
 * connections: the requests in flight in an nginx worker, by its connections.
 *
 * ngx_cycle has the array of all connections, and beside it one of the events that each reads and
 * one of those that each writes (src/core/ngx_cycle.h). The array is found by what its elements
 * have to hold: connection i refers to event i of both arrays.
 *
 * A connection of HTTP/2 (src/http/v2/ngx_http_v2.h) has no request as its data, but an
 * ngx_http_v2_connection_t, which begins with that connection. It has an array of lists of nodes
 * (id, next in the list), and a node refers to its stream (request, HTTP/2 connection, node). What
 * is taken for a stream refers back to both. Each stream's request has a connection of its own,
 * outside the array, whose data it is.
 */
#ifndef LJSPY_CONNECTIONS_H
#define LJSPY_CONNECTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/memory.h"
#include "unwind/nginx/request_members.h"

struct connections {
	uint64_t first;  /* ngx_connection_t */
	uint64_t stride; /* bytes from each to the next */
	uint64_t count;
	uint64_t read_events, write_events; /* ngx_event_t: one of each for each connection */
	uint64_t event_bytes;
	int32_t request_connection; /* ngx_http_request_t.connection */
	uint64_t free_count;        /* where ngx_cycle_t.free_connection_n is; 0 if unknown */
};

/* False if there is no such array: in a master, and in an nginx without symbols. */
bool connections_find(struct memory *memory, const struct request_members *members,
		      struct connections *ret_connections);

/* Is there a connection at this address? */
bool connections_hold(const struct connections *connections, uint64_t address);

/*
 * What a connection waits for until a time limit, by the flags of its two events (ngx_event_t, after data:
 * write is bit 0, timer_set bit 11, delayed bit 12). Before believing them, ask timers_compare_flags().
 */
enum connection_wait {
	CONNECTION_WAIT_UNKNOWN, /* it cannot be read, or there are several time limits */
	CONNECTION_WAIT_NONE,    /* there is no time limit */
	CONNECTION_WAIT_READ,
	CONNECTION_WAIT_WRITE,
	CONNECTION_WAIT_DELAY, /* nginx does not write before a time: limit_req, auth_delay, limit_rate */
};

enum { EVENT_WRITE = 1 << 0, EVENT_TIMER_SET = 1 << 11, EVENT_DELAYED = 1 << 12 };

/* Of any connection, also that of a stream of HTTP/2. */
enum connection_wait connection_wait(struct memory *memory, uint64_t address);

/* The connection that an event at this address belongs to; 0 if there is none. */
uint64_t connections_of_event(const struct connections *connections, uint64_t event);

struct connection_in_use {
	uint64_t address; /* ngx_connection_t */
	uint64_t data;    /* a request or anything else; 0 of a socket that listens */
	int32_t fd;       /* -1 of a stream of HTTP/2, which has none of its own */
};

/* Take a connection in use; false to end. */
typedef bool connections_take(void *context, const struct connection_in_use *connection);

/*
 * Each connection in use, and that of each stream of HTTP/2. False if memory is short. nginx takes the
 * connection that was freed last, so those in use are at the beginning: the walk ends with the last of them,
 * if it is known how many there are.
 */
bool connections_walk(struct memory *memory, const struct connections *connections, connections_take *take,
		      void *context);

#endif

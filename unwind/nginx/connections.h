/* SPDX-License-Identifier: MIT */
/*
 * connections: the requests in flight in an nginx worker, by its connections.
 *
 * ngx_cycle has the array of all connections, and beside it one of the events that each reads and
 * one of those that each writes (src/core/ngx_cycle.h). The array is found by what its elements
 * have to hold: connection i refers to event i of both arrays.
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
};

/* False if there is no such array: in a master, and in an nginx without symbols. */
bool connections_find(struct memory *memory, const struct request_members *members,
		      struct connections *ret_connections);

/* The connection that an event at this address belongs to; 0 if there is none. */
uint64_t connections_of_event(const struct connections *connections, uint64_t event);

/* Take a connection in use and its data, which may be a request or anything else; false to end. */
typedef bool connections_take(void *context, uint64_t connection, uint64_t data);

/* Each connection in use. False if memory is short. */
bool connections_walk(struct memory *memory, const struct connections *connections, connections_take *take,
		      void *context);

#endif

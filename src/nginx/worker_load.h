/* SPDX-License-Identifier: MIT */
/*
 * worker_load: how much a worker of nginx has to do: its connections, its CPU time, and what waits
 * to be accepted by it.
 *
 * nginx gives each socket that it takes connections from a connection without data. One of those
 * that the kernel says listens is such a socket. A worker that shuts down, and the cache manager, have
 * none. With reuseport each worker has descriptors of all sockets, but connections for its own only.
 */
#ifndef LJSPY_WORKER_LOAD_H
#define LJSPY_WORKER_LOAD_H

#include <stdbool.h>
#include <sys/types.h>

#include "memory/memory.h"
#include "output/nginx_reports/request_report.h"
#include "unwind/nginx/connections.h"
#include "unwind/nginx/request_members.h"

/* Begin to measure the CPU time of the process. */
void worker_load_open(pid_t pid, struct worker_load *load);

/* Count its connections anew. */
void worker_load_begin(struct worker_load *load, const struct connections *connections,
		       const struct request_members *members);

/* Count one. False when memory is short. */
bool worker_load_count(struct worker_load *load, struct memory *memory, const struct request_members *members,
		       const struct connection_in_use *connection);

/*
 * Find its accept queues, and the CPU time since the last call, or since worker_load_open(): waits
 * until that was a tenth of a second ago. 0 or -ENOMEM.
 */
int worker_load_measure(pid_t pid, struct worker_load *load);

#endif

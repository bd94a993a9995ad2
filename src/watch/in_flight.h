/* SPDX-License-Identifier: MIT */
/*
 * in_flight: how long have the requests of nginx's workers been in flight?
 *
 * No thread is stopped, see src/nginx/request_survey.h.
 */
#ifndef LJSPY_IN_FLIGHT_H
#define LJSPY_IN_FLIGHT_H

#include <stdint.h>
#include <sys/types.h>

#include "src/inspect/given_layout.h"

struct in_flight;
struct in_flight_worker;

/* The layout is borrowed; NULL: recognise it. NULL when memory is short. */
struct in_flight *in_flight_new(const struct given_layout *layout);
void in_flight_free(struct in_flight *in_flight); /* after all its workers */

/*
 * Open a process. 0 or a negative errno, -ENOTSUP if it has no requests that ljspy can read: it
 * may be the master, or a worker that has not begun yet.
 */
int in_flight_open(struct in_flight *in_flight, pid_t pid, struct in_flight_worker **ret_worker);
void in_flight_close(struct in_flight_worker *worker);

/* The age of its oldest request; 0 if there is none. 0 or a negative errno. */
int in_flight_oldest(struct in_flight_worker *worker, uint64_t *ret_age_ns);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * worker_report: how the work is spread over the workers of nginx: connections, requests in flight,
 * CPU time, and the connections that wait in accept queues. As text below the requests of several
 * workers, or in their JSON document.
 *
 * The document then has workers[]: pid, accepts (new connections), connections (of clients), others
 * (to upstreams), connections_limit, requests, cpu_percent (lately), cpu_ms (since its begin);
 * imbalance: by connections and cpu, each with pid (of the busiest), amount, total and
 * times_the_mean, or null; accept_queues[]: address, waiting, limit, pids; accept_queues_complete.
 * What is unknown is null.
 */
#ifndef LJSPY_WORKER_REPORT_H
#define LJSPY_WORKER_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

/* Reports are struct request_report. Queues are shown of one, too, the table only of several. */
void worker_report_print(FILE *out, const void *const reports[], size_t count);

/* Add keys to the document. False when memory is short. */
bool worker_report_json(json_t *document, const void *const reports[], size_t count);

#endif

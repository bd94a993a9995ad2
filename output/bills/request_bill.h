/* SPDX-License-Identifier: MIT */
/*
 * request_bill: how long requests of nginx took, and what they waited for, by route.
 *
 * From samples of requests (src/sampler/sampler_requests.c): each stands for the time since the last
 * look, of one request in flight. The frame on top says what the request waits for, "upstream first
 * byte: 127.0.0.1:8080"; the text before the colon is the kind of the wait.
 *
 * A request that is shorter than the time between two looks may have no sample. One that has stands
 * for as many as that makes likely, so that counts and latencies are about those of all requests. Of a
 * single request, only the age at its last look is known, by nginx's note of its beginning. This is of a
 * clock that may be behind, by timer_resolution and by a turn of the loop: so the age may be too high, and is
 * no bound.
 */
#ifndef LJSPY_REQUEST_BILL_H
#define LJSPY_REQUEST_BILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/sample/sample.h"

enum {
	REQUEST_BILL_KIND_BYTES = 32,
	REQUEST_BILL_ROWS_MAX = 4096,        /* kinds of waits of all routes; others are in no row */
	REQUEST_BILL_REQUESTS_MAX = 1 << 20, /* later ones have no latency */
	REQUEST_BILL_SLOWEST = 10,           /* requests that are listed */
	REQUEST_BILL_BUCKETS = 40,           /* of the histogram: each twice as long as the one before */
};

struct request_bill_row {
	const char *route; /* of a sample: borrowed */
	char kind[REQUEST_BILL_KIND_BYTES];
	uint64_t ns;    /* of this kind */
	double squares; /* sum of the squares of its samples' ns */
	/* The same of the route; set by request_bill_close(). */
	uint64_t route_ns;
	double route_squares;
};

/* One of the requests that were the oldest when seen. */
struct request_bill_slow {
	uint64_t pid, connection, number;
	const char *route; /* of a sample: borrowed */
	uint64_t age_ns;   /* when seen last, by nginx's clock */
};

struct request_bill {
	struct request_bill_index *index; /* private */
	/* Set by request_bill_close(): routes by their time, kinds of each by theirs. */
	struct request_bill_row *rows;
	size_t row_count;
	uint64_t all_ns;
	bool has_waiting; /* the samples are of requests, and not of what threads did for them */
	uint64_t seen;    /* requests that have samples */
	double requests;  /* about as many there were */
	double p50_ns, p99_ns, p999_ns;                         /* about */
	struct request_bill_slow slowest[REQUEST_BILL_SLOWEST]; /* the oldest first */
	size_t slowest_count;
	double buckets[REQUEST_BILL_BUCKETS]; /* requests of [2^i, 2^(i+1)) microseconds */
};

/* Zeroed memory is an empty bill. Samples of anything else are ignored. 0 or -ENOMEM. */
int request_bill_add(struct request_bill *bill, const struct sample *sample);

/* No more samples will come: work out the rest. 0 or -ENOMEM. */
int request_bill_close(struct request_bill *bill);

void request_bill_clear(struct request_bill *bill);

#endif

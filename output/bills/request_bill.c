/* SPDX-License-Identifier: MIT */
#include "output/bills/request_bill.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory/hash.h"

enum {
	NS_PER_US = 1000,
	STANDS_FOR_MAX = 64, /* requests that one stands for */
};

static const char running_kind[] = "CPU";

/* It has no padding, because it is compared as bytes. */
struct row_key {
	const char *route;
	char kind[REQUEST_BILL_KIND_BYTES];
};

struct row {
	struct row_key key;
	uint64_t ns;
	double squares;
	UT_hash_handle hh;
};

/* A request by its process and nginx's numbers. It has no padding. */
struct request_key {
	uint64_t pid, connection, number;
};

struct request {
	struct request_key key;
	const char *route;
	uint64_t age_ns;  /* the oldest one seen */
	uint64_t sum_ns;  /* that its samples stand for */
	uint64_t count;   /* of looks; several coroutines have a sample each of one look */
	uint64_t time_ns; /* of the last one */
	UT_hash_handle hh;
};

struct request_bill_index {
	struct row *rows;
	struct request *requests;
};

/* A request for the percentiles. */
struct latency {
	double ns, count;
};

/* Is it of a request, and not of a thread? */
static bool is_of_request(const struct sample *sample)
{
	const struct function *top = sample->frame_count ? sample->frames[0].function : NULL;

	if (!sample->request.route || sample->request.number == 0)
		return false;
	return sample->thread_state == THREAD_RUNNING ||
	       (sample->thread_state == THREAD_PARKED && top && top->kind == FRAME_NATIVE && top->name &&
		top->module && strcmp(top->module, "nginx") == 0);
}

static void set_kind(const struct sample *sample, char ret_kind[static REQUEST_BILL_KIND_BYTES])
{
	const char *name = sample->thread_state == THREAD_RUNNING ? running_kind
								  : sample->frames[0].function->name;
	size_t length = strcspn(name, ":");

	if (length >= REQUEST_BILL_KIND_BYTES)
		length = REQUEST_BILL_KIND_BYTES - 1;
	memset(ret_kind, 0, REQUEST_BILL_KIND_BYTES);
	memcpy(ret_kind, name, length);
}

static int add_time(struct request_bill_index *index, const struct sample *sample)
{
	struct row_key key = { .route = sample->request.route };
	struct row *row;

	set_kind(sample, key.kind);
	HASH_FIND(hh, index->rows, &key, sizeof(key), row);
	if (!row && HASH_COUNT(index->rows) < REQUEST_BILL_ROWS_MAX) {
		row = calloc(1, sizeof(*row));
		if (!row)
			return -ENOMEM;
		row->key = key;
		HASH_ADD(hh, index->rows, key, sizeof(row->key), row);
		if (!hash_added(&row->hh)) {
			free(row);
			return -ENOMEM;
		}
	}
	if (row) {
		row->ns += sample->wall_ns;
		row->squares += (double)sample->wall_ns * (double)sample->wall_ns;
	}
	return 0;
}

static int add_age(struct request_bill_index *index, const struct sample *sample)
{
	const struct request_key key = { (uint64_t)sample->pid, sample->request.connection,
					 sample->request.number };
	struct request *request;

	HASH_FIND(hh, index->requests, &key, sizeof(key), request);
	if (!request) {
		if (HASH_COUNT(index->requests) >= REQUEST_BILL_REQUESTS_MAX)
			return 0;
		request = calloc(1, sizeof(*request));
		if (!request)
			return -ENOMEM;
		request->key = key;
		HASH_ADD(hh, index->requests, key, sizeof(request->key), request);
		if (!hash_added(&request->hh)) {
			free(request);
			return -ENOMEM;
		}
	}
	/* That of the client, and not of a subrequest, if a sample has it. */
	if (!request->route || !sample->request.is_subrequest)
		request->route = sample->request.route;
	if (sample->request.age_ns > request->age_ns)
		request->age_ns = sample->request.age_ns;
	request->sum_ns += sample->wall_ns;
	request->count += request->count == 0 || sample->time_ns != request->time_ns;
	request->time_ns = sample->time_ns;
	return 0;
}

int request_bill_add(struct request_bill *bill, const struct sample *sample)
{
	int error;

	if (!is_of_request(sample))
		return 0;
	if (!bill->index)
		bill->index = calloc(1, sizeof(*bill->index));
	if (!bill->index)
		return -ENOMEM;
	bill->all_ns += sample->wall_ns;
	bill->has_waiting |= sample->thread_state == THREAD_PARKED;
	error = add_time(bill->index, sample);
	return error ? error : add_age(bill->index, sample);
}

/*---- Rows ----*/

/* The route with the most time first; of one route, the kind with the most time. */
static int compare_rows(const void *a, const void *b)
{
	const struct request_bill_row *left = a, *right = b;

	if (left->route_ns != right->route_ns)
		return left->route_ns > right->route_ns ? -1 : 1;
	if (strcmp(left->route, right->route) != 0)
		return strcmp(left->route, right->route);
	if (left->ns != right->ns)
		return left->ns > right->ns ? -1 : 1;
	return strcmp(left->kind, right->kind);
}

static int compare_keys(const void *a, const void *b)
{
	const struct request_bill_row *left = a, *right = b;
	int routes = strcmp(left->route, right->route);

	return routes ? routes : strcmp(left->kind, right->kind);
}

/* In a sum of recordings, equal routes may be different pointers. */
static void merge_rows(struct request_bill *bill)
{
	size_t count = 0, first = 0;

	qsort(bill->rows, bill->row_count, sizeof(bill->rows[0]), compare_keys);
	for (size_t i = 0; i < bill->row_count; i++) {
		if (count && compare_keys(&bill->rows[count - 1], &bill->rows[i]) == 0) {
			bill->rows[count - 1].ns += bill->rows[i].ns;
			bill->rows[count - 1].squares += bill->rows[i].squares;
		} else {
			bill->rows[count++] = bill->rows[i];
		}
	}
	bill->row_count = count;
	for (size_t i = 1; i <= count; i++) {
		uint64_t sum = 0;
		double squares = 0;

		if (i < count && strcmp(bill->rows[i].route, bill->rows[first].route) == 0)
			continue;
		for (size_t j = first; j < i; j++) {
			sum += bill->rows[j].ns;
			squares += bill->rows[j].squares;
		}
		for (; first < i; first++) {
			bill->rows[first].route_ns = sum;
			bill->rows[first].route_squares = squares;
		}
	}
	qsort(bill->rows, count, sizeof(bill->rows[0]), compare_rows);
}

static int close_rows(struct request_bill *bill)
{
	bill->rows = calloc(HASH_COUNT(bill->index->rows) + 1, sizeof(bill->rows[0]));
	if (!bill->rows)
		return -ENOMEM;
	for (const struct row *row = bill->index->rows; row; row = row->hh.next) {
		struct request_bill_row *closed = &bill->rows[bill->row_count++];

		closed->route = row->key.route;
		memcpy(closed->kind, row->key.kind, sizeof(closed->kind));
		closed->ns = row->ns;
		closed->squares = row->squares;
	}
	merge_rows(bill);
	return 0;
}

/*---- Latencies ----*/

static int compare_latencies(const void *a, const void *b)
{
	const struct latency *left = a, *right = b;

	return left->ns < right->ns ? -1 : left->ns > right->ns;
}

/*
 * Looks come at random moments, so the ages at which n of them find a request are spread evenly over
 * its life: the highest is about n parts of n + 1 of it. Of one that was there before the first look,
 * they are spread over a part of it, and what is left is about the time between two looks.
 */
static struct latency latency_of(const struct request *request)
{
	double samples = (double)request->count, gap = (double)request->sum_ns / samples;
	double age = (double)request->age_ns, part = age / samples;
	struct latency latency = { .ns = age + (part < gap ? part : gap), .count = 1 };

	if (latency.ns < gap / STANDS_FOR_MAX)
		latency.ns = gap / STANDS_FOR_MAX;
	if (latency.ns < gap)
		latency.count = gap / latency.ns;
	return latency;
}

static size_t bucket_of(double ns)
{
	double us = ns / NS_PER_US;
	size_t bucket = 0;

	while (us >= 2 && bucket + 1 < REQUEST_BILL_BUCKETS) {
		us /= 2;
		bucket++;
	}
	return bucket;
}

/* The latency below which this share of requests is. */
static double percentile(const struct request_bill *bill, const struct latency *latencies, double share)
{
	double before = 0;

	for (size_t i = 0; i < bill->seen; i++) {
		before += latencies[i].count;
		if (before >= share * bill->requests)
			return latencies[i].ns;
	}
	return bill->seen ? latencies[bill->seen - 1].ns : 0;
}

/*
 * Keep it among the slowest, if it is one of them. What is likely to follow its last look is left out: among
 * many requests, those of which too much is expected would come first.
 */
static void note_slow(struct request_bill *bill, const struct request *request)
{
	size_t place = bill->slowest_count;

	while (place > 0 && bill->slowest[place - 1].age_ns < request->age_ns)
		place--;
	if (place == REQUEST_BILL_SLOWEST)
		return;
	if (bill->slowest_count < REQUEST_BILL_SLOWEST)
		bill->slowest_count++;
	memmove(&bill->slowest[place + 1], &bill->slowest[place],
		(bill->slowest_count - place - 1) * sizeof(bill->slowest[0]));
	bill->slowest[place] = (struct request_bill_slow){
		request->key.pid, request->key.connection, request->key.number,
		request->route,   request->age_ns,
	};
}

static int close_latencies(struct request_bill *bill)
{
	struct latency *latencies = calloc(HASH_COUNT(bill->index->requests) + 1, sizeof(*latencies));

	if (!latencies)
		return -ENOMEM;
	for (const struct request *request = bill->index->requests; request; request = request->hh.next) {
		struct latency latency = latency_of(request);

		latencies[bill->seen++] = latency;
		note_slow(bill, request);
		bill->requests += latency.count;
		bill->buckets[bucket_of(latency.ns)] += latency.count;
	}
	if (bill->seen)
		qsort(latencies, bill->seen, sizeof(*latencies), compare_latencies);
	bill->p50_ns = percentile(bill, latencies, 0.5);
	bill->p99_ns = percentile(bill, latencies, 0.99);
	bill->p999_ns = percentile(bill, latencies, 0.999);
	free(latencies);
	return 0;
}

int request_bill_close(struct request_bill *bill)
{
	int error = bill->index ? close_rows(bill) : 0;

	return error || !bill->index ? error : close_latencies(bill);
}

void request_bill_clear(struct request_bill *bill)
{
	if (bill->index) {
		HASH_FREE_ALL(bill->index->rows);
		HASH_FREE_ALL(bill->index->requests);
	}
	free(bill->index);
	free(bill->rows);
	*bill = (struct request_bill){ 0 };
}

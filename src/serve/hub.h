/* SPDX-License-Identifier: MIT */
/*
 * hub: what one sampling loop hands to many clients.
 *
 * The sampling thread gives each sample to all captures that want it. A client's thread
 * begins a capture, waits for it and ends it; a capture goes into a file of its own, so
 * rendering needs nothing of the hub. Nobody holds the hub's lock while a client reads.
 *
 * Captures come in order. Those of one mode or of modes that include each other go on at
 * the same time; one that needs the targets for itself waits for those before it, and
 * those after it wait for it.
 */
#ifndef LJSPY_HUB_H
#define LJSPY_HUB_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "output/sample/figures.h"
#include "output/sample/session.h"
#include "src/sampler/sampler.h"

/* How the targets are sampled. Each of the first three includes those before it. */
enum hub_mode {
	HUB_CPU,
	HUB_WALL,
	HUB_TURNS,      /* of event loops */
	HUB_COROUTINES, /* this one and the next need the targets for themselves */
	HUB_HEAP,
};

enum {
	HUB_CAPTURES_MAX = 16,
	HUB_PROCESSES_MAX = 256, /* whose heaps are known; the least recently seen go first */
	HUB_TURN_BUCKETS = 8,
};

/* Upper bounds of the buckets of turns, in ms; longer ones are in a last bucket. */
extern const unsigned int hub_turn_bounds_ms[HUB_TURN_BUCKETS];

struct hub_process {
	pid_t pid;
	char name[32];
	uint64_t heap_bytes;
	uint64_t seen_ns;
};

/* Counted since ljspy began. */
struct hub_totals {
	struct figures figures;
	uint64_t cpu_ns[VM_STATE_COUNT];       /* of the samples */
	uint64_t turns[HUB_TURN_BUCKETS + 1];  /* not cumulated */
	uint64_t turn_ns;                      /* all turns together */
	uint64_t runs;                         /* of the sampler */
	uint64_t captures, refused, abandoned; /* by clients */
	bool has_turns;
	enum hub_mode mode;
	/* it samples or reads a heap, or did so half a minute ago: it may change between these */
	bool running;
	struct hub_process processes[HUB_PROCESSES_MAX];
	size_t process_count;
};

struct hub;
struct hub_capture;

struct hub_options {
	enum hub_mode base;     /* without any capture */
	uint64_t threshold_ns;  /* of long turns */
	unsigned int rate_hz;   /* asked for */
	struct session session; /* target, command line and pid; borrowed */
};

/* NULL when memory is short. */
struct hub *hub_new(const struct hub_options *options);
void hub_free(struct hub *hub);

/*---- For the sampling thread ----*/

/* The mode in which to sample next; waits while nothing is to be done but a heap. False: end. */
bool hub_next(struct hub *hub, enum hub_mode *ret_mode);
/* The table for the functions of its samples. */
struct functions *hub_functions(struct hub *hub);
void hub_take(struct hub *hub, const struct sample *sample);
void hub_keep(struct hub *hub);
/* False if the run is to end, for another mode or for good. */
bool hub_progress(struct hub *hub, const struct figures *so_far);
/* The run in this mode is over. */
void hub_note_end(struct hub *hub, const struct figures *figures);
/* The sampling has ended for good: all captures end. */
void hub_stop(struct hub *hub);

/*---- For clients' threads ----*/

enum hub_answer {
	HUB_DONE,
	HUB_BUSY,    /* there are too many captures, or one took too long to begin */
	HUB_GONE,    /* the client went away */
	HUB_STOPPED, /* ljspy ends */
	HUB_FAILED,  /* memory or room for files is short */
};

/* Is the client still there? */
typedef bool hub_asks(void *client);

struct hub_request {
	enum hub_mode mode;
	uint64_t duration_ns; /* 0, for a heap: until hub_release() */
	hub_asks *is_there;
	void *client;
};

/* A recording, at its beginning. */
struct hub_recording {
	FILE *stream; /* the caller closes it */
	struct session session;
	struct figures figures;
};

/*
 * Capture, and wait for the end. *ret_recording is set if the answer is HUB_DONE, and *ret_error, to a
 * negative errno, if it is HUB_FAILED.
 */
enum hub_answer hub_capture(struct hub *hub, const struct hub_request *request,
			    struct hub_recording *ret_recording, int *ret_error);

/* Have the targets untraced from HUB_DONE on until hub_release(). */
enum hub_answer hub_reserve(struct hub *hub, const struct hub_request *request,
			    struct hub_capture **ret_capture);
void hub_release(struct hub *hub, struct hub_capture *capture);
/* Has hub_stop() been called, or a signal to end come? Then release what is reserved. */
bool hub_is_stopped(struct hub *hub);

void hub_totals(struct hub *hub, struct hub_totals *ret_totals);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * request_life: what one request of nginx did from its beginning on, as text or JSON.
 *
 * From the samples of a recording that have the request. Each is a look: it tells of the moment at
 * which it was taken, and stands for the time before it, but at most for two periods, because looks are
 * never further apart. Samples of the same moment (light threads, coroutines) share the time. Equal looks one
 * after the other are one step. Time that no look stands for is a step of its own, "not seen". Samples of the
 * same moment are steps beside each other.
 *
 * The JSON document has version, request {pid, connection, number, method, host, route, status},
 * begin_ms (since the recording's beginning; negative: before it), last_seen_ms (since the request's
 * beginning), looks, recording_ends (the request may have gone on), cut (there were more steps) and
 * steps [{start_ms, duration_ms, looks, at_once, phase, what, frames}], by their start; what is null if
 * no look saw the time. What is unknown is null.
 */
#ifndef LJSPY_REQUEST_LIFE_H
#define LJSPY_REQUEST_LIFE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "output/recording/sample_source.h"
#include "output/sample/figures.h"
#include "output/sample/session.h"

enum { REQUEST_LIFE_STEPS_MAX = 1 << 16 };

struct life_step {
	uint64_t start_ns, end_ns; /* since the request's beginning */
	uint64_t looks;            /* 0: no look saw this time */
	uint32_t at_once;          /* so many coroutines did the same */
	uint32_t now;              /* the same, of the look that is read */
	char *phase;               /* owned; NULL if unknown */
	char *what;                /* "CPU", "sleep", "upstream connect: 127.0.0.1:80"; owned */
	char *frames; /* the innermost frames up to the first one in Lua; owned; "" if there are none */
};

struct request_life {
	uint64_t connection, number; /* of the request, as nginx counts them */
	pid_t pid;                   /* 0: no sample has the request */
	bool is_ambiguous;           /* another process has such a request, too, which is left out */
	char *method, *host, *route; /* owned; NULL if unknown */
	uint32_t status;
	uint64_t begin_ns; /* CLOCK_MONOTONIC */
	uint64_t last_ns;  /* the last look, since the beginning */
	uint64_t samples;
	bool recording_ends;     /* at the last look */
	bool is_cut;             /* there are more steps */
	struct life_step *steps; /* owned */
	size_t count, room;
};

/* Read all samples of the request. 0 or a negative errno. Clear it in either case. */
int request_life_read(struct sample_source *source, const struct session *session,
		      const struct figures *figures, struct request_life *life);
void request_life_clear(struct request_life *life);

/* 0, -ENOMEM or -EIO. */
int request_life_print(FILE *out, const struct request_life *life, const struct session *session);
int request_life_write_json(FILE *out, const struct request_life *life, const struct session *session);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * sending: work through an archive and post its profiles, in order, each until it is taken
 * or refused.
 *
 * The archive is the queue: its bounds bound what waits, and what waits outlives ljspy and
 * the server. A profile that was taken while ljspy was killed is sent again: servers get each one at least
 * once.
 *
 * A server that answers that it has failed (500) may have failed with this profile only: collectors that
 * hand profiles on answer so when the next server refuses one. After a few tries the first profile of the
 * newest recording that was not yet sent goes out of turn. If that is taken, and the server fails with this
 * one once more, it is refused. Those that come next are not tried so often, and one that is taken proves
 * more of them: as many as were refused in a row, up to 4. Otherwise a server that is back after hours would
 * never get to those that it takes.
 */
#ifndef LJSPY_SENDING_H
#define LJSPY_SENDING_H

#include <stdbool.h>
#include <stdint.h>

#include "src/push/endpoint.h"
#include "src/push/http.h"

struct sending_options {
	const char *url; /* as the user wrote it, for messages */
	struct endpoint endpoint;
	const char *credentials; /* file; NULL if there are none */
	const char *ca;          /* file; NULL for the system's certificates */
	const char *path;        /* of the archive, for messages */
	int directory;           /* its descriptor */
	uint32_t newest;         /* the number of its newest recording before ljspy began; 0: none */
	http_asks *gives_up;
	void *context;
};

struct sending;

/* NULL when memory is short. */
struct sending *sending_new(const struct sending_options *options);
void sending_free(struct sending *sending);

/*
 * Post the next profile, if there is one. is_last_finished: no ljspy writes to the newest
 * recording. Returns how long to wait before the next call, in nanoseconds: 0, there may be
 * more; UINT64_MAX, there is nothing to do until the archive changes.
 */
uint64_t sending_step(struct sending *sending, bool is_last_finished);

/* Tell the user what has become of the profiles. False if some are lost or were refused. */
bool sending_conclude(struct sending *sending);

#endif

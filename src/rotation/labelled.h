/* SPDX-License-Identifier: MIT */
/*
 * labelled: the processes whose labels a recording has.
 *
 * What a service is told of a process is read while it lives: when what was recorded is sent, it may be gone.
 */
#ifndef LJSPY_LABELLED_H
#define LJSPY_LABELLED_H

#include <stddef.h>
#include <sys/types.h>

#include "output/recording/recording_writer.h"
#include "output/sample/sample.h"

/* {0}: none yet. */
struct labelled {
	pid_t *pids; /* sorted */
	size_t count, size;
};

/* Let the recording tell what the sample's process is, unless it does. 0 or the writer's negative errno. */
int labelled_add(struct labelled *labelled, const struct sample *sample, struct recording_writer *writer);

/* The next recording has none. */
void labelled_clear(struct labelled *labelled);

void labelled_free(struct labelled *labelled);

#endif

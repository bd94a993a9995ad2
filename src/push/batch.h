/* SPDX-License-Identifier: MIT */
/*
 * batch: a recording as profiles to push, one for all processes with the same labels.
 *
 * The profiles of a recording and their order follow from the recording alone, so a
 * number says which of them are done, also after a restart.
 */
#ifndef LJSPY_BATCH_H
#define LJSPY_BATCH_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "src/push/labels.h"

enum { BATCH_PROFILE_MAX = 64 << 20 }; /* bytes */

struct batch;

/* A profile in pprof's format. */
struct push_profile {
	struct labels labels;
	const char *kind; /* what services call profiles of that clock: "process_cpu", "wall", "memory" */
	char *bytes;      /* free them */
	size_t length;
	uint64_t begin_unix_ns, end_unix_ns;
	unsigned int rate_hz;
};

/* The stream is closed with the batch, and if this fails. 0, or an error of recording_reader_open(). */
int batch_open(FILE *in, struct batch **ret_batch);
void batch_close(struct batch *batch);

size_t batch_count(const struct batch *batch);

/* The profile of that number. 0, -EFBIG, or an error of the format. */
int batch_profile(const struct batch *batch, size_t number, struct push_profile *ret_profile);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * watch: wait until one of several conditions holds for one of many processes.
 *
 * Which processes: those that the sampler's options mean, also those that begin later, found as
 * the sampler finds them, and any other that has a sample. CPU time and memory come from
 * /proc/PID/stat, heaps and turns of event loops from samples, requests from the memory of
 * nginx's workers.
 */
#ifndef LJSPY_WATCH_H
#define LJSPY_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "src/options/condition.h"
#include "src/sampler/sampler.h"

enum {
	WATCH_WORDS_SIZE = 256,
	WATCH_PROCESSES_MAX = 1024, /* later ones are not watched until others have ended */
	WATCH_HEAPS_MAX = 4096,     /* threads with a heap, likewise */
};

struct watch_options {
	const struct condition *conditions;
	unsigned int condition_count;
	const struct sampler_options *sampler; /* which processes */
};

struct watch;

/* What the options point to must outlive the watch. NULL when memory is short. */
struct watch *watch_new(const struct watch_options *options);
void watch_free(struct watch *watch);

/* Each sample, in time order. */
void watch_sample(struct watch *watch, const struct sample *sample);

/* Call functions_keep() for the functions that the watch points to. */
void watch_keep(const struct watch *watch);

/*
 * Look at the processes: call this about once a second. True if a condition has begun to hold since
 * the last call; ret_words then say which one, for which process, and how much it was.
 */
bool watch_look(struct watch *watch, uint64_t now_ns, char ret_words[static WATCH_WORDS_SIZE]);

#endif

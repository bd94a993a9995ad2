/* SPDX-License-Identifier: MIT */
/*
 * sampler_resumed: a sampler that lets go of its targets and comes back to them.
 *
 * Each run is one of sampler_run(); its result is that of all runs together. Time between them is nobody's. Targets that have ended
 * meanwhile, or whose process id is another's now, are no more.
 */
#ifndef LJSPY_SAMPLER_RESUMED_H
#define LJSPY_SAMPLER_RESUMED_H

#include "src/sampler/sampler.h"

struct sampler_breaks {
	/* Returns when the targets may be traced again; false if the sampler is to end instead. */
	bool (*stay_away)(void *context);
	/* In place of the options' progress, with the result so far; NULL if not wanted. */
	bool (*progress)(void *context, const struct sampler_result *so_far);
	void *context;
};

/* The options have a watch, which tells when to let go. */
void sampler_run_resumed(const struct sampler_options *options, const struct sampler_breaks *breaks,
			 struct sampler_result *ret_result);

#endif

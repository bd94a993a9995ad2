/* SPDX-License-Identifier: MIT */
/*
 * sampler_resumed: a sampler that lets go of its targets and comes back to them.
 *
 * Each run is a sampler_run(); the result is that of all runs together. Time between
 * runs does not count. A target that ended meanwhile, or whose process id belongs to
 * another process now, is gone.
 */
#ifndef LJSPY_SAMPLER_RESUMED_H
#define LJSPY_SAMPLER_RESUMED_H

#include "src/sampler/sampler.h"

struct sampler_breaks {
	/* Returns true when the targets may be traced again; false to end the sampler instead. */
	bool (*stay_away)(void *context);
	/* Replaces the options' progress; gets the result so far; NULL if not wanted. */
	bool (*progress)(void *context, const struct sampler_result *so_far);
	void *context;
};

/* The results of two runs, one after the other, as one; the time between them does not count. */
void sampler_add_results(const struct sampler_result *before, const struct sampler_result *run,
			 struct sampler_result *ret_sum);

/*
 * A run after another one could not begin: targets may have gone, or be traced by another process. The
 * samples of the others count.
 */
void sampler_explain_again(struct sampler_result *run);

/* The options must have a watch; it tells when to let go. */
void sampler_run_resumed(const struct sampler_options *options, const struct sampler_breaks *breaks,
			 struct sampler_result *ret_result);

#endif

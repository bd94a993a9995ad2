/* SPDX-License-Identifier: MIT */
/*
 * sampler_apart: the sampler in a process of its own (src/apart/apart.h).
 *
 * It is what commands use: whatever keeps them waiting, targets run on. Samples for
 * which there is no room, as they are not taken in time, are figures.dropped. While
 * ljspy is stopped, nobody is sampled, which figures.away_ns tells of.
 */
#ifndef LJSPY_SAMPLER_APART_H
#define LJSPY_SAMPLER_APART_H

#include "src/apart/apart.h"
#include "src/sampler/sampler_resumed.h"

/*
 * As sampler_run(), with take and progress called here. What the options point to is the
 * sampler's own copy there; what is said of functions holds for those here. If what
 * samples is killed, the result is as far as it was told, and its end SAMPLER_KILLED.
 *
 * SIGINT, SIGTERM or SIGHUP interrupt the sampler; another SIGINT, unless it is one for a
 * single thread, ends ljspy.
 */
void sampler_run_apart(const struct sampler_options *options, struct sampler_result *ret_result);

/* The sampler of an engine that does more than that. */
void sampler_run_in_engine(struct apart *apart, const struct sampler_options *given,
			   const struct sampler_breaks *breaks, struct sampler_result *ret_result);

#endif
